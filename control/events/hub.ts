import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { iso, type Timer } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { Sleeper } from '../../core/runtime/sleeper.ts'
import { mayUse, withoutScope } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { projectOf } from '../http/project-context.ts'
import { isRefusal, notFound, type Refusal, refuse } from '../http/reply.ts'
import { refusalOf } from '../http/send.ts'
import type { HttpServices } from '../http/services.ts'
import { type Doors, entering, refuseUpgrade, targetOf } from '../http/upgrade.ts'
import { seesAlerts } from '../v1/alert-present.ts'
import { presentCall } from '../v1/call-present.ts'
import { seenTrunks } from '../v1/seen-trunks.ts'
import type { LiveEvent } from './types.ts'
import { ProjectWatch } from './watch.ts'

/** Live events over WebSocket: admits clients and sends them the events that they may see. */

interface EventsHub {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): void
}

const PERIOD_MS = 500
/** The least time between two looks, so that a burst of wake-ups causes one. */
const LEAST_GAP_MS = 100
const PING_MS = 30_000
const CHECK_CREDENTIAL_MS = 60_000
const MAX_CLIENTS = 200
/** One customer leaves room for the others. */
const MAX_OF_PROJECT = 50
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024

interface Client {
  readonly socket: WebSocket
  readonly request: IncomingMessage
  readonly authenticate: Doors[string]['authenticate']
  readonly project_id: string
  caller: Caller
  /** The visible trunks of a caller that is restricted to a subaccount; null: all trunks. */
  trunks: ReadonlySet<string> | null
  alive: boolean
}

interface Watched {
  readonly watch: ProjectWatch
  readonly clients: Set<Client>
  /** How many clients wait for their first look. The watch stays while there are any. */
  joining: number
}

export const createEventsHub = (services: HttpServices, paths: Doors): EventsHub => new Hub(services, paths)

