import type { CodecName } from '../codecs/codec.ts'
import { readSdp } from '../codecs/sdp.ts'
import type { TlsVerification } from '../network/tls-verification.ts'
import { REASONS } from '../reasons/index.ts'
import { counted } from '../text/counted.ts'

/** Evaluates the measurements of a trunk test: one sentence and one remedy each. */

/** What is tested. */
type Tested = 'trunk' | 'carrier'

export interface TestVerdict {
  readonly state: 'passed' | 'failed' | 'skipped'
  /** The finding. */
  readonly summary: string
  /** The remedy of a failure. */
  readonly mend?: string
}

const passed = (summary: string): TestVerdict => ({ state: 'passed', summary })
const skipped = (summary: string): TestVerdict => ({ state: 'skipped', summary })
const failed = (summary: string, mend: string): TestVerdict => ({ state: 'failed', summary, mend })

/** Returns the finding of a run: the first failure in the order of the checks, else `well`. */
export function findingOf(verdicts: readonly TestVerdict[], well: string): { passed: boolean; finding: string } {
  const bad = verdicts.find(verdict => verdict.state === 'failed')
  return bad ? { passed: false, finding: `${bad.summary} ${bad.mend ?? ''}`.trim() } : { passed: true, finding: well }
}

export function judgeDns(
  host: string,
  outcome:
    | { readonly addresses: readonly string[] }
    | { readonly error: string }
    /** `unverified`: only because the SIP server cannot verify the certificate. */
    | { readonly refused: string; readonly unverified: boolean },
): TestVerdict {
  if ('refused' in outcome)
    return failed(
      `Nothing may be sent to ${host}: ${outcome.refused}.`,
      outcome.unverified
        ? 'Use the embedded SIP server, which verifies certificates, or reach the peer through a private network.'
        : REASONS.target_not_allowed.mend,
    )
  if ('addresses' in outcome && outcome.addresses.length > 0)
    return passed(
      outcome.addresses.includes(host)
        ? `${host} is an address.`
        : `${host} resolves to ${outcome.addresses.slice(0, 4).join(', ')}.`,
    )
  const why = 'error' in outcome ? ` (${outcome.error})` : ''
  return failed(
    `The name ${host} does not resolve${why}.`,
    'Correct the host of the target, or its SRV, A or AAAA records.',
  )
}

export interface CertificateFacts {
  readonly subject: string
  readonly issuer: string
  readonly valid_from_ms: number
  readonly valid_to_ms: number
  readonly matches_host: boolean
  /** SHA-256, 64 hexadecimal digits. */
  readonly fingerprint: string
  /** Why the chain is not trusted; null for a trusted one. */
  readonly untrusted: string | null
}

const SOON_MS = 14 * 86_400_000
const date = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

export function judgeTls(
  host: string,
  outcome: CertificateFacts | { readonly error: string },
  now_ms: number,
  verification: TlsVerification = { mode: 'required' },
): TestVerdict {
  if ('error' in outcome)
    return failed(
      `TLS with ${host} could not be set up (${outcome.error}).`,
      'Check that the peer speaks TLS on this port, TLS 1.2 or newer.',
    )
  if (verification.mode === 'pinned')
    return outcome.fingerprint === verification.fingerprint
      ? passed(`The certificate ${outcome.subject} is the pinned one.`)
      : failed(
          `${host} shows a certificate with fingerprint ${outcome.fingerprint}, which is not the pinned one.`,
          'Pin the new fingerprint if the peer renewed its certificate; ask its operator first.',
        )
  if (outcome.valid_to_ms < now_ms)
    return failed(
      `The certificate of ${host} (${outcome.subject}) expired on ${date(outcome.valid_to_ms)}.`,
      'Renew the certificate at the peer.',
    )
  if (outcome.valid_from_ms > now_ms)
    return failed(
      `The certificate of ${host} (${outcome.subject}) is valid only from ${date(outcome.valid_from_ms)}.`,
      "Check the peer's certificate and the clocks of both machines.",
    )
  const wrong = outcome.matches_host
    ? outcome.untrusted && `has a chain that this machine does not trust (${outcome.untrusted})`
    : `does not name ${host}`
  if (wrong !== null && verification.mode === 'required')
    return failed(
      `The certificate of ${host} (${outcome.subject}) ${wrong}: nothing is sent there.`,
      `Give the peer a certificate that fits, or pin this one: tls_verification pinned, ${outcome.fingerprint}.`,
    )
  const notes = [
    ...(verification.mode === 'off' ? ['it is not verified: anybody can pretend to be this peer'] : []),
    ...(outcome.matches_host ? [] : [`it does not name ${host}`]),
    ...(outcome.untrusted === null ? [] : [`its chain is not one that this machine trusts (${outcome.untrusted})`]),
    ...(outcome.valid_to_ms - now_ms < SOON_MS ? ['it expires soon'] : []),
  ]
  const valid = `The certificate ${outcome.subject}, issued by ${outcome.issuer}, is valid until ${date(outcome.valid_to_ms)}`
  return passed(notes.length === 0 ? `${valid}.` : `${valid}; ${notes.join('; ')}.`)
}

