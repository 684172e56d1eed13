import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { RecognizerSettings, VoiceSettings } from '../core/domain/speech/engines.ts'
import type { Clock } from '../core/runtime/clock.ts'
import { Door } from '../core/runtime/doors.ts'
import type { HttpClient } from '../core/runtime/http/index.ts'
import type { Log } from '../core/runtime/log.ts'
import type { Registry } from '../core/runtime/metrics.ts'
import { createEngine, type EngineOptions, features, type EngineEvent as NativeEvent } from '../native/index.ts'
import { createAudioThreads } from './files/audio-threads.ts'
import { createPrompts } from './files/prompts.ts'
import { repairRecordings } from './files/repair.ts'
import { createUrlAudio } from './files/url-audio.ts'
import { createVoices } from './files/voice.ts'
import { type ConnectWebSocket, connectDirectly } from './forks/connect.ts'
import { type MethodContext, methods } from './methods.ts'
import { countRecordingFailures, registerMetrics } from './metrics.ts'
import type { MethodName } from './protocol/schema.ts'
import { type MediaPeer, serveProtocol } from './server.ts'
import { ClientSessions, type WorkerParts } from './session/client-sessions.ts'
import { Conferences } from './session/conferences.ts'
import { OpenFiles } from './session/open-files.ts'
import { createRecognizers } from './speech/index.ts'
import { createTranscriber } from './speech/transcriber.ts'
import { createBrowserTransports } from './webrtc/browser-transports.ts'

export interface MediaWorkerOptions {
  /** The Unix socket to which signaling connects. */
  readonly socket_path: string
  readonly data_dir: string
  /** The address written into SDP. */
  readonly host: string
  /** The address to which sockets are bound. */
  readonly bind: string
  /** The same addresses of the other family, for peers that use it. */
  readonly second?: { readonly host: string; readonly bind: string } | null
  /** An inclusive range. 0 and 0 let the system choose. */
  readonly rtp_ports: { readonly first: number; readonly last: number }
  readonly threads: number
  readonly g729: boolean
  /** Use io_uring where the kernel and the sandbox allow it. */
  readonly io_uring?: boolean
  /** Receive latched streams by a packet ring if permitted. */
  readonly packet_ring?: boolean
  /** Run packet threads at real-time priority if permitted. */
  readonly realtime?: boolean
  /** The ports of our own servers on our addresses. No media may be sent to them. */
  readonly reserved_ports: readonly number[]
  readonly http: HttpClient
  /** The platform's own address. Its recordings are never requested from it. */
  readonly base_url?: string
  readonly connectWebSocket: ConnectWebSocket
  /** Where the control plane takes what listeners hear: `ws://address:port`. */
  readonly listeners_url: string
  /** The engines that the operator chose for the voice, for recognition and for transcription. */
  readonly tts?: VoiceSettings
  readonly stt?: RecognizerSettings | null
  /** The engines that requests may name. */
  readonly tts_choices?: readonly VoiceSettings[]
  readonly stt_choices?: readonly RecognizerSettings[]
  readonly transcriber_url?: string | null
  /** Clients for these engines. The operator chose their addresses, not a customer. */
  readonly engineHttp?: HttpClient
  readonly connectEngine?: ConnectWebSocket
  readonly log: Log
  readonly clock: Clock
  readonly metrics: Registry
  /** How long a port is not reused after it was closed. */
  readonly quarantine_ms?: number
  readonly max_sessions?: number
}

export interface MediaWorker {
  /** Ends all sessions, waits for their recordings to finish, and closes everything. */
  stop(): Promise<void>
}

const STATS_PERIOD_MS = 10_000
const RECORDINGS_LIMIT_MS = 4000

const hostsOf = ({ host, second }: Pick<MediaWorkerOptions, 'host' | 'second'>): string[] =>
  second ? [host, second.host] : [host]

/** Returns the networks to which media is never sent (threats.md §4). Loopback is one unless we run on it. */
function deniedNetworks(hosts: readonly string[]): string[] {
  const always = ['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4', 'fe80::/10', 'ff00::/8']
  const loopback = hosts.some(host => host.startsWith('127.') || host === '::1')
  return loopback ? always : [...always, '127.0.0.0/8', '::1/128']
}

