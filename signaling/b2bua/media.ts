import { type Clock, delay } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { type MediaClient, MediaRefusal } from '../../media/protocol/client.ts'
import type {
  EventName,
  LegPolicy,
  LegStats,
  MediaEvent,
  MethodName,
  MethodParams,
  MethodResult,
} from '../../media/protocol/schema.ts'

export type { LegPolicy, LegStats, MediaEvent }
export { MediaRefusal }

/** `webrtc`: ICE and DTLS-SRTP, as browsers use them (RFC 8827). */
export type MediaKind = 'rtp' | 'webrtc'

type MediaListener = (event: MediaEvent) => void

const EVENTS = [
  'play.ended',
  'digits.sent',
  'dtmf',
  'record.ended',
  'leg.latched',
  'leg.first_packet',
  'leg.silent',
  'leg.srtp_failed',
  'leg.sdp_notes',
  'leg.stats',
  'fork.started',
  'fork.warning',
  'fork.ended',
  'relay.warning',
  'relay.turn',
  'relay.ended',
  'recognize.started',
  'recognize.result',
  'recognize.warning',
  'recognize.ended',
  'transcription.ended',
  'leg.voice',
  'amd.result',
] as const satisfies EventName[]

/** The media worker as calls see it: opens their sessions and routes events by leg or recording. */
export class MediaHub {
  readonly #client: MediaClient
  readonly #log: Log
  readonly #listeners = new Map<string, MediaListener>()
  readonly #lost = new Map<string, () => void>()

  constructor(client: MediaClient, log: Log) {
    this.#client = client
    this.#log = log
    for (const name of EVENTS)
      client.on(name, fields => {
        const key = 'leg_id' in fields ? fields.leg_id : fields.recording_id
        const recognition = 'recognize_id' in fields ? this.#listeners.get(fields.recognize_id) : undefined
        const listener = recognition ?? this.#listeners.get(key)
        listener?.({ event: name, ...fields } as MediaEvent)
      })
    client.on('down', () => {
      for (const lost of [...this.#lost.values()]) lost()
    })
  }

  get connected(): boolean {
    return this.#client.connected
  }

  /** Calls `listener` when the worker is gone, and every session with it. */
  onDown(listener: (detail: string) => void): void {
    this.#client.on('down', ({ detail }) => listener(detail))
  }

  request<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>> {
    return this.#client.request(method, params)
  }

  /** Resolves true when a worker is connected, false when none connects within `limit_ms`. */
  async whenConnected(clock: Clock, limit_ms: number): Promise<boolean> {
    const found = new AbortController()
    const up = (): void => found.abort()
    this.#client.once('up', up)
    if (!this.connected) await delay(clock, limit_ms, found.signal)
    this.#client.off('up', up)
    return this.connected
  }

  /** Sets the listener of a leg, a recording, or a recognition that outlives its leg; each has one. */
  listen(id: string, listener: MediaListener): void {
    this.#listeners.set(id, listener)
  }

  /** Calls `lost` when the worker is gone, because no more events of `id` can come. Does nothing without a listener. */
  onLost(id: string, lost: () => void): void {
    if (this.listens(id)) this.#lost.set(id, lost)
  }

  forget(id: string): void {
    this.#listeners.delete(id)
    this.#lost.delete(id)
  }

  listens(id: string): boolean {
    return this.#listeners.has(id)
  }

  get listening(): number {
    return this.#listeners.size
  }

  /** Opens the session of a call; null when the worker cannot. The caller then refuses the call. */
  async open(call_sid: string, project_id: string): Promise<MediaSession | null> {
    try {
      await this.request('session.open', { session_id: call_sid, owner: project_id })
      return new MediaSession(this, call_sid, this.#log)
    } catch (err) {
      this.#log.warn({ err, call_id: call_sid }, 'the media worker could not open a session')
      return null
    }
  }
}

/** The media of a call and of the calls that it dialled. Each user holds a reference; the last release closes it. */
export class MediaSession {
  readonly id: string
  readonly hub: MediaHub
  readonly #log: Log
  readonly #legs = new Set<string>()
  #holders = 1
  #closed = false

  constructor(hub: MediaHub, id: string, log: Log) {
    this.hub = hub
    this.id = id
    this.#log = log
  }

  hold(): void {
    this.#holders++
  }

  async openLeg(leg_id: string, policy: LegPolicy, kind: MediaKind, listener: MediaListener): Promise<void> {
    await this.hub.request('leg.open', { session_id: this.id, leg_id, policy, kind })
    this.#legs.add(leg_id)
    this.hub.listen(leg_id, listener)
  }

  /** Closes a leg and returns its statistics; null when the worker no longer has them. */
  async closeLeg(leg_id: string): Promise<LegStats | null> {
    this.hub.forget(leg_id)
    if (!this.#legs.delete(leg_id)) return null
    try {
      return await this.hub.request('leg.close', { leg_id })
    } catch (error) {
      // A worker that exited has closed all its legs already.
      this.#log.debug({ err: error, leg_id }, 'leg was not closed')
      return null
    }
  }

  async release(): Promise<void> {
    if (--this.#holders > 0 || this.#closed) return
    this.#closed = true
    for (const leg_id of this.#legs) this.hub.forget(leg_id)
    try {
      await this.hub.request('session.close', { session_id: this.id })
    } catch (error) {
      this.#log.debug({ err: error, session_id: this.id }, 'session was not closed')
    }
  }
}