/** A peer's response to OPTIONS, or why there was none. */
export type OptionsOutcome =
  | { readonly status: number; readonly reason: string; readonly duration_ms: number }
  | { readonly silent_ms: number }
  | { readonly error: string }

export function judgeOptions(target: string, outcome: OptionsOutcome): TestVerdict {
  if ('silent_ms' in outcome)
    return failed(
      `${target} did not answer OPTIONS within ${Math.round(outcome.silent_ms / 1000)} s.`,
      'Check that the peer runs, that address and port are right, and that its firewall lets SIP from us in.',
    )
  if ('error' in outcome)
    return failed(
      `${target} could not be reached (${outcome.error}).`,
      'Check that the peer listens on this address, port and transport.',
    )
  const { status, reason, duration_ms } = outcome
  const answer = `${target} answered OPTIONS with ${status} ${reason} after ${duration_ms} ms`
  // Any other response shows that the peer speaks SIP. 404, 405 and 401 are common and harmless.
  if (status === 503 || status === 500 || status === 480)
    return failed(`${answer}.`, 'The peer says itself that it takes no calls: look at its log and load.')
  return passed(`${answer}.`)
}

/** Returns the codecs of the audio lines of an SDP body; null without one. */
export function codecsInSdp(sdp: string): CodecName[] | null {
  // An answer to OPTIONS has no media yet, so its address does not matter.
  const reading = readSdp(sdp, () => '0.0.0.0')
  const audio = 'refused' in reading ? [] : reading.sdp.lines.filter(({ kind }) => kind === 'audio')
  if (audio.length === 0) return null
  return [...new Set(audio.flatMap(({ payloads }) => payloads.flatMap(({ codec }) => codec?.name ?? [])))]
}

export function judgeCodecs(
  target: string,
  offered: readonly CodecName[] | null,
  wanted: readonly CodecName[],
  whose: Tested = 'trunk',
): TestVerdict {
  if (offered === null) return skipped(`${target} names no codecs in its answer to OPTIONS.`)
  const common = wanted.filter(codec => offered.includes(codec))
  if (common.length > 0) return passed(`${target} has ${common.join(', ')} of the ${whose}'s codecs.`)
  return failed(
    `${target} has none of the ${whose}'s codecs: it names ${offered.join(', ') || 'none that we know'}, the ${whose} has ${wanted.join(', ')}.`,
    `Add a codec of the peer to the ${whose}, or switch one of the ${whose} on at the peer.`,
  )
}

export function judgeTrunkSources(facts: {
  readonly auth_mode: 'ip_allow_list' | 'digest'
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly sources: readonly string[]
  /** Sources that another trunk also has. */
  readonly shared: readonly { readonly cidr: string; readonly trunk: string }[]
}): TestVerdict {
  const { auth_mode, sources, shared } = facts
  if (auth_mode === 'ip_allow_list' && sources.length === 0)
    return failed(
      'The trunk has no enabled source, so that its peer is not known by its address.',
      'Add the address that the peer calls from.',
    )
  if (shared.length > 0)
    return passed(
      `${shared.map(one => `${one.cidr} is a source of trunk ${one.trunk} too`).join('; ')}: calls are told apart by the host they are sent to, then by precedence.`,
    )
  if (sources.length === 0) return passed('The peer may call from any address, with its password.')
  return passed(`The peer is known by ${sources.slice(0, 5).join(', ')}; no other trunk has these.`)
}

export function judgeDigest(facts: {
  readonly auth_mode: 'ip_allow_list' | 'digest'
  readonly usernames: readonly string[]
  readonly realm: string | null
}): TestVerdict {
  if (facts.auth_mode !== 'digest') return skipped('The trunk is known by address; there is no password.')
  if (facts.usernames.length === 0)
    return failed('The trunk has no digest credential in force, so that nobody can call.', 'Add a digest credential.')
  return passed(`${facts.usernames.join(', ')} may call, realm ${facts.realm ?? ''}.`)
}

export function judgeApplied(wanted: number, running: number | null, whose: Tested = 'trunk'): TestVerdict {
  if (running === null)
    return failed(
      `The signaling node does not run this ${whose}.`,
      `Resume the ${whose}; look at its configuration for an error.`,
    )
  if (running < wanted)
    return failed(
      `Revision ${running} runs, revision ${wanted} was saved.`,
      `Wait a moment, then look at the configuration of the ${whose} for an error.`,
    )
  return passed(`Revision ${running} is in force.`)
}

