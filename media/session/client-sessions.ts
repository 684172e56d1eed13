import { randomBytes, randomInt } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { SRTP_SUITES, type SrtpSuite } from '../../core/domain/codecs/crypto-line.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Door } from '../../core/runtime/doors.ts'
import type { Engine, EngineEvent, Session } from '../../native/index.ts'
import type { Prompts } from '../files/prompts.ts'
import type { ConnectWebSocket } from '../forks/connect.ts'
import type { LegPolicy, LegStats, MediaEvent as ProtocolEvent } from '../protocol/schema.ts'
import type { PreparedBrowser } from '../webrtc/browser-transports.ts'
import type { Conferences } from './conferences.ts'
import { MediaLeg } from './leg.ts'
import { Negotiation } from './negotiation.ts'
import type { OpenFiles } from './open-files.ts'
import { Recorder, type RecordingEnd } from './recorder.ts'

/** The parts that all clients of a worker share. */
export interface WorkerParts {
  readonly engine: Engine
  readonly prompts: Prompts
  readonly data_dir: string
  readonly recordings: Door
  /** The addresses written into SDP: one, and a second of the other family if that is served too. */
  readonly hosts: readonly string[]
  /** Returns a new id for the data plane, unique among all clients. */
  readonly nativeId: () => string
  readonly clock: Clock
  readonly connectWebSocket: ConnectWebSocket
  readonly connectListener: ConnectWebSocket
  readonly conferences: Conferences
  readonly files: OpenFiles
  /** Called for each recording that ended because of its disk, so that an operator learns of it. */
  readonly recordingFailed: (ended: RecordingEnd) => void
}

interface CallSession {
  readonly id: string
  readonly owner: string
  readonly native: Session
  readonly legs: Map<string, MediaLeg>
}

/** The sessions of one client connection. They end with the connection. */
export class ClientSessions {
  readonly recorder: Recorder
  readonly #shared: WorkerParts
  readonly #emit: (event: ProtocolEvent) => void
  readonly #sessions = new Map<string, CallSession>()
  readonly #legs = new Map<string, { leg: MediaLeg; session: CallSession }>()
  readonly #byStream = new Map<number, MediaLeg>()

  constructor(shared: WorkerParts, emit: (event: ProtocolEvent) => void) {
    this.#shared = shared
    this.#emit = emit
    this.recorder = new Recorder(shared, ended => {
      if (ended.reason === 'disk_full' || ended.reason === 'failed') shared.recordingFailed(ended)
      emit({ event: 'record.ended', ...ended })
    })
  }

  get sessionCount(): number {
    return this.#sessions.size
  }

  legs(): MediaLeg[] {
    return [...this.#legs.values()].map(({ leg }) => leg)
  }

  hasSession(session_id: string): boolean {
    return this.#sessions.has(session_id)
  }

  nativeSession(session_id: string): Session | null {
    return this.#sessions.get(session_id)?.native ?? null
  }

  leg(leg_id: string): MediaLeg | null {
    return this.#legs.get(leg_id)?.leg ?? null
  }

  openSession(session_id: string, owner: string): void {
    const native = this.#shared.engine.openSession()
    this.#sessions.set(session_id, { id: session_id, owner, native, legs: new Map() })
  }

  /** Opens a leg. Returns null when the session is unknown or no port is free. */
  openLeg(
    session_id: string,
    leg_id: string,
    policy: LegPolicy,
    browser: PreparedBrowser | null = null,
  ): MediaLeg | null {
    const session = this.#sessions.get(session_id)
    const { source_validation: validation, sources, signalled_from } = policy
    const address = this.#addressFor(policy)
    const family = isIPv6(address) ? 6 : 4
    const stream = session?.native.openStream({ validation, sources, signalled_from, family })
    if (!session || !stream) return null
    const negotiation = new Negotiation({
      session_id: String(randomInt(1, 2 ** 47)),
      address,
      rtp_port: stream.rtp_port,
      rtcp_port: stream.rtcp_port,
      policy: browser ? { ...policy, security: 'dtls_srtp' } : policy,
      keys: freshKeys(),
      browser: browser?.side ?? null,
    })
    const leg = new MediaLeg({
      ...this.#shared,
      browser,
      id: leg_id,
      session_id,
      owner: session.owner,
      stream,
      policy,
      negotiation,
      emit: this.#emit,
    })
    session.legs.set(leg_id, leg)
    this.#legs.set(leg_id, { leg, session })
    this.#byStream.set(stream.id, leg)
    return leg
  }

  /** Returns our address of the peer's family, or our first one if we have none of that family. */
  #addressFor({ family, signalled_from }: LegPolicy): string {
    const { hosts } = this.#shared
    const wanted = family ?? (signalled_from === null ? null : isIPv6(signalled_from) ? 'ipv6' : 'ipv4')
    return hosts.find(host => isIPv6(host) === (wanted === 'ipv6')) ?? hosts[0] ?? ''
  }

  closeLeg(leg_id: string): LegStats | null {
    const found = this.#legs.get(leg_id)
    if (!found) return null
    const { leg, session } = found
    this.#legs.delete(leg_id)
    session.legs.delete(leg_id)
    this.#byStream.delete(leg.stream.id)
    this.recorder.legClosed(leg)
    this.#shared.conferences.leave(leg)
    return leg.close()
  }

  closeSession(session_id: string): Record<string, LegStats> | null {
    const session = this.#sessions.get(session_id)
    if (!session) return null
    const legs: Record<string, LegStats> = {}
    for (const leg_id of [...session.legs.keys()]) {
      const stats = this.closeLeg(leg_id)
      if (stats) legs[leg_id] = stats
    }
    session.native.close()
    this.#sessions.delete(session_id)
    return legs
  }

  tellStats(): void {
    for (const leg of this.legs()) {
      this.#emit({ event: 'leg.stats', leg_id: leg.id, session_id: leg.session_id, stats: leg.stats() })
    }
  }

  close(): void {
    for (const session_id of [...this.#sessions.keys()]) this.closeSession(session_id)
  }

  /** Handles an event of the data plane. Returns false when it belongs to another client. */
  onNative(event: EngineEvent): boolean {
    if (event.type === 'record_ended' || event.type === 'record_changed') return this.recorder.onNative(event)
    if (!('stream_id' in event)) return false
    const leg = this.#byStream.get(event.stream_id)
    leg?.onNative(event)
    return leg !== undefined
  }
}

/** Generates our keys of one leg, one for each suite. */
function freshKeys(): Record<SrtpSuite, string> {
  const entries = SRTP_SUITES.map(({ suite, key_bytes }) => [suite, randomBytes(key_bytes).toString('base64')])
  return Object.fromEntries(entries) as Record<SrtpSuite, string>
}
