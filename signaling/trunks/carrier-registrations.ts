import { isIP } from 'node:net'
import { uriHost } from '../../core/domain/identity/index.ts'
import { grantedSeconds, nextRegistration, type RegistrationAnswer } from '../../core/domain/routing/index.ts'
import { hostOf } from '../../core/domain/sip/address.ts'
import { readSeconds } from '../../core/domain/sip/values.ts'
import { judgeTls } from '../../core/domain/trunk-tests/index.ts'
import { type Clock, iso, type Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import {
  type CarrierRegistrationState,
  saveRegistrationState,
} from '../../core/state/configuration/carrier-registrations.ts'
import type { State } from '../../core/state/index.ts'
import type { SipResponse, SipStack } from '../drachtio/types.ts'
import { askFirst, isMadeUp, targetUri } from './health.ts'
import type { CheckedAddress, PeerAddresses } from './peer-addresses.ts'
import { certificateAt } from './peer-certificate.ts'
import type { CarrierRegistration, Snapshot } from './snapshot.ts'

interface Options {
  readonly sip: SipStack
  readonly peer_addresses: Pick<PeerAddresses, 'find'>
  readonly state: State
  readonly clock: Clock
  readonly log: Log
  readonly node_id: string
  readonly random: () => number
  /** Our addresses as carriers see them: the first, and one of the other family if there is one. */
  readonly hosts: readonly string[]
  readonly sip_port: number
  readonly sips_port: number
  /** The data folder, which holds the operator's additional trusted authorities. */
  readonly data_dir: string
  readonly unseal: (sealed: string) => string
}

/** The settings that identify a registration; any change of them registers anew. */
const keyOf = (registration: CarrierRegistration): string => JSON.stringify(registration)

/** The retry delay while the link to the SIP server is down. It usually returns within seconds. */
const LINK_PAUSE_SECONDS = 1
/** How long a removal is waited for. A registrar hears it again at 0.5, 1.5 and 3.5 s (RFC 3261 §17.1.2.2, timer E). */
const END_LIMIT_MS = 4000

/** Returns our host for the Contact: of the registrar's family when its domain is an address, else the first. */
export function contactHost(hosts: readonly string[], domain: string): string {
  const family = isIP(domain.replace(/^\[|\]$/g, ''))
  return uriHost(hosts.find(one => isIP(one) === family) ?? hosts[0] ?? '')
}

/** Registers with the carriers that require it, refreshes the registrations and removes them on stop. */
export class CarrierRegistrations {
  readonly #options: Options
  readonly #kept = new Map<string, Kept>()
  /** Registrations that are being removed, by carrier. */
  readonly #ending = new Map<string, Map<Kept, Promise<void>>>()

  constructor(options: Options) {
    this.#options = options
  }

  /** The number of carriers at which we are registered. */
  get registered(): number {
    return [...this.#kept.values()].filter(kept => kept.registered).length
  }

  /** `mine`: this node is the one that registers. Otherwise its registrations end. */
  apply(snapshot: Snapshot, mine = true): void {
    for (const [id, kept] of this.#kept) {
      const carrier = mine ? snapshot.carriers.get(id) : undefined
      const wanted = carrier?.enabled ? carrier.registration : null
      if (wanted && keyOf(wanted) === kept.key) continue
      this.#kept.delete(id)
      this.#end(id, kept)
    }
    for (const { id, enabled, registration } of mine ? snapshot.carriers.values() : []) {
      if (!enabled || !registration || this.#kept.has(id)) continue
      const kept = new Kept(id, registration, this.#options)
      this.#kept.set(id, kept)
      // Both have the same Contact: a removal that the registrar gets later would remove the new registration.
      const ending = this.#ending.get(id) ?? new Map<Kept, Promise<void>>()
      void this.#atMost(ending.values()).then(() => {
        for (const one of ending.keys()) one.replace()
        kept.begin()
      })
    }
  }

  /** Removes our registration from every registrar, for at most 4 s in total. */
  async stop(): Promise<void> {
    for (const [id, kept] of this.#kept) this.#end(id, kept)
    this.#kept.clear()
    await this.#atMost([...this.#ending.values()].flatMap(ending => [...ending.values()]))
  }

  #end(id: string, kept: Kept): void {
    const ending = this.#ending.get(id) ?? new Map<Kept, Promise<void>>()
    const ended = kept.end().then(() => void ending.delete(kept))
    this.#ending.set(id, ending.set(kept, ended))
  }

  async #atMost(ends: Iterable<Promise<void>>): Promise<void> {
    let limit: Timer | null = null
    const over = new Promise<void>(resolve => {
      limit = this.#options.clock.after(END_LIMIT_MS, resolve)
    })
    await Promise.race([Promise.all(ends), over])
    ;(limit as Timer | null)?.cancel()
  }
}

/** The registration with one carrier. */
class Kept {
  readonly key: string
  readonly #id: string
  readonly #registration: CarrierRegistration
  readonly #options: Options
  #timer: Timer | null = null
  #ended = false
  #replaced = false
  #failures = 0
  #registered_at: string | null = null
  #expires_ms: number | null = null
  #asking: Promise<void> = Promise.resolve()

  constructor(id: string, registration: CarrierRegistration, options: Options) {
    this.key = keyOf(registration)
    this.#id = id
    this.#registration = registration
    this.#options = options
  }

  get registered(): boolean {
    return this.#expires_ms !== null && this.#expires_ms > this.#options.clock.now()
  }

  begin(): void {
    this.#after(0)
  }

  /** Says that another registration with this carrier begins: the state is its own from now on. */
  replace(): void {
    this.#replaced = true
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#timer?.cancel()
    await this.#asking
    if (this.#expires_ms === null) return this.#save('unregistered', null, null, null)
    const sent = await this.#send(0).catch(() => null)
    this.#expires_ms = null
    this.#registered_at = null
    await this.#save('unregistered', sent?.answer.status ?? null, null, null)
  }

  #after(seconds: number): void {
    if (this.#ended) return
    this.#timer = this.#options.clock.after(seconds * 1000, () => {
      this.#asking = this.#ask(this.#registration.expires_seconds)
    })
  }

  async #ask(wanted_seconds: number): Promise<void> {
    const { sip, clock, random, log } = this.#options
    if (!sip.connected) return this.#after(LINK_PAUSE_SECONDS)
    if (this.#registered_at === null && this.#failures === 0) await this.#save('registering', null, null, null)
    let response: SipResponse | null = null
    let detail: string | null = null
    try {
      const { answer, address } = await this.#send(wanted_seconds)
      response = answer
      detail = answer.status < 300 ? null : await this.#refusal(answer, address)
    } catch (error) {
      detail = error instanceof Error ? error.message : String(error)
    }
    const step = nextRegistration(answerOf(response, this.#contact()), {
      wanted_seconds,
      failures: this.#failures,
      random: random(),
    })
    if (step.state === 'registering' && !this.#ended) return this.#ask(step.wanted_seconds)
    const now_ms = clock.now()
    const code = response?.status ?? null
    if (step.state === 'registered') {
      if (this.#failures > 0 || this.#registered_at === null) log.info({ carrier_id: this.#id }, 'carrier registered')
      this.#failures = 0
      this.#registered_at = iso(now_ms)
      this.#expires_ms = now_ms + step.expires_in_seconds * 1000
    } else {
      this.#failures++
      log.warn({ carrier_id: this.#id, code, detail, failures: this.#failures }, 'carrier registration failed')
    }
    const again_in_seconds = step.state === 'registering' ? LINK_PAUSE_SECONDS : step.again_in_seconds
    await this.#save(step.state === 'registered' ? 'registered' : 'failed', code, detail, again_in_seconds)
    this.#after(again_in_seconds)
  }

  /** Sends a REGISTER, and answers its challenges. @throws NotReached, LinkLost, RequestFailed */
  async #send(expires_seconds: number): Promise<{ readonly answer: SipResponse; readonly address: CheckedAddress }> {
    const { registrar, transport, username, password_sealed, tls } = this.#registration
    const uri = targetUri(registrar, transport)
    const auth = { username, password: this.#options.unseal(password_sealed) }
    const request = { method: 'REGISTER', headers: this.#headers(expires_seconds), auth }
    return await askFirst(this.#options, { uri, carrier_id: this.#id, tls }, request)
  }

  /** Describes for people why a REGISTER failed. When TLS prevented it, that is what is wrong with the certificate. */
  async #refusal(answer: SipResponse, address: CheckedAddress): Promise<string> {
    const said = `${answer.status} ${answer.reason}`
    if (!isMadeUp(answer) || address.protocol !== 'tls') return said
    const host = hostOf(this.#registration.registrar)
    const shown = await certificateAt(this.#options.data_dir, host, address)
    const { state, summary, mend = '' } = judgeTls(host, shown, this.#options.clock.now(), this.#registration.tls)
    return state === 'failed' ? `${summary} ${mend}` : said
  }

  #domain(): string {
    return this.#registration.registrar.replace(/^sips?:/i, '').replace(/:\d+$/, '')
  }

  /** The URI of our Contact. */
  #contact(): string {
    const { hosts, sip_port, sips_port } = this.#options
    const { transport, contact_user } = this.#registration
    const own = contactHost(hosts, this.#domain())
    const at = transport === 'tls' ? `${own}:${sips_port};transport=tls` : `${own}:${sip_port}`
    return `sip:${contact_user}@${at}${transport === 'tcp' ? ';transport=tcp' : ''}`
  }

  #headers(expires_seconds: number): Record<string, string> {
    const domain = this.#domain()
    const { username } = this.#registration
    return {
      From: `<sip:${username}@${domain}>`,
      To: `<sip:${username}@${domain}>`,
      Contact: `<${this.#contact()}>`,
      Expires: String(expires_seconds),
    }
  }

  async #save(
    state: CarrierRegistrationState['state'],
    last_code: number | null,
    detail: string | null,
    again_in_seconds: number | null,
  ): Promise<void> {
    if (this.#replaced) return
    const { clock, log, node_id } = this.#options
    const now_ms = clock.now()
    await saveRegistrationState(this.#options.state.db, {
      carrier_id: this.#id,
      node_id,
      state,
      last_code,
      detail: detail?.slice(0, 500) ?? null,
      registered_at: this.#registered_at,
      expires_at: this.#expires_ms === null ? null : iso(this.#expires_ms),
      next_try_at: again_in_seconds === null ? null : iso(now_ms + again_in_seconds * 1000),
      failures: this.#failures,
      changed_at: iso(now_ms),
    }).catch(err => log.warn({ err, carrier_id: this.#id }, 'the state of a registration was not saved'))
  }
}

function answerOf(response: SipResponse | null, own_uri: string): RegistrationAnswer {
  return {
    code: response?.status ?? 0,
    granted_seconds: grantedSeconds(response?.header('contact') ?? null, response?.header('expires') ?? null, own_uri),
    min_seconds: readSeconds(response?.header('min-expires')),
    retry_after_seconds: readSeconds(response?.header('retry-after')),
  }
}
