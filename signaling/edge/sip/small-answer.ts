import { isReliable, type Received } from '../transport/types.ts'
import { Draft } from './message.ts'

/** The largest answer to a stranger, relative to its request. This bounds amplification under spoofed addresses. */
const MOST = 1.5

/** The request that an answer responds to. */
type Asked = Pick<Received, 'protocol' | 'text'>

/**
 * Reports whether an answer may go to a stranger. The size matters only for datagrams, because a connection proves its
 * source address.
 */
export const isSmall = (answer: string, { protocol, text }: Asked): boolean =>
  isReliable(protocol) || answer.length <= text.length * MOST

/** The headers that RFC 3261 §8.2.6.2 requires, and Content-Length. */
const NEEDED: ReadonlySet<string> = new Set(['via', 'from', 'to', 'call-id', 'cseq', 'content-length'])

/**
 * Serializes an answer to a request whose source address may be spoofed. If the whole answer is too large, it keeps the
 * required headers and the last challenge (MD5, which every client supports). If that is too large, it returns none.
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
