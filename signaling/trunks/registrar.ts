import { holdsAddress, projectOfClientDomain, uriHost } from '../../core/domain/identity/index.ts'
import { hostOf, readAddress, readAddresses } from '../../core/domain/sip/address.ts'
import { splitList } from '../../core/domain/sip/uri.ts'
import { readSeconds } from '../../core/domain/sip/values.ts'
import { type Clock, iso } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import {
  liveRegistrations,
  pruneRegistrations,
  type RegistrationRow,
  removeRegistrations,
  saveRegistration,
} from '../../core/state/calls/registrations.ts'
import type { State } from '../../core/state/index.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import type { DigestAuthenticator } from './digest.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * Registrations (RFC 3261 §10). A digest user's contact is an additional target of its trunk until it expires. A
 * browser client's contact makes `client:<name>` of its project reachable, over the connection that registered it.
 */

interface Contact {
  readonly uri: string
  /**
   * The next hop: the connection that registered it. Over UDP it is the source address if the contact names another,
   * because the peer is then behind a NAT; otherwise null.
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
}

const DEFAULT_SECONDS = 3600
const LEAST_SECONDS = 60
const MOST_SECONDS = 7200
const MAX_CONTACTS = 10

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
}

/** The user whose contacts a REGISTER changes. */
interface Owner {
  /** The digest credential, or `client:<project>:<name>`. */
  readonly credential_id: string
  /** The user's trunk; empty for a client. */
  readonly trunk_id: string
  /** The epoch ms at which the client's token expires; infinite for a digest user. */
  readonly until_ms: number
}

const clientKey = (project_id: string, client: string): string => `client:${project_id}:${client}`

export class Registrar {
  readonly #options: RegistrarOptions
  /** Keyed by credential and contact. The database is written first, so that a successor of this node has them too. */
  readonly #rows = new Map<string, RegistrationRow>()

  constructor(options: RegistrarOptions) {
    this.#options = options
  }

  async load(): Promise<void> {
    const { state, clock } = this.#options
    await pruneRegistrations(state.db, clock.now())
    for (const row of await liveRegistrations(state.db, clock.now())) this.#rows.set(keyOf(row), row)
  }

  get size(): number {
    return this.#rows.size
  }

  /** Returns the live contacts of the trunk's users. */
  contacts(trunk_id: string): Contact[] {
    const now = iso(this.#options.clock.now())
    const live: Contact[] = []
    for (const [key, row] of this.#rows) {
      if (row.expires_at <= now) this.#rows.delete(key)
      else if (row.trunk_id === trunk_id) live.push(contactOf(row))
    }
    return live
  }

  /** Returns the live contacts of a client, the latest registration first. */
  clientContacts(project_id: string, client: string): Contact[] {
    const now = iso(this.#options.clock.now())
    const key = clientKey(project_id, client)
    return [...this.#rows.values()]
      .filter(row => row.credential_id === key && row.expires_at > now)
      .sort((a, b) => (a.registered_at < b.registered_at ? 1 : -1))
      .map(contactOf)
  }

  async handle(request: InboundRequest): Promise<void> {
    const { log, domain } = this.#options
    const project_id = projectOfClientDomain(hostOf(request.uri), domain)
    const owner = project_id === null ? this.#digestUser(request) : this.#client(request, project_id)
    if (!owner) return
    const { credential_id } = owner
    try {
      await this.#register(request, owner)
    } catch (err) {
      log.error({ err, credential_id }, 'a registration was not saved')
      request.respond(503, { headers: { 'Retry-After': '5' } })
    }
  }

  /** Authenticates a digest user; null when the request has been answered. */
  #digestUser(request: InboundRequest): Owner | null {
    const { digest, snapshot } = this.#options
    const outcome = digest.check(request)
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
    return { credential_id: outcome.credential_id, trunk_id: trunk.id, until_ms: Number.POSITIVE_INFINITY }
  }

  #client(request: InboundRequest, project_id: string): Owner | null {
    const { digest, authToken } = this.#options
    const outcome = digest.checkClient(request, { project_id, auth_token: authToken(project_id) })
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
    return { credential_id: clientKey(project_id, client), trunk_id: '', until_ms: expires_at_seconds * 1000 }
  }

  async #register(request: InboundRequest, { credential_id, trunk_id, until_ms }: Owner): Promise<void> {
    const { state, clock, log } = this.#options
    const header = request.header('contact') ?? request.header('m')
    const default_seconds = readSeconds(request.header('expires')) ?? DEFAULT_SECONDS
    if (header?.trim() === '*') {
      if (default_seconds !== 0) {
        request.respond(400)
        return
      }
      await removeRegistrations(state.db, credential_id, null)
      for (const [key, row] of this.#rows) if (row.credential_id === credential_id) this.#rows.delete(key)
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
    const now_ms = clock.now()
    for (const { uri, expires_seconds } of asked) {
      const row: RegistrationRow = {
        credential_id,
        contact: uri,
        trunk_id,
        source_address: request.source.address,
        source_port: request.source.port,
        transport: request.source.transport,
        user_agent: request.header('user-agent')?.slice(0, 200) ?? null,
        registered_at: iso(now_ms),
        expires_at: iso(Math.min(until_ms, now_ms + Math.min(expires_seconds, MOST_SECONDS) * 1000)),
      }
      if (expires_seconds === 0) {
        await removeRegistrations(state.db, credential_id, uri)
        this.#rows.delete(keyOf(row))
      } else {
        await saveRegistration(state.db, row)
        this.#rows.set(keyOf(row), row)
      }
    }
    const bound = [...this.#rows.values()]
      .filter(row => row.credential_id === credential_id)
      .sort((a, b) => (a.registered_at < b.registered_at ? -1 : 1))
    // A reloaded browser registers a new contact, so the oldest contacts are evicted.
    for (const row of bound.splice(0, Math.max(0, bound.length - MAX_CONTACTS))) {
      await removeRegistrations(state.db, credential_id, row.contact)
      this.#rows.delete(keyOf(row))
    }
    const contacts = bound.map(row => {
      const left = Math.max(0, Math.round((Date.parse(row.expires_at) - now_ms) / 1000))
      return `<${row.contact}>;expires=${left}`
    })
    log.info({ credential_id, trunk_id, contacts: contacts.length, source: request.source.address }, 'registered')
    request.respond(200, { headers: contacts.length === 0 ? {} : { Contact: contacts.join(', ') } })
  }
}

const keyOf = (row: Pick<RegistrationRow, 'credential_id' | 'contact'>): string => `${row.credential_id} ${row.contact}`

function contactOf(row: RegistrationRow): Contact {
  const transport = row.transport === 'udp' ? '' : `;transport=${row.transport}`
  return {
    uri: row.contact,
    proxy:
      row.transport === 'udp' && hostOf(row.contact) === row.source_address
        ? null
        : `sip:${uriHost(row.source_address)}:${row.source_port}${transport}`,
    proven_host: row.source_address,
    transport: row.transport,
  }
}

const readContacts = (header: string, default_seconds: number): Asked[] =>
  readAddresses(header)
    .filter(({ scheme }) => scheme === 'sip' || scheme === 'sips')
    .map(({ uri, params, of_uri }) => ({
      uri,
      expires_seconds: readSeconds(params.get('expires')) ?? default_seconds,
      has_maddr: of_uri.has('maddr'),
    }))
