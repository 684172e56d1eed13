import { parseNumber } from '../numbers/parse.ts'
import { dialled, headerOfUri, readAddresses, type SipAddress } from './address.ts'
import { unquoted } from './uri.ts'
import { readPrivacy, readReasons } from './values.ts'

/** The reader and the writer of the history of a diverted call: Diversion (RFC 5806) and History-Info (RFC 7044). */

export interface Diverter {
  /** E.164, or the user of the address when it holds no such number. */
  readonly number: string
  /** A reason of RFC 5806 §4.1, or another token as the peer wrote it. */
  readonly reason: string
  /** How often this number diverted the call. */
  readonly counter: number
  /** The number must not be shown to the called party. */
  readonly hidden: boolean
}

const MAX_DIVERTERS = 20
const MAX_COUNTER = 100

interface Given {
  readonly diversion: string | null
  readonly history: string | null
  readonly privacy: string | null
  readonly called: string
  /** The country whose national formats are read. */
  readonly country: string
}

/**
 * Returns who diverted the call, the last one first, as Diversion does. A peer that sends both headers tells one
 * history twice: the longer one is taken. Privacy of the message may hide all of History-Info (RFC 7044 §10.1.2).
 */
export function readDiverters({ diversion, history, privacy, called, country }: Given): Diverter[] {
  const listed = diversion === null ? [] : readDiversion(diversion, country)
  const kept = history === null ? [] : readHistory(history, called, country)
  const taken = (kept.length > listed.length ? kept : listed).slice(0, MAX_DIVERTERS)
  const hides = history !== null && readPrivacy(privacy).some(value => HIDING_ALL.has(value))
  return hides ? taken.map(diverter => ({ ...diverter, hidden: true })) : taken
}

function readDiversion(header: string, country: string): Diverter[] {
  return readAddresses(header).flatMap(address => {
    const number = numberOf(address, country)
    if (number === '') return []
    const counter = Number(unquoted(address.params.get('counter') ?? ''))
    const privacy = unquoted(address.params.get('privacy') ?? 'off').toLowerCase()
    return {
      number,
      reason: tokenOf(unquoted(address.params.get('reason') ?? '')),
      counter: Number.isInteger(counter) && counter > 0 ? Math.min(counter, MAX_COUNTER) : 1,
      hidden: privacy === 'full' || privacy === 'uri',
    }
  })
}

/**
 * The oldest entry comes first, and each entry is where the call was sent next. An entry is a diverter when the next
 * one has another number. The cause stands in the next entry (RFC 4458) or in the diverter's own Reason (RFC 7044 §5).
 */
function readHistory(header: string, called: string, country: string): Diverter[] {
  const entries = readAddresses(header).map(address => ({ address, number: numberOf(address, country) }))
  return entries
    .flatMap(({ address, number }, at) => {
      const next = entries[at + 1]
      const diverts = next ? next.number !== number : number !== called && entries.length === 1
      if (number === '' || !diverts) return []
      const cause = next?.address.of_uri.get('cause') ?? causeIn(headerOfUri(address, 'reason'))
      const hidden = readPrivacy(headerOfUri(address, 'privacy')).some(value => HIDING.has(value))
      return { number, reason: REASON_OF_CAUSE.get(Number(cause)) ?? 'unknown', counter: 1, hidden }
    })
    .reverse()
}

const HIDING: ReadonlySet<string> = new Set(['history', 'header', 'user', 'id'])
const HIDING_ALL: ReadonlySet<string> = new Set(['history', 'header', 'session'])

const causeIn = (reason: string | null): number | undefined =>
  readReasons(reason).find(({ protocol }) => protocol === 'SIP')?.cause

/** RFC 7544 §7.3.1: reasons of Diversion and causes of History-Info (RFC 4458 §4.1). */
const CAUSES: readonly (readonly [reason: string, cause: number])[] = [
  ['unconditional', 302],
  ['user-busy', 486],
  ['no-answer', 408],
  ['deflection', 480],
  ['deflection', 487],
  ['unavailable', 503],
  ['unknown', 404],
]
const REASON_OF_CAUSE: ReadonlyMap<number, string> = new Map(CAUSES.map(([reason, cause]) => [cause, reason]))
const causeOf = (reason: string): number => CAUSES.find(([known]) => known === reason)?.[1] ?? 404

function numberOf(address: SipAddress, country: string): string {
  const { number } = dialled(address, country)
  const e164 = number === null ? null : (parseNumber(number, country)?.e164 ?? null)
  return e164 ?? address.user.replace(/[^A-Za-z0-9+*#_.-]/g, '').slice(0, 40)
}

const tokenOf = (text: string): string => (/^[A-Za-z0-9.!%*_+`'~-]{1,32}$/.test(text) ? text.toLowerCase() : 'unknown')

interface Recipient {
  /** The number that is called now. */
  readonly called: string
  readonly domain: string
  /** The recipient honours privacy: a network, not the called party. */
  readonly trusted: boolean
}

/** Returns Diversion and History-Info, because peers read one or the other. A call without a diversion has neither. */
export function diversionHeaders(diverters: readonly Diverter[], { called, domain, trusted }: Recipient) {
  if (diverters.length === 0) return {}
  const shown = ({ number, hidden }: Diverter): string =>
    hidden && !trusted ? 'sip:anonymous@anonymous.invalid' : `sip:${encoded(number)}@${domain}`
  const diversion = diverters.map(
    diverter =>
      `<${shown(diverter)}>;reason=${diverter.reason};counter=${diverter.counter}${diverter.hidden ? ';privacy=full' : ''}`,
  )
  const oldest_first = diverters.toReversed()
  const history = oldest_first.map((diverter, at) => {
    const before = oldest_first[at - 1]
    return `<${shown(diverter)}${causeAfter(before)}${diverter.hidden ? '?Privacy=history' : ''}>;${index(at)}`
  })
  const last = `<sip:${called}@${domain}${causeAfter(oldest_first.at(-1))}>;${index(oldest_first.length)}`
  return { Diversion: diversion.join(', '), 'History-Info': [...history, last].join(', ') }
}

const causeAfter = (before: Diverter | undefined): string => (before ? `;cause=${causeOf(before.reason)}` : '')

/** `index=1.1.1;mp=1.1`: each entry follows the one before it, which was mapped to another user (RFC 7044 §10). */
const index = (at: number): string => (at === 0 ? 'index=1' : `index=1${'.1'.repeat(at)};mp=1${'.1'.repeat(at - 1)}`)

const encoded = (user: string): string => user.replace(/[^A-Za-z0-9+*_.-]/g, c => encodeURIComponent(c))
