// Loads the native add-on and declares its raw functions, which do not check their arguments.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type {
  EngineEvent,
  EngineFeatures,
  EngineOptions,
  EngineStats,
  HeardFrame,
  PlayOptions,
  StreamDescription,
  StreamPolicy,
  StreamStats,
} from './types.ts'

/** The raw engine of the add-on. It takes numbers and values that index.ts has checked; only index.ts calls it. */
export interface NativeEngine {
  openSession(): number
  closeSession(session: number): void
  openStream(session: number, policy: StreamPolicy): { id: number; rtp_port: number; rtcp_port: number } | null
  closeStream(stream: number): void
  describe(stream: number, description: StreamDescription): void
  bridge(a: number, b: number): void
  unbridge(a: number): void
  relayKeys(stream: number, enabled: boolean): void
  hearKey(stream: number, digit: string): void
  play(stream: number, play: PlayOptions): void
  stopPlay(stream: number, playId: string): void
  feed(stream: number, samples: Int16Array, rateHz: number, yields: boolean): void
  announce(stream: number, samples: Int16Array, rateHz: number): void
  feedMark(stream: number, name: string): void
  feedClear(stream: number): void
  sendKeys(stream: number, sendId: string, digits: string, onMs: number, gapMs: number): void
  detect(stream: number, inband: boolean, voice: boolean, tones: boolean): void
  watchSpeech(stream: number, onsetMs: number, endMs: number, suppressNoise: boolean): void
  unwatchSpeech(stream: number): void
  tap(stream: number, tapId: string, sent: boolean, rateHz: number, chunkMs: number, suppressNoise: boolean): void
  untap(stream: number, tapId: string): void
  record(options: object): void
  recordConference(conference: number, options: object): void
  stopRecord(recordingId: string): void
  pauseRecord(recordingId: string, paused: boolean, silent: boolean): void
  openConference(rateHz: number): number
  closeConference(conference: number): void
  joinConference(conference: number, stream: number, muted: boolean, deaf: boolean, heardBy: number): void
  leaveConference(stream: number): void
  sendRtcp(stream: number, packet: Uint8Array): void
  takeRaw(stream: number, enabled: boolean): void
  prove(stream: number, paths: readonly { address: string; port: number }[]): void
  sendRaw(stream: number, packet: Uint8Array, address: string, port: number): void
  streamStats(stream: number): StreamStats | null
  stats(): EngineStats
  close(): void
}

interface Addon {
  createEngine(options: Required<EngineOptions>, onEvents: (events: EngineEvent[]) => void): NativeEngine
  features(g729: boolean): EngineFeatures
  resample(samples: Int16Array, fromHz: number, toHz: number): Int16Array
  decodeGsm(bytes: Uint8Array, wav: boolean): Int16Array
  hearing(onsetMs: number, endMs: number, suppressNoise: boolean): (frame: Int16Array) => HeardFrame
  encodeTest(codec: string, samples: Int16Array): Buffer
  decodeTest(codec: string, payload: Uint8Array): Int16Array
}

let addon: Addon | null = null

/** Loads the add-on that the setup built, from the nearest folder above that has it. */
export function load(): Addon {
  if (addon) return addon
  const require = createRequire(import.meta.url)
  for (let at = import.meta.dirname; at !== dirname(at); at = dirname(at)) {
    const file = join(at, 'native/build/Release/media.node')
    if (existsSync(file)) {
      addon = require(file) as Addon
      return addon
    }
  }
  throw new Error('native/build/Release/media.node is missing: run `npm run setup`')
}
