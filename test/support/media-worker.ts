import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../core/runtime/clock.ts'
import { createHttpClient } from '../../core/runtime/http/index.ts'
import { createLog } from '../../core/runtime/log.ts'
import { createMetrics, type Registry } from '../../core/runtime/metrics.ts'
import { createConnectWebSocket } from '../../media/forks/connect.ts'
import { connectMedia, type MediaClient, type MediaClientEvents, MediaRefusal } from '../../media/protocol/client.ts'
import type { LegPolicy } from '../../media/protocol/schema.ts'
import { createMediaWorker, type MediaWorker, type MediaWorkerOptions } from '../../media/worker.ts'
import { openRtpPeer, type PeerOptions, type RtpPeer } from './rtp-peer.ts'
import { PATIENCE_MS } from './wait.ts'

/** A media worker in this process, with its client over the real Unix socket and RTP peers over real UDP. */

export const POLICY: LegPolicy = {
  codecs: ['PCMU', 'PCMA'],
  security: 'rtp',
  source_validation: 'relaxed',
  sources: [],
  signalled_from: null,
  telephone_event: true,
}

/** Returns the reason with which the worker refuses a request. */
export const reasonOf = (request: Promise<unknown>): Promise<string> =>
  request.then(
    () => 'not refused',
    (error: unknown) => (error instanceof MediaRefusal ? error.reason : String(error)),
  )

type EventOf<E extends keyof MediaClientEvents> = MediaClientEvents[E][0]

class TestWorker {
  readonly worker: MediaWorker
  readonly client: MediaClient
  readonly data_dir: string
  readonly socket_path: string
  readonly metrics: Registry
  readonly #ids = { session: 0, leg: 0 }
  readonly #peers: RtpPeer[] = []
  readonly #seen: { event: string; fields: unknown }[] = []
  #waiting: (() => void)[] = []

  /** Use `startTestWorker`. */
  constructor(parts: {
    worker: MediaWorker
    client: MediaClient
    data_dir: string
    socket_path: string
    metrics: Registry
  }) {
    this.worker = parts.worker
    this.client = parts.client
    this.data_dir = parts.data_dir
    this.socket_path = parts.socket_path
    this.metrics = parts.metrics
    for (const event of EVENT_NAMES) {
      this.client.on(event, fields => {
        this.#seen.push({ event, fields })
        for (const waiting of this.#waiting.splice(0)) waiting()
      })
    }
  }

  /** Returns the events of a kind so far. */
  events<E extends keyof MediaClientEvents>(event: E): EventOf<E>[] {
    return this.#seen.filter(seen => seen.event === event).map(seen => seen.fields as EventOf<E>)
  }

  /** Returns the first matching event of a kind, past or future. */
  async event<E extends keyof MediaClientEvents>(
    event: E,
    matches: (fields: EventOf<E>) => boolean = () => true,
    limit_ms = PATIENCE_MS,
  ): Promise<EventOf<E>> {
    const deadline_ms = performance.now() + limit_ms
    for (;;) {
      const found = this.events(event).find(matches)
      if (found) return found
      const left_ms = deadline_ms - performance.now()
      if (left_ms <= 0) throw new Error(`no ${event} that matches in ${limit_ms} ms`)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, left_ms)
        this.#waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  async session(): Promise<string> {
    const session_id = `s${++this.#ids.session}`
    await this.client.request('session.open', { session_id })
    return session_id
  }

  async peer(options: PeerOptions = {}): Promise<RtpPeer> {
    const peer = await openRtpPeer({ event_payload_type: 101, ...options })
    this.#peers.push(peer)
    return peer
  }

  /** Opens a leg, answers the peer's offer, and makes the peer send to the leg. */
  async answeredLeg(
    session_id: string,
    peer: RtpPeer,
    policy: Partial<LegPolicy> = {},
    prefer_leg?: string,
  ): Promise<{ leg_id: string; rtp_port: number; sdp: string; codec: string }> {
    const leg_id = `l${++this.#ids.leg}`
    const { rtp_port } = await this.client.request('leg.open', { session_id, leg_id, policy: { ...POLICY, ...policy } })
    await this.client.request('leg.remote_offer', { leg_id, sdp: peer.sdp() })
    const answer = await this.client.request('leg.local_answer', { leg_id, ...(prefer_leg ? { prefer_leg } : {}) })
    peer.sendTo(rtp_port)
    return { leg_id, rtp_port, ...answer }
  }

  async stop(): Promise<void> {
    for (const peer of this.#peers) peer.close()
    this.client.close()
    await this.worker.stop()
    rmSync(this.data_dir, { recursive: true, force: true })
  }
}

const EVENT_NAMES = [
  'play.ended',
  'digits.sent',
  'dtmf',
  'record.ended',
  'relay.warning',
  'relay.turn',
  'relay.ended',
  'fork.started',
  'fork.warning',
  'fork.ended',
  'amd.result',
  'leg.latched',
  'leg.first_packet',
  'leg.silent',
  'leg.srtp_failed',
  'leg.sdp_notes',
  'leg.stats',
  'down',
] as const

export async function startTestWorker(over: Partial<MediaWorkerOptions> = {}): Promise<TestWorker> {
  const data_dir = over.data_dir ?? mkdtempSync(join(tmpdir(), 'strowger-media-'))
  const socket_path = join(data_dir, 'media.sock')
  const log = createLog('media', { log_level: 'warn' })
  const metrics = createMetrics('media')
  const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'Strowger-Media/test' })
  const worker = await createMediaWorker({
    socket_path,
    data_dir,
    host: '127.0.0.1',
    bind: '127.0.0.1',
    rtp_ports: { first: 0, last: 0 },
    threads: 1,
    g729: true,
    reserved_ports: [],
    http,
    connectWebSocket: createConnectWebSocket(['loopback']),
    // Nobody listens there.
    listeners_url: 'ws://127.0.0.1:9',
    log,
    clock: systemClock,
    metrics,
    quarantine_ms: 0,
    ...over,
  })
  const client = connectMedia({ path: socket_path, log })
  await new Promise<void>(resolve => client.once('up', () => resolve()))
  const stopping: MediaWorker = {
    async stop() {
      await worker.stop()
      await http.close()
    },
  }
  return new TestWorker({ worker: stopping, client, data_dir, socket_path, metrics })
}
