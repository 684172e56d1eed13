/**
 * How long a person may send an addition again by its key after an answer was lost. Later the same amount is more
 * likely another one: the person has seen that the first was booked.
 */
const KEPT_MS = 10 * 60_000

/** The keys of additions that no answer has said to be done. */
const open = new Map<string, { readonly key: string; readonly sent_ms: number }>()

export const newKey = (): string => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`

/** The idempotency key of an addition: the one that it was sent with before, while it is not known to be done. */
export function additionKey(addition: string, now_ms: number): string {
  for (const [each, { sent_ms }] of open) if (now_ms - sent_ms > KEPT_MS) open.delete(each)
  const key = open.get(addition)?.key ?? newKey()
  open.set(addition, { key, sent_ms: now_ms })
  return key
}

/** An addition is done. A refusal is no reason: it consumes no key, and the answer that was lost may have been none. */
export const added = (addition: string): void => void open.delete(addition)
