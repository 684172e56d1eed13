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
import { type Doors, entering, refuseUpgrade } from '../http/upgrade.ts'
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

export function createEventsHub(services: HttpServices, paths: Doors): EventsHub {
  const { state, bus, clock, log } = services
  const server = new WebSocketServer({ noServer: true, maxPayload: 1024, perMessageDeflate: false })
  const watched = new Map<string, Watched>()
  let last_ms = -LEAST_GAP_MS
  let pending: Timer | null = null
  let closed = false
  let count = 0

  const lookAll = async (): Promise<void> => {
    last_ms = clock.monotonic_ms()
    for (const [project_id, entry] of watched) {
      const { watch, clients } = entry
      const events = await watch.look(state.db, clock.now())
      if (clients.size === 0 && entry.joining === 0) watched.delete(project_id)
      for (const client of clients) {
        if (client.caller.subaccount_id !== null) client.trunks = await trunksOf(client)
        for (const event of events) if (mayHear(client, event)) send(client, textOf(event, clock.now()))
      }
    }
  }
  const trunksOf = async ({ caller, project_id }: Client): Promise<ReadonlySet<string> | null> => {
    const seen = await seenTrunks(state.db, project_id, caller, undefined)
    return Array.isArray(seen) ? new Set(seen) : null
  }
  const look = (): void => {
    if (closed || watched.size === 0 || pending) return
    const wait_ms = last_ms + LEAST_GAP_MS - clock.monotonic_ms()
    if (wait_ms > 0) {
      pending = clock.after(wait_ms, () => {
        pending = null
        look()
      })
      return
    }
    void sleeper.wake()
  }
  const sleeper = new Sleeper({
    work: lookAll,
    failed: err => log.error({ err }, 'live events could not be read'),
  })

  const send = (client: Client, text: string): void => {
    if (client.socket.readyState !== client.socket.OPEN) return
    if (client.socket.bufferedAmount > MAX_BUFFERED_BYTES) client.socket.close(1013, 'too slow')
    else client.socket.send(text)
  }

  const recheck = (): void => {
    for (const { clients } of watched.values())
      for (const client of clients)
        client
          .authenticate(client.request)
          .then(caller => {
            if (isRefusal(caller) || refusedFor(caller)) client.socket.close(1008, 'the credential is no longer good')
            else client.caller = caller
          })
          .catch(err => log.error({ err }, 'a credential could not be checked'))
  }
  const ping = (): void => {
    for (const { clients } of watched.values())
      for (const client of clients) {
        if (!client.alive) client.socket.terminate()
        client.alive = false
        client.socket.ping()
      }
  }

  const admit = async (request: IncomingMessage): Promise<Omit<Client, 'socket'> | Refusal> => {
    const url = new URL(request.url ?? '/', 'http://strowger')
    const path = Object.hasOwn(paths, url.pathname) ? paths[url.pathname] : undefined
    if (!path) return notFound('this path')
    const caller = await entering(services, path, request)
    if (isRefusal(caller)) return caller
    const refused = refusedFor(caller)
    if (refused) return refused
    const header = request.headers['x-project-id']
    const wanted = typeof header === 'string' ? header : (url.searchParams.get('project_id') ?? undefined)
    const project = await projectOf(state.db, caller, wanted)
    if (isRefusal(project)) return project
    if (count >= MAX_CLIENTS) return refuse('rate_limited', { value: `${MAX_CLIENTS} listeners` })
    return { request, authenticate: path.authenticate, project_id: project.id, caller, trunks: null, alive: true }
  }

  const join = async (client: Client): Promise<void> => {
    const { socket, project_id } = client
    const now_ms = clock.now()
    let entry = watched.get(project_id)
    if (!entry) {
      entry = { watch: new ProjectWatch(project_id, iso(now_ms)), clients: new Set(), joining: 0 }
      watched.set(project_id, entry)
    }
    const { watch, clients } = entry
    entry.joining++
    try {
      client.trunks = client.caller.subaccount_id === null ? null : await trunksOf(client)
      // Look first, so that no change is lost between the client's initial list and its first event.
      const events = await watch.look(state.db, clock.now())
      for (const other of clients)
        for (const event of events) if (mayHear(other, event)) send(other, textOf(event, clock.now()))
    } finally {
      entry.joining--
    }
    if (socket.readyState !== socket.OPEN) return
    clients.add(client)
    count++
    socket.once('close', () => {
      if (clients.delete(client)) count--
    })
    send(client, JSON.stringify({ type: 'hello', at: iso(now_ms), project_id }))
    const calls = watch.live.filter(row => client.trunks === null || client.trunks.has(row.trunk_id ?? ''))
    send(client, JSON.stringify({ type: 'calls', at: iso(now_ms), calls: calls.map(presentCall) }))
  }

  const timers = [clock.every(PERIOD_MS, look), clock.every(PING_MS, ping), clock.every(CHECK_CREDENTIAL_MS, recheck)]
  const unheard = (['calls', 'jobs', 'configuration', 'outbox'] as const).map(topic => bus.on(topic, look))
  return {
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      admit(request)
        .catch(error => refusalOf(error, services, { request_id: newId.request() }))
        .then(admitted => {
          if (isRefusal(admitted)) return refuseUpgrade(socket, admitted, services)
          if (closed || socket.destroyed) return void socket.destroy()
          server.handleUpgrade(request, socket, head, opened => {
            const client: Client = { ...admitted, socket: opened }
            opened.on('error', err => log.debug({ err }, 'a listener of live events went away'))
            opened.on('pong', () => {
              client.alive = true
            })
            join(client).catch(err => {
              log.error({ err }, 'a listener could not join')
              opened.close(1011)
            })
          })
        })
        .catch(err => {
          log.error({ err }, 'an upgrade could not be handled')
          socket.destroy()
        })
    },
    close() {
      closed = true
      pending?.cancel()
      for (const timer of timers) timer.cancel()
      for (const unhear of unheard) unhear()
      for (const { clients } of watched.values())
        for (const { socket } of clients) {
          socket.close(1001, 'going away')
          clock.after(1000, () => socket.terminate())
        }
      server.close()
    },
  }
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