/** Judges a carrier's registration as this or another signaling node keeps it. */
export function judgeRegistration(
  registration: { readonly state: string; readonly detail: string | null } | null | undefined,
): TestVerdict {
  if (registration === undefined) return skipped('The carrier knows us by address; there is no registration.')
  const { state, detail } = registration ?? { state: 'not tried yet', detail: null }
  if (state === 'registered') return passed('We are registered.')
  const why = detail === null ? '' : ` (${detail})`
  return failed(`We are not registered: ${state}${why}.`, 'Check registrar, user name and password.')
}

/** The outcome of a test call's signaling. */
export type CallOutcome =
  | { readonly answered: true; readonly codec: string | null }
  | {
      readonly answered: false
      readonly sip_code: number | null
      readonly reason: string | null
      readonly detail: string
    }

export function judgeCall(where: string, outcome: CallOutcome): TestVerdict {
  if (outcome.answered) return passed(`${where} answered, with ${outcome.codec ?? 'no codec'}.`)
  const { sip_code: code, detail } = outcome
  if (/codec|SDP|488|audio/i.test(detail) || code === 488)
    return failed(
      `${where} and the trunk agreed on no codec (${detail}).`,
      'Give the trunk and the peer a codec in common, and the same media security.',
    )
  if (code === 503 || code === 500)
    return failed(
      `${where} refused the call with ${code} (${detail}).`,
      'The peer takes no calls now: look at its log and load, and at the trunks behind it.',
    )
  if (code === 408 || /in time|no_response|timeout/i.test(detail))
    return failed(
      `${where} did not answer the call (${detail}).`,
      'Check address and port of the target and the firewall between; a telephone that only rings does not answer either.',
    )
  if (code === 404 || code === 484)
    return failed(`${where} does not know the number (${detail}).`, 'Give a `destination` that the peer answers.')
  if (code === 401 || code === 403 || code === 407)
    return failed(
      `${where} does not let us in (${detail}).`,
      'Add our address (GET /v1/platform/endpoints) to what the peer trusts.',
    )
  if (code === 486 || code === 600 || code === 603)
    return failed(`${where} is busy or declined (${detail}).`, 'Give a `destination` that is free and answers.')
  return failed(`${where} could not be called (${detail}).`, 'Look at the ladder of the call for its messages.')
}

export interface MediaFacts {
  readonly seconds: number
  readonly packets_received: number
  readonly packets_sent: number
  readonly packets_lost: number
  readonly jitter_ms: number
  readonly mos: number | null
  /** Our packets that the peer reports as lost (RTCP); null without a report. */
  readonly remote_packets_lost: number | null
  readonly remote: string | null
  readonly signalled: string | null
}

/** Fewer packets than this share of the expected ones do not count as a stream. */
const LEAST_SHARE = 0.2
const PACKETS_PER_SECOND = 50

export function judgeHeard(where: string, media: MediaFacts): TestVerdict {
  const least = media.seconds * PACKETS_PER_SECOND * LEAST_SHARE
  if (media.packets_received === 0)
    return failed(
      `One way only: ${counted(media.packets_sent, 'packet')} went to ${media.remote ?? 'the peer'} and none came back from ${where}.`,
      `Check that the peer sends RTP to us, that its firewall lets it out, and the address in its SDP (${media.signalled ?? 'none'}).`,
    )
  if (media.packets_received < least)
    return failed(
      `Only ${counted(media.packets_received, 'packet')} came from ${where} in ${media.seconds} s.`,
      'Look for loss on the way, and for silence suppression at the peer.',
    )
  const lost = media.packets_lost / (media.packets_received + media.packets_lost)
  const figures = `${counted(media.packets_received, 'packet')} in, ${(lost * 100).toFixed(1)} % lost, jitter ${media.jitter_ms.toFixed(1)} ms${media.mos === null ? '' : `, MOS ${media.mos.toFixed(2)}`}`
  if (lost > 0.1) return failed(`Heard from ${where}: ${figures}.`, 'More than a tenth was lost: look at the network.')
  return passed(`Heard from ${where}: ${figures}.`)
}

export function judgeSent(where: string, media: MediaFacts): TestVerdict {
  if (media.packets_sent === 0)
    return failed(`Nothing was sent to ${where}.`, 'The peer asked for no media (hold, or an address of 0.0.0.0).')
  if (media.remote_packets_lost === null)
    return skipped(
      `${counted(media.packets_sent, 'packet')} went to ${media.remote ?? where}; the peer sends no RTCP reports, so that it is not known what arrived.`,
    )
  if (media.remote_packets_lost >= media.packets_sent * 0.5)
    return failed(
      `${where} reports that it lost ${media.remote_packets_lost} of our ${counted(media.packets_sent, 'packet')}.`,
      'Check that the firewall of the peer lets our RTP in (addresses and ports: GET /v1/platform/endpoints).',
    )
  return passed(`${where} reports ${media.remote_packets_lost} lost of our ${counted(media.packets_sent, 'packet')}.`)
}
