import { holdsAddress, projectOfClientDomain, uriHost } from '../../core/domain/identity/index.ts'
import { MACHINE_PARAMETER } from '../../core/domain/network/next-hop.ts'
import { hostOf, readAddress, readAddresses } from '../../core/domain/sip/address.ts'
import { parseUri, splitList } from '../../core/domain/sip/uri.ts'
import { readSeconds } from '../../core/domain/sip/values.ts'
import type { Bus } from '../../core/runtime/bus.ts'
import { type Clock, iso, type Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { protocolOf } from '../../core/runtime/sip/locate.ts'
import { Sleeper } from '../../core/runtime/sleeper.ts'
import {
  countRegistrations,
  liveRegistrations,
  pruneRegistrations,
  type RegistrationRow,
  registrationsSince,
  removeRegistrations,
  saveRegistration,
} from '../../core/state/calls/registrations.ts'
import type { State } from '../../core/state/index.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import { ContactRows, contactKey } from './contact-rows.ts'
import type { DigestAuthenticator } from './digest.ts'
import type { DigestCredential, Snapshot } from './snapshot.ts'

/**
 * Registrations (RFC 3261 §10). A digest user's contact is an additional target of its trunk until it expires. A
 * browser client's contact makes `client:<name>` of its project reachable, over the connection that registered it.
 */

interface Contact {
  readonly uri: string
  /**
   * The next hop: the connection that registered it. Over UDP it is the source address if the contact names another,
   * because the peer is then behind a NAT; otherwise null. What registered at another machine is reached by its edge.
   */
  readonly proxy: string | null
  /** The source address of the REGISTER, which the peer has proved to own. */
  readonly proven_host: string
  readonly transport: string
}

interface Asked {
  readonly uri: string
  readonly expires_seconds: number
  readonly has_maddr: boolean
  /** The device and its flow (RFC 5626 §6); null when the contact names no device. */
  readonly instance: string | null
}

const DEFAULT_SECONDS = 3600
const LEAST_SECONDS = 60
const MOST_SECONDS = 7200
const MAX_CONTACTS = 10
/** The most contacts of the clients of a project, or of a trunk. */
const MAX_TOGETHER = 1000
/** How often expired contacts are removed from memory. */
const SWEEP_MS = 60_000
/** How often the changes of other machines are read, however they are told. */
const FOLLOW_MS = 5_000
/** All rows are read at most this often. */
const ALL_MS = 1_000
/** How far the clocks of machines may be apart before a change is only found by the number of rows. */
const CLOCKS_MS = 60_000

interface RegistrarOptions {
  readonly digest: DigestAuthenticator
  readonly state: State
  readonly clock: Clock
  readonly log: Log
  readonly snapshot: () => Snapshot
  /** The domain of the clients' addresses. */
  readonly domain: string
  /** Returns the voice account's current token; null when the project has no active account. */
  readonly authToken: (project_id: string) => string | null
  readonly machine_id: string
  /** Finds the machine whose edge peers see at a host, where that is not this one; undefined: there is none. */
  readonly machineAt?: (host: string) => Promise<string | undefined>
  /** Wakes the nodes of other machines that register contacts too; null: there are none. */
  readonly others: Bus | null
}

/** The user whose contacts a REGISTER changes. */
interface Owner {
  /** The digest credential, or `client:<project>:<name>`. */
  readonly credential_id: string
  /** The user's trunk; empty for a client. */
  readonly trunk_id: string
  /** The key that made the client's token; empty for a digest user. */
  readonly key_id: string
  /** The epoch ms at which the client's token expires; infinite for a digest user. */
  readonly until_ms: number
}

const clientKey = (project_id: string, client: string): string => `client:${project_id}:${client}`

export class Registrar {
  readonly #options: RegistrarOptions
  /** The database is written first, so that other nodes and a successor of this one have them too. */
  readonly #rows = new ContactRows()
  /** The devices of the contacts that this process registered. */
  readonly #devices = new WeakMap<RegistrationRow, string>()
  readonly #following: Sleeper | null
  readonly #unhear: () => void
  /** When the changes of others were last read, on the wall clock, and all rows, on the monotonic one. */
  #changes_ms = 0
  #all_ms = 0
  #swept_ms = 0
  #again: Timer | null = null
  #credentials: { readonly of: Snapshot | null; readonly by_id: ReadonlyMap<string, DigestCredential> } = {
    of: null,
    by_id: new Map(),
  }

  constructor(options: RegistrarOptions) {
    this.#options = options
    const { others, clock, log } = options
    this.#following =
      others &&
      new Sleeper({
        work: () => this.#follow(),
        failed: err => log.warn({ err }, 'the registrations of other machines cannot be read'),
        every: { clock, period_ms: FOLLOW_MS },
      })
    this.#unhear = others?.on('registrations', () => void this.#following?.wake()) ?? (() => undefined)
  }

  async load(): Promise<void> {
    const { state, clock } = this.#options
    await pruneRegistrations(state.db, clock.now())
    await this.#readAll(clock.now())
  }

  async stop(): Promise<void> {
    this.#unhear()
    this.#again?.cancel()
    await this.#following?.stop()
  }

  /** The number of contacts that this machine has registered. */
  get size(): number {
    let own = 0
    for (const row of this.#rows) if (this.#isOwn(row)) own++
    return own
  }

  /** Reads what other machines have changed. What they have removed shows in the number of rows. */
  async #follow(): Promise<void> {
    const { state, clock } = this.#options
    const now_ms = clock.now()
    for (const row of await registrationsSince(state.db, this.#changes_ms - CLOCKS_MS)) this.#rows.set(row)
    this.#changes_ms = now_ms
    this.#forgetExpired(iso(now_ms))
    if ((await countRegistrations(state.db, now_ms)) === this.#rows.size) return
    const early_ms = ALL_MS - (clock.monotonic_ms() - this.#all_ms)
    if (early_ms <= 0) await this.#readAll(now_ms)
    else this.#again ??= clock.after(early_ms, () => this.#wake())
  }

  #wake(): void {
    this.#again = null
    void this.#following?.wake()
  }

  async #readAll(now_ms: number): Promise<void> {
    const rows = await liveRegistrations(this.#options.state.db, now_ms)
    const found = new Set(rows.map(contactKey))
    // What this node registers meanwhile may be missing among them.
    for (const row of [...this.#rows])
      if (!found.has(contactKey(row)) && row.registered_at < iso(now_ms)) this.#rows.delete(row)
    for (const row of rows.sort(byTime)) this.#rows.set(row)
    this.#changes_ms = now_ms
    this.#all_ms = this.#options.clock.monotonic_ms()
  }

  /** Removes the oldest contacts of a user: a reloaded browser registers a new one. */
  async #evict(rows: readonly RegistrationRow[]): Promise<void> {
    for (const row of rows) {
      await removeRegistrations(this.#options.state.db, row.credential_id, row.contact)
      this.#rows.delete(row)
    }
  }

  #forgetExpired(now: string): void {
    for (const row of this.#rows) if (row.expires_at <= now) this.#rows.delete(row)
  }

  /** Returns earlier contacts of devices that register now (RFC 5626 §6): a restarted telephone is at a new port. */
  #replaced(own: readonly RegistrationRow[], asked: readonly Asked[]): RegistrationRow[] {
    const bound = asked.filter(({ expires_seconds }) => expires_seconds > 0)
    const now = new Set(bound.flatMap(({ instance }) => instance ?? []))
    if (now.size === 0) return []
    const kept = new Set(asked.map(({ uri }) => uri))
    return own.filter(row => now.has(this.#devices.get(row) ?? '') && !kept.has(row.contact))
  }

  #own(owner: Owner): RegistrationRow[] {
    return this.#rows.together(owner).filter(row => row.credential_id === owner.credential_id)
  }

  /** Names of clients are free, and so are passwords of a trunk: their contacts are limited together, too. */
  async #makeRoom(owner: Owner, now_ms: number): Promise<void> {
    if (now_ms - this.#swept_ms >= SWEEP_MS) {
      this.#swept_ms = now_ms
      this.#forgetExpired(iso(now_ms))
    }
    const own = this.#own(owner)
    await this.#evict(own.sort(byTime).slice(0, Math.max(0, own.length - MAX_CONTACTS)))
    const all = this.#rows.together(owner)
    if (all.length > MAX_TOGETHER) await this.#evict(all.sort(byTime).slice(0, all.length - MAX_TOGETHER))
  }

  /** The machine that has the flow of the request. */
  async #machineOf({ received_on }: InboundRequest): Promise<string> {
    const { machine_id, machineAt } = this.#options
    return (received_on === undefined ? undefined : await machineAt?.(received_on)) ?? machine_id
  }

  #isOwn({ machine_id }: RegistrationRow): boolean {
    return machine_id === '' || machine_id === this.#options.machine_id
  }

  /** Returns the live contacts of the trunk's users, the latest registration first. */
  contacts(trunk_id: string): Contact[] {
    const now_ms = this.#options.clock.now()
    return this.#latestFirst({ credential_id: '', trunk_id }, row => this.#isValid(row, now_ms))
  }

  /** A contact that was registered with a password that is revoked now, or past its overlap, gets no calls. */
  #isValid({ credential_id }: RegistrationRow, now_ms: number): boolean {
    const of = this.#options.snapshot()
    if (this.#credentials.of !== of)
      this.#credentials = { of, by_id: new Map([...of.credentials.values()].flat().map(known => [known.id, known])) }
    const known = this.#credentials.by_id.get(credential_id)
    return known !== undefined && (known.valid_until_ms === null || known.valid_until_ms > now_ms)
  }

  /** Returns the live contacts of a client, the latest registration first. */
  clientContacts(project_id: string, client: string): Contact[] {
    const account = this.#options.snapshot().accounts.get(project_id)
    if (!account?.active) return []
    const of = { credential_id: clientKey(project_id, client), trunk_id: '' }
    const made = ['', account.key_id]
    return this.#latestFirst(of, row => row.credential_id === of.credential_id && made.includes(row.key_id))
  }

  /** A telephone that was restarted at another port left a contact behind, which it no longer registers. */
  #latestFirst(
    of: Pick<RegistrationRow, 'credential_id' | 'trunk_id'>,
    matches: (row: RegistrationRow) => boolean,
  ): Contact[] {
    const now = iso(this.#options.clock.now())
    return this.#rows
      .together(of)
      .filter(row => row.expires_at > now && matches(row))
      .sort(byTime)
      .reverse()
      .map(row => this.#contactOf(row))
  }

  async handle(request: InboundRequest): Promise<void> {
    const { log, domain } = this.#options
    const project_id = projectOfClientDomain(hostOf(request.uri), domain)
    try {
      const owner = await (project_id === null ? this.#digestUser(request) : this.#client(request, project_id))
      if (owner) await this.#register(request, owner)
    } catch (err) {
      log.error({ err, source: request.source.address }, 'a registration was not saved')
      request.respond(503, { headers: { 'Retry-After': '5' } })
    }
  }

  /** Authenticates a digest user; null when the request has been answered. */
  async #digestUser(request: InboundRequest): Promise<Owner | null> {
    const { digest, snapshot } = this.#options
    const outcome = await digest.check(request)
    if (outcome.kind === 'challenge') {
      request.respond(401, { challenges: outcome.challenges })
      return null
    }
    const trunk = outcome.kind === 'authenticated' ? snapshot().trunks.get(outcome.trunk_id) : undefined
    const strict = trunk?.source_validation === 'strict' && !holdsAddress(trunk.source_index, request.source.address)
    if (outcome.kind !== 'authenticated' || !trunk?.enabled || strict) {
      request.respond(403)
      return null
    }
    const until_ms = Number.POSITIVE_INFINITY
    return { credential_id: outcome.credential_id, trunk_id: trunk.id, key_id: '', until_ms }
  }

  async #client(request: InboundRequest, project_id: string): Promise<Owner | null> {
    const { digest, authToken, snapshot } = this.#options
    // Before it waits: the key of the token that is checked.
    const key_id = snapshot().accounts.get(project_id)?.key_id ?? ''
    const outcome = await digest.checkClient(request, { project_id, auth_token: authToken(project_id) })
    if (outcome.kind === 'challenge') {
      request.respond(401, { challenges: outcome.challenges })
      return null
    }
    const registered = readAddress(request.header('to'))?.user
    // A token is valid for one name only, and not each may be called.
    const may = outcome.kind === 'authenticated' && outcome.token.allowed.includes('in')
    if (!may || registered !== outcome.token.client) {
      request.respond(403)
      return null
    }
    const { client, expires_at_seconds } = outcome.token
    const credential_id = clientKey(project_id, client)
    return { credential_id, trunk_id: '', key_id, until_ms: expires_at_seconds * 1000 }
  }

  async #register(request: InboundRequest, owner: Owner): Promise<void> {
    const { credential_id, trunk_id, key_id, until_ms } = owner
    const { state, clock, log } = this.#options
    const header = request.header('contact') ?? request.header('m')
    const default_seconds = readSeconds(request.header('expires')) ?? DEFAULT_SECONDS
    if (header?.trim() === '*') {
      if (default_seconds !== 0) {
        request.respond(400)
        return
      }
      await removeRegistrations(state.db, credential_id, null)
      for (const row of this.#own(owner)) this.#rows.delete(row)
    }
    const listed = header === null || header.trim() === '*' ? '' : header
    const asked = readContacts(listed, default_seconds)
    // `maddr` would send requests to another address than the host (RFC 3261 §19.1.1). Refuse it (docs/calls.md).
    if (asked.length < splitList(listed).length || asked.some(({ has_maddr }) => has_maddr)) {
      request.respond(400, { reason: 'Bad Contact' })
      return
    }
    if (asked.some(contact => contact.expires_seconds > 0 && contact.expires_seconds < LEAST_SECONDS)) {
      request.respond(423, { headers: { 'Min-Expires': String(LEAST_SECONDS) } })
      return
    }
    const machine_id = await this.#machineOf(request)
    const now_ms = clock.now()
    await this.#evict(this.#replaced(this.#own(owner), asked))
    for (const { uri, expires_seconds, instance } of asked) {
      const row: RegistrationRow = {
        credential_id,
        contact: uri,
        trunk_id,
        source_address: request.source.address,
        source_port: request.source.port,
        transport: request.source.transport,
        machine_id,
        key_id,
        user_agent: request.header('user-agent')?.slice(0, 200) ?? null,
        registered_at: iso(now_ms),
        expires_at: iso(Math.min(until_ms, now_ms + Math.min(expires_seconds, MOST_SECONDS) * 1000)),
      }
      if (expires_seconds === 0) {
        await removeRegistrations(state.db, credential_id, uri)
        this.#rows.delete(row)
      } else {
        await saveRegistration(state.db, row)
        this.#rows.set(row)
        if (instance !== null) this.#devices.set(row, instance)
      }
    }
    await this.#makeRoom(owner, now_ms)
    const bound = this.#own(owner).sort(byTime)
    this.#options.others?.ring('registrations')
    const contacts = bound.map(row => {
      const left = Math.max(0, Math.round((Date.parse(row.expires_at) - now_ms) / 1000))
      return `<${row.contact}>;expires=${left}`
    })
    log.info({ credential_id, trunk_id, contacts: contacts.length, source: request.source.address }, 'registered')
    request.respond(200, { headers: contacts.length === 0 ? {} : { Contact: contacts.join(', ') } })
  }

  #contactOf(row: RegistrationRow): Contact {
    const { contact, source_address, transport } = row
    const direct = transport === 'udp' && hostOf(contact) === source_address
    const place = direct ? placeOf(contact) : { protocol: transport, port: row.source_port }
    const by = place.protocol === 'udp' ? '' : `;transport=${place.protocol}`
    const flow = `sip:${uriHost(source_address)}:${place.port}${by}`
    // Each machine connects to a contact that needs no flow over UDP. A datagram comes from where it registered.
    const own = this.#isOwn(row) || (direct && place.protocol !== 'udp')
    return {
      uri: contact,
      proxy: own ? (direct ? null : flow) : `${flow};${MACHINE_PARAMETER}=${row.machine_id}`,
      proven_host: source_address,
      transport,
    }
  }
}

/** The earliest registration first. Those of one millisecond keep their order: a row that is saved again moves last. */
const byTime = (a: RegistrationRow, b: RegistrationRow): number =>
  a.registered_at === b.registered_at ? 0 : a.registered_at < b.registered_at ? -1 : 1

/** Where a contact says that it is. */
function placeOf(contact: string): { readonly protocol: string; readonly port: number } {
  const uri = parseUri(contact)
  const protocol = (uri && protocolOf(uri)) ?? 'udp'
  return { protocol, port: uri?.port ?? (protocol === 'tls' ? 5061 : 5060) }
}

const readContacts = (header: string, default_seconds: number): Asked[] =>
  readAddresses(header)
    .filter(({ scheme }) => scheme === 'sip' || scheme === 'sips')
    .map(({ uri, params, of_uri }) => ({
      uri,
      expires_seconds: readSeconds(params.get('expires')) ?? default_seconds,
      has_maddr: of_uri.has('maddr'),
      instance: params.has('+sip.instance') ? `${params.get('+sip.instance')} ${params.get('reg-id') ?? ''}` : null,
    }))
