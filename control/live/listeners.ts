import type { RawData, WebSocket } from 'ws'
import type { Timer } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import type { Caller } from '../http/caller.ts'
import type { HttpServices } from '../http/services.ts'

/**
 * The listeners of live calls. An audited request makes a listener. Then its two ends connect by WebSocket: the ear,
 * which is the person's, and the source, which is the media worker's. Frames go from the source to
 * the ear as they are. Each end that goes takes the other with it.
 */

/** What may listen to calls: the scope for what is said in them. */
export const LISTENS = 'recordings:manage'

/** For both ends to come. A busy node begins a stream late, and never after that. */
const MEET_MS = 60_000
const MAX_OF_CALL = 4
/** One customer leaves room for the others. */
const MAX_OF_PROJECT = 20
const MAX_IN_ALL = 100
/** An ear that reads too slowly loses audio instead of hearing it late. */
const MAX_UNREAD_BYTES = 256 * 1024

export interface CallListener {
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

/** Who has as many listeners as may be. */
interface Full {
  readonly of: string
  readonly limit: number
}

export class Listeners {
  readonly #listeners = new Map<string, CallListener>()
  readonly #clock: HttpServices['clock']

  constructor(clock: HttpServices['clock']) {
    this.#clock = clock
  }

  /** Makes a listener. It ends when its two ends do not come. Returns its id, or the limit that is reached. */
  make(of: { readonly call_sid: string; readonly project_id: string; readonly caller: Caller }): string | Full {
    const { call_sid, project_id, caller } = of
    const all = [...this.#listeners.values()]
    if (all.filter(one => one.call_sid === call_sid).length >= MAX_OF_CALL)
      return { of: `call ${call_sid}`, limit: MAX_OF_CALL }
    if (all.filter(one => one.project_id === project_id).length >= MAX_OF_PROJECT)
      return { of: `project ${project_id}`, limit: MAX_OF_PROJECT }
    if (all.length >= MAX_IN_ALL) return { of: 'this platform', limit: MAX_IN_ALL }
    const id = `lsn_${newId.uuid()}`
    const listener: CallListener = {
      id,
      call_sid,
      project_id,
      owner: caller.id,
      meeting: null,
      ear: null,
      source: null,
      over: false,
    }
    listener.meeting = this.#clock.after(MEET_MS, () => this.end(listener, 'the call could not be heard'))
    this.#listeners.set(id, listener)
    return id
  }

  find(id: string): CallListener | undefined {
    return this.#listeners.get(id)
  }

  /** Takes one of the two ends. False when it has come already. */
  take(listener: CallListener, which: 'ear' | 'source', socket: WebSocket): boolean {
    if (listener.over || listener[which]) return false
    listener[which] = socket
    socket.on('error', () => socket.terminate())
    socket.on('close', () => this.end(listener, which === 'source' ? 'the call has ended' : 'the listener left'))
    if (which === 'source') socket.on('message', (frame, binary) => pass(frame, binary, listener.ear))
    if (listener.ear && listener.source) listener.meeting?.cancel()
    return true
  }

  end(listener: CallListener, why: string): void {
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