/** Starts the data plane and its Unix socket. */
export async function createMediaWorker(options: MediaWorkerOptions): Promise<MediaWorker> {
  const { log, clock, data_dir } = options
  const recordings_dir = join(data_dir, 'recordings')
  mkdirSync(recordings_dir, { recursive: true })
  const repaired = repairRecordings(recordings_dir)
  if (repaired.length > 0) log.warn({ repaired: repaired.length }, 'recordings of a killed worker were finished')

  const clients = new Set<ClientSessions>()
  const onNative = (event: NativeEvent) => {
    try {
      if (event.type === 'events_lost') log.error({ count: event.count }, 'events of the data plane were lost')
      else for (const client of clients) if (client.onNative(event)) break
    } catch (err) {
      log.error({ err, type: event.type }, 'an event of the data plane could not be handled')
    }
  }
  const engine = createEngine(engineOptions(options), onNative)
  if ((options.realtime ?? true) && !engine.stats().threads.every(thread => thread.realtime))
    log.info('real-time priority is not allowed (CAP_SYS_NICE or RLIMIT_RTPRIO): packet threads run at normal priority')
  if ((options.packet_ring ?? true) && !engine.stats().threads.every(thread => thread.packet_ring))
    log.info(
      'raw sockets are not allowed (CAP_NET_RAW): media packets are received by their sockets, not by a packet ring',
    )
  const { codecs, srtp_suites } = features({ g729: options.g729 })
  if (options.g729 && !codecs.includes('G729')) log.info('libbcg729 is not installed: G.729 is relayed, not transcoded')

  const recordings = new Door(recordings_dir)
  const audio = createAudioThreads()
  const engineHttp = options.engineHttp ?? options.http
  const countFailure = countRecordingFailures(options.metrics)
  const { tts = { engine: 'espeak-ng' }, stt = null, tts_choices = [], stt_choices = [] } = options
  const engines = { tts, stt, tts_choices, stt_choices }
  let native_ids = 0
  const shared: WorkerParts = {
    engine,
    prompts: createPrompts({
      data_dir,
      recordings,
      audio,
      speech: createVoices(engines, engineHttp, audio),
      urls: createUrlAudio(options.http, audio, { now: () => clock.now(), base_url: options.base_url ?? null }),
    }),
    data_dir,
    recordings,
    hosts: hostsOf(options),
    nativeId: () => `n${++native_ids}`,
    clock,
    connectWebSocket: options.connectWebSocket,
    connectListener: connectDirectly,
    conferences: new Conferences(engine),
    files: new OpenFiles(),
    recordingFailed({ recording_id, reason, detail, duration_ms }) {
      countFailure(reason)
      log.error(
        { recording_id, reason, detail, duration_ms },
        'a recording ended because of its disk; the call goes on',
      )
    },
  }
  const context = {
    worker_id: `media_${randomBytes(6).toString('hex')}`,
    srtp_suites,
    transcode: codecs,
    max_sessions: options.max_sessions ?? 10_000,
    conferences: shared.conferences,
    files: shared.files,
    browsers: createBrowserTransports(clock),
    transcriber: createTranscriber(options.transcriber_url ?? null, engineHttp),
    recognizers: createRecognizers(engines, {
      http: engineHttp,
      connect: options.connectEngine ?? options.connectWebSocket,
    }),
    listeners_url: options.listeners_url,
    reserved: { addresses: hostsOf(options), ports: options.reserved_ports },
  }

  mkdirSync(dirname(options.socket_path), { recursive: true })
  const server = await serveProtocol(options.socket_path, log, emit => {
    const sessions = new ClientSessions(shared, emit)
    clients.add(sessions)
    return clientPeer(
      { ...context, sessions, emit, greeted: client => log.info({ client }, 'media client connected') },
      () => {
        sessions.close()
        // The client stays until its recordings have ended in the data plane. No client receives their events.
        if (sessions.recorder.running === 0) clients.delete(sessions)
        else clock.after(RECORDINGS_LIMIT_MS, () => clients.delete(sessions))
      },
    )
  })

  const stats = clock.every(STATS_PERIOD_MS, () => {
    for (const client of clients) client.tellStats()
  })
  registerMetrics(options.metrics, () => ({
    engine: engine.stats(),
    clients: clients.size,
    sessions: sumOf(clients, client => client.sessionCount),
    legs: sumOf(clients, client => client.legs().length),
  }))

  return {
    async stop() {
      stats.cancel()
      for (const client of clients) client.close()
      await recordingsEnded(clients, clock)
      await server.close()
      engine.close()
      await audio.close()
      shared.recordings.close()
    },
  }
}

function engineOptions(options: MediaWorkerOptions): EngineOptions {
  return {
    threads: options.threads,
    bind_address: options.bind,
    ...(options.second ? { second_bind_address: options.second.bind } : {}),
    port_min: options.rtp_ports.first,
    port_max: options.rtp_ports.last,
    quarantine_ms: options.quarantine_ms ?? 30_000,
    denied: deniedNetworks(hostsOf(options)),
    g729: options.g729,
    io_uring: options.io_uring ?? true,
    packet_ring: options.packet_ring ?? true,
    realtime: options.realtime ?? true,
  }
}

function clientPeer(context: MethodContext, gone: () => void): MediaPeer {
  return {
    call: (method: MethodName, params: never) => methods[method](params, context),
    closed: gone,
  }
}

const sumOf = <T>(items: Iterable<T>, figure: (item: T) => number) => {
  let total = 0
  for (const item of items) total += figure(item)
  return total
}

/** Resolves when no recording runs, or after the limit. The next start repairs unfinished files. */
function recordingsEnded(clients: ReadonlySet<ClientSessions>, clock: Clock): Promise<void> {
  const deadline_ms = clock.monotonic_ms() + RECORDINGS_LIMIT_MS
  return new Promise(resolve => {
    const look = () => {
      const running = sumOf(clients, client => client.recorder.running)
      if (running === 0 || clock.monotonic_ms() > deadline_ms) resolve()
      else setTimeout(look, 20)
    }
    look()
  })
}
