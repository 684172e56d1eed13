import { parseUri } from '../../core/domain/sip/uri.ts'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { forgetEvidence, saveEvidence } from '../../core/state/configuration/target-evidence.ts'
import type { State } from '../../core/state/index.ts'
import type { RequestOptions, SipResponse, SipStack } from '../drachtio/types.ts'
import type { AddressAsked, CheckedAddress, PeerAddresses } from './peer-addresses.ts'
import type { Snapshot, Target } from './snapshot.ts'

/** A target's last response, and its count of consecutive misses. */
interface Evidence {
  /** Null for a carrier's. */
  readonly project_id: string | null
  readonly key: string
  timer: Timer
  misses: number
  /** The judgement of the last OPTIONS. */
  state: TargetState
  code: number | null
  address: string | null
}

type TargetState = 'unknown' | 'healthy' | 'degraded'

interface Wanted extends Pick<Evidence, 'project_id'> {
  readonly target: Target
  readonly carrier_id: string | null
}

/** The settings that decide how OPTIONS reaches a target. */
const keyOf = ({ uri, transport, tls, credentials }: Target): string =>
  JSON.stringify([uri, transport, tls, credentials])

const PERIOD_MS = 30_000
const FIRST_MS = 2000
/** OPTIONS that one node sends for a project. With more targets, each is asked less often (decision 1082). */
const MOST_A_SECOND = 50
const MISSES_UNTIL_DEGRADED = 2

/** A target of a project with so many is asked first within `first_ms`, and then about every `period_ms`. */
export function probeTimes(targets: number): { readonly first_ms: number; readonly period_ms: number } {
  const round_ms = (targets * 1000) / MOST_A_SECOND
  return { first_ms: Math.max(FIRST_MS, round_ms), period_ms: Math.max(PERIOD_MS, round_ms) }
}

/** One missed OPTIONS changes nothing, the second degrades (design section 4); any answer makes a target healthy. */
const stateAfter = (known: TargetState, misses: number): TargetState =>
  misses === 0 ? 'healthy' : misses >= MISSES_UNTIL_DEGRADED ? 'degraded' : known

/**
 * Sends OPTIONS keep-alives to every enabled target, every 30 s with jitter (design section 4), or less often when its
 * project has very many. A degraded target is tried last, never left out. The sandbox carrier is not asked: that would
 * wake its process (bin/doorbell.ts).
 */
