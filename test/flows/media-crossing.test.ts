import { codecByName } from '../../core/domain/codecs/registry.ts'
import { createAudioThreads } from '../../media/files/audio-threads.ts'
import { createSpeech } from '../../media/files/speech.ts'
import type { CodecName } from '../../media/protocol/schema.ts'
import { decodeAll, encodeAll, features, resample } from '../../native/index.ts'
import { heardSpan, strongestHz, tone, toneLevelDbm0 } from '../support/audio.ts'
import t from '../support/harness/index.ts'
import { startTestWorker } from '../support/media-worker.ts'
import { type RtpPeer, writeRtp } from '../support/rtp-peer.ts'
import { spectralDistanceDb } from '../support/spectrum.ts'

/**
 * Tests each pair of codecs concurrently over real sockets through a media worker: a tone and speech, encoded by one
 * peer and decoded by the other. Some pairs run again over a network with 5 % loss and up to 40 ms of delay.
 */

const RATE_HZ = 8000
const FRAME_MS = 20
const HZ = 1000
const LEVEL_DBM0 = -10
const TONE_MS = 1000
/** The parts of the signal, ms. */
const TONE_AT = 300
const SPEECH_AT = TONE_AT + TONE_MS + 400
const SPEECH_MS = 2000

/** The allowed deviation of the output from the input. */
const CLEAN = { level_db: 1, length_ms: 20, distance_db: 4.5 }
const ROUGH = { level_db: 2, length_ms: 60, distance_db: 6.5 }
/**
 * G.729's concealment quickly fades a tone. native/test/crossing_test.cc checks it more precisely, with its own clock.
 */
const FADING = { level_db: 6, length_ms: 100, distance_db: 6.5 }

/** A machine too busy to send on time simulates a worse network than intended. The affected pairs run again. */
const ROUNDS = 40

interface Road {
  readonly from: CodecName
  readonly to: CodecName
  /** Whether the network has 5 % loss and 40 ms of jitter. */
  readonly rough: boolean
}

interface Packet {
  readonly at_ms: number
  readonly peer: RtpPeer
  readonly bytes: Buffer
}

const nameOf = ({ from, to, rough }: Road) => `${from} to ${to}${rough ? ', 5 % loss and 40 ms of jitter' : ''}`
const here = features().codecs
const clean = here.flatMap(from => here.map((to): Road => ({ from, to, rough: false })))
/** Transcoded pairs, because a relay passes losses on. */
const rough = (
  [
    ['PCMU', 'G722'],
    ['G722', 'G729'],
    ['G729', 'PCMU'],
    ['PCMA', 'OPUS'],
    ['OPUS', 'PCMA'],
  ] as const
)
  .filter(pair => pair.every(codec => here.includes(codec)))
  .map(([from, to]): Road => ({ from, to, rough: true }))

async function spokenWords(): Promise<Int16Array> {
  const audio = createAudioThreads()
  const spoken = await createSpeech(audio).speak({
    text: 'Good morning, this is the support desk.',
    voice: '',
    language: 'en-US',
    owner: 'prj_a',
  })
  await audio.close()
  if ('refused' in spoken) throw new Error(spoken.detail)
  return resample(new Int16Array(spoken.pcm.samples), spoken.pcm.rate_hz, RATE_HZ).slice(
    0,
    (SPEECH_MS * RATE_HZ) / 1000,
  )
}

function signalOf(words: Int16Array): Int16Array {
  const signal = new Int16Array(((SPEECH_AT + SPEECH_MS + 400) * RATE_HZ) / 1000)
  signal.set(tone(HZ, TONE_MS, RATE_HZ, LEVEL_DBM0), (TONE_AT * RATE_HZ) / 1000)
  signal.set(words, (SPEECH_AT * RATE_HZ) / 1000)
  return signal
}

/** Park and Miller's generator. The same seed gives the same network. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

function packetsOf(peer: RtpPeer, { from, rough }: Road, frames: readonly Buffer[], seed: number): Packet[] {
  const { clock_rate_hz, payload_type } = codecByName(from)
  const random = randomOf(seed)
  return frames.flatMap((payload, index) => {
    const [lost, delay_ms] = [random() < 0.05, random() * 40]
    if (rough && lost) return []
    const timestamp = (index * clock_rate_hz * FRAME_MS) / 1000
    const bytes = writeRtp({ payload_type, payload, marker: index === 0, sequence: index, timestamp, ssrc: peer.ssrc })
    return [{ at_ms: index * FRAME_MS + (rough ? delay_ms : 0), peer, bytes }]
  })
}

/** Sends each packet at its time. Returns the largest delay, ms. */
async function sendAll(packets: readonly Packet[]): Promise<number> {
  const start_ms = performance.now() + 50
  let latest_ms = 0
  for (const { at_ms, peer, bytes } of packets.toSorted((one, other) => one.at_ms - other.at_ms)) {
    const wait_ms = start_ms + at_ms - performance.now()
    if (wait_ms > 0) await new Promise(resolve => setTimeout(resolve, wait_ms))
    latest_ms = Math.max(latest_ms, -wait_ms)
    peer.raw(bytes)
  }
  return latest_ms
}

/** Returns the largest delay of a packet at a peer, ms. A worker without CPU time sends late. */
const latestAt = ({ received }: RtpPeer): number =>
  Math.max(...received.slice(1).map(({ at_ms }, index) => at_ms - (received[index]?.at_ms ?? at_ms) - FRAME_MS))

/**
 * Waits until so many packets have come, because jitter buffers still hold the last ones, or none for a second: a
 * worker that was late drops what came meanwhile. Resolves with whether they came.
 */
