import { isReliable, type Received } from '../transport/types.ts'
import { Draft } from './message.ts'

/** What strangers get is at most so many times what they sent: nobody's traffic is worth much when it is sent on. */
const MOST = 1.5

/** What an answer is for. */
type Asked = Pick<Received, 'protocol' | 'text'>

/**
 * Whether an answer may go to a stranger. The size counts on datagrams alone: whoever has opened a connection is where
 * its address says.
 */
export const isSmall = (answer: string, { protocol, text }: Asked): boolean =>
  isReliable(protocol) || answer.length <= text.length * MOST

/** RFC 3261 §8.2.6.2, and how long the body is. */
const NEEDED: ReadonlySet<string> = new Set(['via', 'from', 'to', 'call-id', 'cseq', 'content-length'])

/**
 * An answer to somebody who may have written another's address on the request: whole where it is small enough, else its
 * needed headers with the last challenge (MD5, which everybody knows), else none.
 */
export function smallAnswer(answer: Draft, asked: Asked): string | undefined {
  const whole = answer.serialize()
  if (isSmall(whole, asked)) return whole
  const bare = new Draft(answer.start_line)
  const challenge = answer.headers.findLast(({ id }) => id === 'www-authenticate')
  bare.headers.push(...answer.headers.filter(header => NEEDED.has(header.id) || header === challenge))
  const text = bare.serialize()
  return isSmall(text, asked) ? text : undefined
}