export class TargetHealth {
  readonly #targets = new Map<string, Evidence>()
  /** How many targets of each project are asked. */
  #counts: ReadonlyMap<string, number> = new Map()
  readonly #options: {
    readonly sip: SipStack
    readonly state: State
    readonly clock: Clock
    readonly log: Log
    readonly node_id: string
    readonly random: () => number
    readonly peer_addresses: Pick<PeerAddresses, 'find'>
    readonly unseal: (sealed: string) => string
  }
  #stopped = false

  constructor(options: {
    readonly sip: SipStack
    readonly state: State
    readonly clock: Clock
    readonly log: Log
    readonly node_id: string
    readonly random: () => number
    readonly peer_addresses: Pick<PeerAddresses, 'find'>
    readonly unseal: (sealed: string) => string
  }) {
    this.#options = options
  }

  degraded(target_id: string): boolean {
    return (this.#targets.get(target_id)?.misses ?? 0) >= MISSES_UNTIL_DEGRADED
  }

  /** Returns the address from which the target last answered; null when it has never answered. */
  address(target_id: string): string | null {
    return this.#targets.get(target_id)?.address ?? null
  }

  /** Counts a call attempt as evidence: a response clears the misses, a failure to reach the target adds one. */
  attempted(target_id: string | null, reached: boolean): void {
    const evidence = target_id === null ? undefined : this.#targets.get(target_id)
    if (!evidence) return
    evidence.misses = reached ? 0 : evidence.misses + 1
    if (reached) evidence.state = 'healthy'
  }

  /**
   * Starts with new or changed targets after a random delay, of up to 2 s for most projects, and stops with removed
   * ones and those of suspended projects.
   */
  apply(snapshot: Snapshot): void {
    const wanted = new Map<string, Wanted>()
    const counts = new Map<string, number>()
    for (const trunk of snapshot.trunks.values()) {
      const { project_id } = trunk
      if (!trunk.enabled || !snapshot.projects.get(project_id)?.active) continue
      const enabled = trunk.targets.filter(target => target.enabled)
      counts.set(project_id, (counts.get(project_id) ?? 0) + enabled.length)
      for (const target of enabled) wanted.set(target.id, { target, project_id, carrier_id: null })
    }
    this.#counts = counts
    for (const carrier of snapshot.carriers.values())
      for (const target of carrier.targets)
        if (target.enabled && carrier.enabled && !carrier.sandbox)
          wanted.set(target.id, { target, project_id: null, carrier_id: carrier.id })
    for (const [id, evidence] of this.#targets) {
      const known = wanted.get(id)
      if (known && keyOf(known.target) === evidence.key) continue
      evidence.timer.cancel()
      this.#targets.delete(id)
    }
    for (const [id, { target, project_id, carrier_id }] of wanted) {
      if (this.#targets.has(id) || this.#stopped) continue
      const delay_ms = this.#options.random() * this.#times(project_id).first_ms
      const evidence: Evidence = {
        project_id,
        key: keyOf(target),
        misses: 0,
        state: 'unknown',
        code: null,
        address: null,
        timer: this.#options.clock.after(delay_ms, () => void this.#ask(id, target, carrier_id)),
      }
      this.#targets.set(id, evidence)
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    for (const evidence of this.#targets.values()) evidence.timer.cancel()
    this.#targets.clear()
    await forgetEvidence(this.#options.state.db, this.#options.node_id)
  }

  async #ask(id: string, target: Target, carrier_id: string | null): Promise<void> {
    const { clock, sip, random, log, state, node_id } = this.#options
    const before = this.#targets.get(id)
    if (!before || this.#stopped) return
    let code: number | null = null
    let address: string | null = null
    if (sip.connected) {
      try {
        const answer = await askOptions(this.#options, target, carrier_id)
        code = answer.status
        // Responses that the SIP server generates for silence have no source. Any response of the target itself
        // proves that it is alive.
        if (!isMadeUp(answer)) address = answer.source.address
      } catch (error) {
        log.debug({ err: error, target_id: id }, 'OPTIONS could not be sent')
      }
      const evidence = this.#targets.get(id)
      if (evidence !== before || this.#stopped) return
      evidence.misses = address === null ? evidence.misses + 1 : 0
      evidence.state = stateAfter(evidence.state, evidence.misses)
      evidence.code = code
      evidence.address = address ?? evidence.address
      await saveEvidence(
        state.db,
        {
          target_id: id,
          node_id,
          state: evidence.state,
          misses: evidence.misses,
          last_code: code,
          address: evidence.address,
        },
        clock.now(),
      ).catch(err => log.warn({ err, target_id: id }, 'the health of a target was not saved'))
    }
    const evidence = this.#targets.get(id)
    if (evidence !== before || this.#stopped) return
    const { period_ms } = this.#times(evidence.project_id)
    evidence.timer = clock.after(period_ms * (0.85 + random() * 0.3), () => void this.#ask(id, target, carrier_id))
  }

  #times(project_id: string | null): ReturnType<typeof probeTimes> {
    return probeTimes((project_id !== null && this.#counts.get(project_id)) || 1)
  }
}

/** Nothing may or can be sent to the target; the message says why. */
class NotReached extends Error {
  override readonly name = 'NotReached'
}

/** Whether the SIP server generated a response for a silent or unreachable target. Such a response has no source. */
export const isMadeUp = ({ source }: SipResponse): boolean => source.port === 0 || source.address === ''

/** Sends OPTIONS to a target's addresses in turn; returns the first response. @throws as `askFirst` */
export async function askOptions(
  reach: AskServices & { readonly unseal: (sealed: string) => string },
  target: Pick<Target, 'uri' | 'transport' | 'tls' | 'credentials'>,
  carrier_id: string | null,
): Promise<SipResponse> {
  const asked = { uri: targetUri(target.uri, target.transport), carrier_id, tls: target.tls }
  const { credentials } = target
  const auth = credentials && { username: credentials.username, password: reach.unseal(credentials.password_sealed) }
  const request = { method: 'OPTIONS', headers: { Accept: 'application/sdp' }, ...(auth ? { auth } : {}) }
  return (await askFirst(reach, asked, request)).answer
}

interface AskServices {
  readonly sip: SipStack
  readonly peer_addresses: Pick<PeerAddresses, 'find'>
}

/**
 * Sends a request to a target's addresses in turn until one responds. If none does, returns the response that the SIP
 * server generated for the last. A registrar's 503 is returned only when no other address responds (RFC 3263 §4.3); a
 * 503 to OPTIONS says that the target is alive. @throws NotReached, LinkLost, RequestFailed
 */
export async function askFirst(
  { sip, peer_addresses }: AskServices,
  asked: AddressAsked,
  request: Pick<RequestOptions, 'method' | 'headers' | 'auth'>,
): Promise<{ readonly answer: SipResponse; readonly address: CheckedAddress }> {
  const found = await peer_addresses.find(asked)
  if (found.kind !== 'found') throw new NotReached(found.detail)
  let kept: { answer: SipResponse; address: CheckedAddress } | null = null
  for (const address of found.addresses) {
    const answer = await sip.request({ ...request, uri: asked.uri, proxy: address.proxy })
    const busy = request.method === 'REGISTER' && answer.status === 503
    if (!isMadeUp(answer) && !busy) return { answer, address }
    if (!kept || isMadeUp(kept.answer)) kept = { answer, address }
  }
  if (!kept) throw new NotReached('it has no address')
  return kept
}

/** Returns the target's URI with the configured transport, unless the URI names one itself. */
export function targetUri(uri: string, transport: 'udp' | 'tcp' | 'tls'): string {
  if (transport === 'udp' || parseUri(uri)?.params.has('transport')) return uri
  const [before, headers] = splitAt(uri, '?')
  return `${before};transport=${transport}${headers}`
}

const splitAt = (text: string, mark: string): [string, string] => {
  const at = text.indexOf(mark)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at)]
}