async function allCame({ received }: RtpPeer, count: number): Promise<boolean> {
  const CALM = 1000 / FRAME_MS
  for (let [before, calm] = [-1, 0]; received.length < count && calm < CALM; ) {
    calm = received.length === before ? calm + 1 : 0
    before = received.length
    await new Promise(resolve => setTimeout(resolve, FRAME_MS))
  }
  return received.length >= count
}

/** Returns the audio that the peer received, 8 kHz, in packet order. */
function heardBy(peer: RtpPeer, codec: CodecName): Int16Array {
  const { payload_type, sample_rate_hz } = codecByName(codec)
  const [first] = peer.received
  if (!first) return new Int16Array(0)
  const place = (sequence: number) => ((sequence - first.sequence + 0x8000) & 0xffff) - 0x8000
  const frames = peer.received
    .filter(packet => packet.payload_type === payload_type)
    .toSorted((one, other) => place(one.sequence) - place(other.sequence))
    .map(packet => packet.payload)
  return resample(decodeAll(codec, frames), sample_rate_hz, RATE_HZ)
}

/** Returns the median level of the tone over its 20 ms frames, dBm0, which ignores phase shifts by jitter buffers. */
function levelOf(heard: Int16Array): number {
  const window = (FRAME_MS * RATE_HZ) / 1000
  const levels: number[] = []
  for (let at = 0; at + window <= heard.length; at += window)
    levels.push(toneLevelDbm0(heard.subarray(at, at + window), HZ))
  return levels.sort((one, other) => one - other)[levels.length >> 1] ?? Number.NEGATIVE_INFINITY
}

/** Returns the faults of the output; empty when there are none. */
function faultsOf(heard: Int16Array, words: Int16Array, { from, rough }: Road): string[] {
  const span = heardSpan(heard.subarray(0, ((SPEECH_AT - 100) * RATE_HZ) / 1000), RATE_HZ, LEVEL_DBM0 - 12, 5)
  if (!span) return ['the tone is not heard']
  const at = (ms: number) => Math.round((ms * RATE_HZ) / 1000)
  const middle = heard.subarray(at(span.from_ms + 200), at(span.to_ms - 200))
  const level = levelOf(middle)
  const distance = spectralDistanceDb(words, heard.subarray(at(span.to_ms + 350)))
  const length_ms = span.to_ms - span.from_ms
  const most = !rough ? CLEAN : from === 'G729' ? FADING : ROUGH
  const checks: readonly [string, boolean][] = [
    [`its frequency is ${strongestHz(middle)} Hz`, strongestHz(middle) === HZ],
    [`its level is ${level.toFixed(2)} dBm0`, Math.abs(level - LEVEL_DBM0) <= most.level_db],
    [`its length is ${length_ms} ms`, Math.abs(length_ms - TONE_MS) <= most.length_ms],
    [`speech is ${distance.toFixed(2)} dB away`, distance <= most.distance_db],
  ]
  return checks.filter(([, holds]) => !holds).map(([what]) => what)
}

t.test('a tone and speech cross between all pairs of codecs, over sockets', async t => {
  const w = await startTestWorker()
  t.teardown(() => w.stop())
  if (!here.includes('G729')) t.comment('libbcg729 is not installed: G.729 is relayed only')
  const words = await spokenWords()
  const signal = signalOf(words)
  const encoded = new Map(
    here.map(codec => [codec, encodeAll(codec, resample(signal, RATE_HZ, codecByName(codec).sample_rate_hz))]),
  )

  async function cross(road: Road, seed: number) {
    const session_id = await w.session()
    const peerOf = (codec: CodecName) => {
      const { encoding, clock_rate_hz, channels, payload_type } = codecByName(codec)
      return w.peer({ payload_type, rtpmap: `${encoding}/${clock_rate_hz}${channels === null ? '' : `/${channels}`}` })
    }
    const [near, far] = [await peerOf(road.from), await peerOf(road.to)]
    const left = await w.answeredLeg(session_id, near, { codecs: [road.from] })
    const right = await w.answeredLeg(session_id, far, { codecs: [road.to] })
    await w.client.request('bridge', { a: left.leg_id, b: right.leg_id })
    return { road, session_id, far, packets: packetsOf(near, road, encoded.get(road.from) ?? [], seed) }
  }

  let open: readonly Road[] = [...clean, ...rough]
  for (let round = 1; round <= ROUNDS && open.length > 0; round++) {
    const calls = await Promise.all(open.map((road, index) => cross(road, 100 * round + index)))
    const sent_late_ms = await sendAll(calls.flatMap(call => call.packets))
    const frames = signal.length / RATE_HZ / (FRAME_MS / 1000)
    const came = await Promise.all(calls.map(({ far }) => allCame(far, frames - 15)))
    const latest_ms = Math.max(sent_late_ms, ...calls.map(({ far }) => latestAt(far)))
    const judged = calls.map(({ road, far }) => ({ road, faults: faultsOf(heardBy(far, road.to), words, road) }))
    for (const { session_id } of calls) await w.client.request('session.close', { session_id })
    // No packet that came shows the delay of a worker that stood still at the end.
    const again = (latest_ms > 15 || came.includes(false)) && round < ROUNDS
    for (const { road, faults } of judged) {
      if (faults.length === 0) t.pass(nameOf(road))
      else if (again) t.comment(`${nameOf(road)} goes again: ${latest_ms.toFixed()} ms late; ${faults.join('; ')}`)
      else t.fail(`${nameOf(road)}: ${faults.join('; ')}`)
    }
    open = again ? judged.filter(({ faults }) => faults.length > 0).map(({ road }) => road) : []
  }
})