class Hub implements EventsHub {
  readonly #services: HttpServices
  readonly #paths: Doors
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: 1024, perMessageDeflate: false })
  readonly #watched = new Map<string, Watched>()
  /** The project of each open connection, also of one that has not joined yet. */
  readonly #open = new Map<Duplex, string>()
  readonly #sleeper: Sleeper
  readonly #ends: readonly (() => void)[]
  #last_ms = -LEAST_GAP_MS
  #pending: Timer | null = null
  #closed = false

  constructor(services: HttpServices, paths: Doors) {
    this.#services = services
    this.#paths = paths
    const { bus, clock, log } = services
    this.#sleeper = new Sleeper({
      work: () => this.#lookAll(),
      failed: err => log.error({ err }, 'live events could not be read'),
    })
    const timers = [
      clock.every(PERIOD_MS, () => this.#look()),
      clock.every(PING_MS, () => this.#ping()),
      clock.every(CHECK_CREDENTIAL_MS, () => this.#recheck()),
    ]
    this.#ends = [
      ...timers.map(timer => () => timer.cancel()),
      ...(['calls', 'jobs', 'configuration', 'outbox'] as const).map(topic => bus.on(topic, () => this.#look())),
    ]
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { log } = this.#services
    this.#admit(request)
      .catch(error => refusalOf(error, this.#services, { request_id: newId.request() }))
      .then(admitted => {
        if (isRefusal(admitted)) return refuseUpgrade(socket, admitted, this.#services)
        if (this.#closed || socket.destroyed) return void socket.destroy()
        const full = this.#full(admitted.project_id)
        if (full) return refuseUpgrade(socket, full, this.#services)
        this.#open.set(socket, admitted.project_id)
        socket.once('close', () => this.#open.delete(socket))
        this.#server.handleUpgrade(request, socket, head, opened => this.#opened({ ...admitted, socket: opened }))
      })
      .catch(err => {
        log.error({ err }, 'an upgrade could not be handled')
        socket.destroy()
      })
  }

  close(): void {
    this.#closed = true
    this.#pending?.cancel()
    for (const end of this.#ends) end()
    for (const { clients } of this.#watched.values())
      for (const { socket } of clients) {
        socket.close(1001, 'going away')
        this.#services.clock.after(1000, () => socket.terminate())
      }
    this.#server.close()
  }

  async #admit(request: IncomingMessage): Promise<Omit<Client, 'socket'> | Refusal> {
    const url = targetOf(request)
    const path = url && Object.hasOwn(this.#paths, url.pathname) ? this.#paths[url.pathname] : undefined
    if (!url || !path) return notFound('this path')
    const caller = await entering(this.#services, path, request)
    if (isRefusal(caller)) return caller
    const refused = refusedFor(caller)
    if (refused) return refused
    const header = request.headers['x-project-id']
    const wanted = typeof header === 'string' ? header : (url.searchParams.get('project_id') ?? undefined)
    const project = await projectOf(this.#services.state.db, caller, wanted)
    if (isRefusal(project)) return project
    return { request, authenticate: path.authenticate, project_id: project.id, caller, trunks: null, alive: true }
  }

  /** Refuses one more connection of a project when it, or the platform, has as many as may be. */
  #full(project_id: string): Refusal | null {
    const many = (value: string): Refusal => refuse('rate_limited', { value })
    const of_project = [...this.#open.values()].filter(one => one === project_id).length
    if (of_project >= MAX_OF_PROJECT) return many(`${MAX_OF_PROJECT} listeners of a project`)
    return this.#open.size >= MAX_CLIENTS ? many(`${MAX_CLIENTS} listeners`) : null
  }

  #opened(client: Client): void {
    const { log } = this.#services
    const { socket } = client
    socket.on('error', err => log.debug({ err }, 'a listener of live events went away'))
    socket.on('pong', () => {
      client.alive = true
    })
    this.#join(client).catch(err => {
      log.error({ err }, 'a listener could not join')
      socket.close(1011)
    })
  }

  async #join(client: Client): Promise<void> {
    const { clock } = this.#services
    const { socket, project_id } = client
    const now_ms = clock.now()
    let entry = this.#watched.get(project_id)
    if (!entry) {
      entry = { watch: new ProjectWatch(project_id, iso(now_ms)), clients: new Set(), joining: 0 }
      this.#watched.set(project_id, entry)
    }
    const { watch, clients } = entry
    entry.joining++
    try {
      client.trunks = client.caller.subaccount_id === null ? null : await this.#trunksOf(client)
      // Look first, so that no change is lost between the client's initial list and its first event.
      tell(clients, await watch.look(this.#services.state.db, clock.now()), clock.now())
    } finally {
      entry.joining--
    }
    if (socket.readyState !== socket.OPEN) return
    clients.add(client)
    socket.once('close', () => clients.delete(client))
    send(client, JSON.stringify({ type: 'hello', at: iso(now_ms), project_id }))
    const calls = watch.live.filter(row => client.trunks === null || client.trunks.has(row.trunk_id ?? ''))
    send(client, JSON.stringify({ type: 'calls', at: iso(now_ms), calls: calls.map(presentCall) }))
  }

  #look(): void {
    if (this.#closed || this.#watched.size === 0 || this.#pending) return
    const { clock } = this.#services
    const wait_ms = this.#last_ms + LEAST_GAP_MS - clock.monotonic_ms()
    if (wait_ms <= 0) return void this.#sleeper.wake()
    this.#pending = clock.after(wait_ms, () => {
      this.#pending = null
      this.#look()
    })
  }

  async #lookAll(): Promise<void> {
    const { state, clock } = this.#services
    this.#last_ms = clock.monotonic_ms()
    for (const [project_id, entry] of this.#watched) {
      const { watch, clients } = entry
      const events = await watch.look(state.db, clock.now())
      if (clients.size === 0 && entry.joining === 0) this.#watched.delete(project_id)
      for (const client of clients) {
        if (client.caller.subaccount_id !== null) client.trunks = await this.#trunksOf(client)
        tell([client], events, clock.now())
      }
    }
  }

  async #trunksOf({ caller, project_id }: Client): Promise<ReadonlySet<string> | null> {
    const seen = await seenTrunks(this.#services.state.db, project_id, caller, undefined)
    return Array.isArray(seen) ? new Set(seen) : null
  }

  #recheck(): void {
    for (const { clients } of this.#watched.values())
      for (const client of clients)
        client
          .authenticate(client.request)
          .then(caller => {
            if (isRefusal(caller) || refusedFor(caller)) client.socket.close(1008, 'the credential is no longer good')
            else client.caller = caller
          })
          .catch(err => this.#services.log.error({ err }, 'a credential could not be checked'))
  }

  #ping(): void {
    for (const { clients } of this.#watched.values())
      for (const client of clients) {
        if (!client.alive) client.socket.terminate()
        client.alive = false
        client.socket.ping()
      }
  }
}

/** Sends events to the clients that may see them. */
function tell(clients: Iterable<Client>, events: readonly LiveEvent[], now_ms: number): void {
  for (const client of clients)
    for (const event of events) if (mayHear(client, event)) send(client, textOf(event, now_ms))
}

function send({ socket }: Client, text: string): void {
  if (socket.readyState !== socket.OPEN) return
  if (socket.bufferedAmount > MAX_BUFFERED_BYTES) socket.close(1013, 'too slow')
  else socket.send(text)
}

const refusedFor = (caller: Caller): Refusal | null => withoutScope(caller, 'live_calls:read')

function mayHear({ caller, trunks }: Client, event: LiveEvent): boolean {
  if (trunks !== null && (event.trunk_id === null || !trunks.has(event.trunk_id))) return false
  switch (event.type) {
    case 'call':
      return true
    case 'alert':
      return seesAlerts(event.alert.kind, caller)
    case 'trunk_test':
      return mayUse(caller, 'tests:manage')
    default:
      return mayUse(caller, 'service_configuration:read')
  }
}

const textOf = (event: LiveEvent, now_ms: number): string => {
  const { type, trunk_id, ...rest } = event
  const named = type === 'trunk_apply' || type === 'trunk_test' ? { trunk_id } : {}
  return JSON.stringify({ type, at: iso(now_ms), ...named, ...rest })
}
