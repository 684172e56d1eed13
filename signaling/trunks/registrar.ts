import { holdsAddress } from '../../core/domain/identity/index.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import { iso } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { State } from '../../core/state/index.ts'
import {
  liveRegistrations,
  pruneRegistrations,
  type RegistrationRow,
  removeRegistrations,
  saveRegistration,
} from '../../core/state/registrations.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import type { DigestAuthenticator } from './digest.ts'
import type { Snapshot } from './snapshot.ts'

/** Registrations of digest users (RFC 3261 §10): each contact is one more target of its trunk while it lasts. */

export interface Contact {
  readonly uri: string
  /** Where its packets came from, when that is another address than the contact names: it sits behind a NAT. */
  readonly proxy: string | null
  readonly transport: string
}

interface Asked {
  readonly uri: string
  readonly expires_seconds: number
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
}

export class Registrar {
  readonly #options: RegistrarOptions
  /** By credential and contact; rows first, so that a successor of this node knows them. */
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

  /** Where the trunk's users can be called now. */
  contacts(trunk_id: string): Contact[] {
    const now = iso(this.#options.clock.now())
    const live: Contact[] = []
    for (const [key, row] of this.#rows) {
      if (row.expires_at <= now) this.#rows.delete(key)
      else if (row.trunk_id === trunk_id) live.push(contactOf(row))
    }
    return live
  }

  async handle(request: InboundRequest): Promise<void> {
    const { digest, snapshot, log } = this.#options
    const outcome = digest.check(request)
    if (outcome.kind === 'challenge') {
      request.respond(401, { challenges: outcome.challenges })
      return
    }
    const trunk = outcome.kind === 'authenticated' ? snapshot().trunks.get(outcome.trunk_id) : undefined
    const strict = trunk?.source_validation === 'strict' && !holdsAddress(trunk.source_index, request.source.address)
    if (outcome.kind !== 'authenticated' || !trunk?.enabled || strict) {
      request.respond(403)
      return
    }
    try {
      await this.#register(request, outcome.credential_id, trunk.id)
    } catch (err) {
      log.error({ err, trunk_id: trunk.id }, 'a registration was not saved')
      request.respond(503, { headers: { 'Retry-After': '5' } })
    }
  }

  async #register(request: InboundRequest, credential_id: string, trunk_id: string): Promise<void> {
    const { state, clock, log } = this.#options
    const header = request.header('contact') ?? request.header('m')
    const default_seconds = seconds(request.header('expires')) ?? DEFAULT_SECONDS
    if (header?.trim() === '*') {
      if (default_seconds !== 0) {
        request.respond(400)
        return
      }
      await removeRegistrations(state.db, credential_id, null)
      for (const [key, row] of this.#rows) if (row.credential_id === credential_id) this.#rows.delete(key)
    }
    const asked = header === null || header.trim() === '*' ? [] : readContacts(header, default_seconds)
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
        expires_at: iso(now_ms + Math.min(expires_seconds, MOST_SECONDS) * 1000),
      }
      if (expires_seconds === 0) {
        await removeRegistrations(state.db, credential_id, uri)
        this.#rows.delete(keyOf(row))
      } else {
        await saveRegistration(state.db, row)
        this.#rows.set(keyOf(row), row)
      }
    }
    const bound = [...this.#rows.values()].filter(row => row.credential_id === credential_id)
    const contacts = bound.map(row => {
      const left = Math.max(0, Math.round((Date.parse(row.expires_at) - now_ms) / 1000))
      return `<${row.contact}>;expires=${left}`
    })
    log.info({ trunk_id, contacts: contacts.length, source: request.source.address }, 'registered')
    request.respond(200, { headers: contacts.length === 0 ? {} : { Contact: contacts.join(', ') } })
  }
}

const keyOf = (row: Pick<RegistrationRow, 'credential_id' | 'contact'>): string => `${row.credential_id} ${row.contact}`

function contactOf(row: RegistrationRow): Contact {
  const host = /^sips?:(?:[^@]*@)?(\[[^\]]*\]|[^:;?>]+)/i.exec(row.contact)?.[1]?.replace(/^\[|\]$/g, '')
  const address = row.source_address.includes(':') ? `[${row.source_address}]` : row.source_address
  const transport = row.transport === 'udp' ? '' : `;transport=${row.transport}`
  return {
    uri: row.contact,
    proxy: host === row.source_address ? null : `sip:${address}:${row.source_port}${transport}`,
    transport: row.transport,
  }
}

const seconds = (text: string | null): number | null =>
  text !== null && /^\s*\d{1,9}\s*$/.test(text) ? Number(text) : null

function readContacts(header: string, default_seconds: number): Asked[] {
  const contacts: Asked[] = []
  for (const match of header.matchAll(/<([^<>"\s]{1,512})>([^,]*)|(sips?:[^,;<>"\s]{1,512})([^,]*)/g)) {
    const uri = match[1] ?? match[3] ?? ''
    if (!/^sips?:/i.test(uri) || contacts.length >= MAX_CONTACTS) continue
    const own = /;\s*expires\s*=\s*"?(\d{1,9})/i.exec(match[2] ?? match[4] ?? '')?.[1]
    contacts.push({ uri, expires_seconds: own === undefined ? default_seconds : Number(own) })
  }
  return contacts
}
