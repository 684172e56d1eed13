/** How messages about alerts are sent, and how failed ones are retried. */

/**
 * How short messages are sent: to a provider's HTTP endpoint, as SIP MESSAGE (RFC 3428) to a gateway, or spoken in a
 * call.
 */
type SmsRoute =
  | { readonly via: 'http'; readonly url: string }
  | {
      readonly via: 'sip'
      readonly scheme: 'sip' | 'sips'
      readonly host: string
      /** `;transport=tcp`, or nothing. */
      readonly parameters: string
    }
  | { readonly via: 'voice' }

const SIP_GATEWAY =
  /^(sips?):((?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?)(;transport=(?:udp|tcp|tls))?$/

/** Parses `https://…`, `sip:host:port;transport=tcp` or `voice:`. Returns null for anything else. */
export function smsRoute(text: string): SmsRoute | null {
  if (text === 'voice:') return { via: 'voice' }
  const sip = SIP_GATEWAY.exec(text)
  if (sip)
    return { via: 'sip', scheme: sip[1] === 'sips' ? 'sips' : 'sip', host: sip[2] ?? '', parameters: sip[3] ?? '' }
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? { via: 'http', url: text } : null
}

const FIRST_DELAY_MS = 10_000
const MAX_DELAY_MS = 3_600_000
const LIFE_MS = 24 * 3_600_000

/** The delay after a number of attempts, without jitter. */
const delayAfter = (attempts: number): number =>
  Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(20, attempts - 1))
const delayed = (delay_ms: number, jitter: number): number => Math.floor(delay_ms * (1 + jitter / 5))

/** Returns the longest wait of a message after `attempts` attempts. Quiet hours may delay the first one. */
export const longestWait = (attempts: number, is_quiet: boolean): number =>
  attempts > 0 ? delayed(delayAfter(attempts), 1) : is_quiet ? LIFE_MS : 0

interface Attempted {
  readonly state: 'pending' | 'delivered' | 'failed'
  readonly next_attempt_ms: number
}

/**
 * Returns the state of a message after `attempts` attempts: sent, retried after a delay that doubles from 10 s to an
 * hour, or given up after a day. `final` is a permanent failure. `jitter` is from 0 to 1.
 */
export function attempted(
  attempt: { readonly attempts: number; readonly created_ms: number; readonly failed: false | 'now' | 'final' },
  now_ms: number,
  jitter: number,
): Attempted {
  const next_attempt_ms = now_ms + delayed(delayAfter(attempt.attempts), jitter)
  if (attempt.failed === false) return { state: 'delivered', next_attempt_ms }
  const over = attempt.failed === 'final' || next_attempt_ms > attempt.created_ms + LIFE_MS
  return { state: over ? 'failed' : 'pending', next_attempt_ms }
}
