import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import type { Timer } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { isListenerToken, LISTENER_TOKEN } from '../../core/runtime/listener-token.ts'
import { withoutScope } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { projectOf } from '../http/project-context.ts'
import { isRefusal, notFound, type Refusal } from '../http/reply.ts'
import { refusalOf } from '../http/send.ts'
import type { HttpServices } from '../http/services.ts'
import { type Doors, entering, refuseUpgrade } from '../http/upgrade.ts'

/**
 * Those who listen to live calls. A listener is made by a request that is audited; then its two ends come as
 * WebSockets: the ear, which is the person's, and the source, which is the media worker's. Frames go from the source to
 * the ear as they are. Each end that goes takes the other with it.
 */

/** What may listen to calls: the scope for what is said in them. */
export const LISTENS = 'recordings:manage'

/** For both ends to come. A busy node begins a stream late, and never after that. */
const MEET_MS = 60_000
const CHECK_CREDENTIAL_MS = 60_000
export const MAX_LISTENERS_OF_CALL = 4
const MAX_IN_ALL = 100
/** An ear that reads too slowly loses audio instead of hearing it late. */
const MAX_UNREAD_BYTES = 256 * 1024
const MAX_FRAME_BYTES = 64 * 1024

interface Listener {
  readonly id: string
  readonly call_sid: string
  readonly project_id: string
  /** The caller who made it: nobody else gets in. */
  readonly owner: string
  meeting: Timer | null
  ear: WebSocket | null
  source: WebSocket | null
  over: boolean
}

export class Listeners {
  readonly #listeners = new Map<string, Listener>()
  readonly #clock: HttpServices['clock']

  constructor(clock: HttpServices['clock']) {
    this.#clock = clock
  }

  /** Makes a listener; null when there are as many as may be. It goes when its two ends do not come. */
  make(of: { readonly call_sid: string; readonly project_id: string; readonly caller: Caller }): string | null {
    const { call_sid, project_id, caller } = of
    const there = [...this.#listeners.values()].filter(one => one.call_sid === call_sid)
    if (there.length >= MAX_LISTENERS_OF_CALL || this.#listeners.size >= MAX_IN_ALL) return null
    const id = `lsn_${newId.uuid()}`
    const listener: Listener = {
      ...{ id, call_sid, project_id, owner: caller.id },
      ...{ meeting: null, ear: null, source: null, over: false },
    }
    listener.meeting = this.#clock.after(MEET_MS, () => this.end(listener, 'the call could not be heard'))
    this.#listeners.set(id, listener)
    return id
  }

  find(id: string): Listener | undefined {
    return this.#listeners.get(id)
  }

  /** Takes one of the two ends. False when it has come already. */
  take(listener: Listener, which: 'ear' | 'source', socket: WebSocket): boolean {
    if (listener.over || listener[which]) return false
    listener[which] = socket
    socket.on('error', () => socket.terminate())
    socket.on('close', () => this.end(listener, which === 'source' ? 'the call has ended' : 'the listener left'))
    if (which === 'source') socket.on('message', (frame, binary) => pass(frame, binary, listener.ear))
    if (listener.ear && listener.source) listener.meeting?.cancel()
    return true
  }

  end(listener: Listener, why: string): void {
    if (listener.over) return
    listener.over = true
    listener.meeting?.cancel()
    this.#listeners.delete(listener.id)
    for (const socket of [listener.ear, listener.source]) socket?.close(1000, why)
  }

  endAll(): void {
    for (const listener of this.#listeners.values()) this.end(listener, 'going away')
  }
}

function pass(frame: RawData, binary: boolean, ear: WebSocket | null): void {
  if (!ear || ear.readyState !== ear.OPEN || ear.bufferedAmount > MAX_UNREAD_BYTES) return
  ear.send(frame, { binary })
}

/** Admits the two ends: sources at `/listeners/<id>`, ears below the paths of `doors`. */
export function listenerDoors(services: HttpServices, doors: Doors) {
  const { clock, log, listeners, settings, state } = services
  const server = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME_BYTES, perMessageDeflate: false })
  const unknown = (): Refusal => notFound('this listener')

  const source = (request: IncomingMessage, id: string): Listener | Refusal => {
    const token = request.headers[LISTENER_TOKEN]
    const proved = isListenerToken(settings.master_key, id, typeof token === 'string' ? token : '')
    return (proved && listeners.find(id)) || unknown()
  }

  const ear = async (request: IncomingMessage, id: string, door: Doors[string]): Promise<Listener | Refusal> => {
    const caller = await entering(services, door, request)
    if (isRefusal(caller)) return caller
    const refused = withoutScope(caller, LISTENS)
    if (refused) return refused
    const listener = listeners.find(id)
    if (!listener || listener.owner !== caller.id) return unknown()
    const project = await projectOf(state.db, caller, listener.project_id)
    return isRefusal(project) ? unknown() : listener
  }

  /** A listener whose credential or scope is withdrawn hears no more. */
  const watch = (request: IncomingMessage, listener: Listener, door: Doors[string], socket: WebSocket): void => {
    const timer = clock.every(CHECK_CREDENTIAL_MS, () => {
      ear(request, listener.id, door)
        .then(still => isRefusal(still) && listeners.end(listener, 'the credential is no longer good'))
        .catch(err => log.error({ err }, 'the credential of a listener could not be checked'))
    })
    socket.on('close', () => timer.cancel())
  }

  return {
    /** Handles the request for a WebSocket; false when it is of no listener. */
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
      const { pathname } = new URL(request.url ?? '/', 'http://strowger')
      const [, prefix = '', id = ''] = /^(.*)\/listeners\/(lsn_[0-9a-f-]{36})$/.exec(pathname) ?? []
      const door = Object.hasOwn(doors, prefix) ? doors[prefix] : undefined
      if (id === '' || (prefix !== '' && !door)) return false
      socket.on('error', () => socket.destroy())
      Promise.resolve(door ? ear(request, id, door) : source(request, id))
        .catch(error => refusalOf(error, services, { request_id: newId.request() }))
        .then(listener => {
          if (isRefusal(listener)) return refuseUpgrade(socket, listener, services)
          server.handleUpgrade(request, socket, head, opened => {
            if (!listeners.take(listener, door ? 'ear' : 'source', opened)) opened.close(1008, 'it is there already')
            else if (door) watch(request, listener, door, opened)
          })
        })
        .catch(err => {
          log.error({ err }, 'a listener could not be admitted')
          socket.destroy()
        })
      return true
    },
    close() {
      listeners.endAll()
      server.close()
    },
  }
}
