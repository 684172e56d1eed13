/** What an event told of a call, and when this page heard it. */
interface HeardCall<C> {
  readonly call: C
  readonly heard_ms: number
}

export type HeardCalls<C> = ReadonlyMap<string, HeardCall<C>>

/**
 * Leaves out what was heard before a read began: its answer has that. The answer may be older than events that came
 * while it was on its way.
 */
export const heardSince = <C>(heard: HeardCalls<C>, began_ms: number): HeardCalls<C> =>
  new Map([...heard].filter(([, { heard_ms }]) => heard_ms >= began_ms))

/** Puts what was heard since the read of a list began over its rows. New calls stand first. */
export function withHeard<R extends { readonly id: string }, C extends { readonly id: string }>(
  rows: readonly R[],
  began_ms: number,
  heard: HeardCalls<C>,
): (C | (R & C) | R)[] {
  const since = heardSince(heard, began_ms)
  const listed = new Set(rows.map(({ id }) => id))
  const fresh = [...since.values()].map(({ call }) => call).filter(({ id }) => !listed.has(id))
  return [...fresh, ...rows.map(row => ({ ...row, ...since.get(row.id)?.call }))]
}
