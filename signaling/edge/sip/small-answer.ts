import { Draft } from './message.ts'

/** What strangers get is at most so many times what they sent: nobody's traffic is worth much when it is sent on. */
const MOST = 1.5

/** Whether an answer may go to a stranger that has sent so much. */
export const isSmall = (answer: string, request_bytes: number): boolean => answer.length <= request_bytes * MOST

/** RFC 3261 §8.2.6.2, and how long the body is. */
const NEEDED: ReadonlySet<string> = new Set(['via', 'from', 'to', 'call-id', 'cseq', 'content-length'])

/**
 * An answer to somebody who may have written another's address on the request: whole where it is small enough, else its
 * needed headers with the last challenge (MD5, which everybody knows), else none.
 */
export function smallAnswer(answer: Draft, request_bytes: number): string | undefined {
  const whole = answer.serialize()
  if (isSmall(whole, request_bytes)) return whole
  const bare = new Draft(answer.startLine)
  const challenge = answer.headers.findLast(({ id }) => id === 'www-authenticate')
  bare.headers.push(...answer.headers.filter(header => NEEDED.has(header.id) || header === challenge))
  const text = bare.serialize()
  return isSmall(text, request_bytes) ? text : undefined
}
