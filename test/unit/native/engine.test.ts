// The data plane through its API, with real sockets, audio and events.
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CODEC_RATES,
  createEngine,
  decodeAll,
  type EngineEvent,
  type EngineOptions,
  encodeAll,
  features,
  hearing,
  resample,
  type Stream,
  type StreamDescription,
} from '../../../native/index.ts'
import { sounding, tone } from '../../support/audio.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { freeBlock } from '../../support/ports.ts'
import { openRtpPeer, type RtpPeer } from '../../support/rtp-peer.ts'
import { PATIENCE_MS, until } from '../../support/wait.ts'

const PCMU = { payload_type: 0, codec: 'PCMU', clock_rate: 8000 }
const PCMA = { payload_type: 8, codec: 'PCMA', clock_rate: 8000 }
const EVENTS = { payload_type: 101, codec: 'telephone-event', clock_rate: 8000 }
const POLICY = { validation: 'relaxed', sources: [], signalled_from: null } as const

interface World {
  readonly events: EngineEvent[]
  readonly engine: ReturnType<typeof createEngine>
  /** Waits for the first event for which `holds` returns true, including earlier events. */
  event<T extends EngineEvent['type']>(
    type: T,
    holds?: (event: Extract<EngineEvent, { type: T }>) => boolean,
  ): Promise<Extract<EngineEvent, { type: T }>>
  peer(codec?: 'PCMU' | 'PCMA'): Promise<RtpPeer>
}

function world(t: Test, options: Partial<EngineOptions> = {}): World {
  const events: EngineEvent[] = []
  const waiting = new Set<() => void>()
  const peers: RtpPeer[] = []
  const engine = createEngine(
    { threads: 1, bind_address: '127.0.0.1', port_min: 0, port_max: 0, quarantine_ms: 0, ...options },
    event => {
      events.push(event)
      for (const look of [...waiting]) look()
    },
  )
  t.teardown(() => {
    engine.close()
    for (const peer of peers) peer.close()
  })
  return {
    events,
    engine,
    event: (type, holds = () => true) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`no event ${type} in ${PATIENCE_MS} ms`))
        }, PATIENCE_MS)
        const look = () => {
          const found = events.find(event => event.type === type && holds(event as never))
          if (!found) return
          clearTimeout(timer)
          waiting.delete(look)
          resolve(found as never)
        }
        waiting.add(look)
        look()
      }),
    async peer(codec = 'PCMU') {
      const peer = await openRtpPeer({ codec, event_payload_type: 101 })
      peers.push(peer)
      return peer
    },
  }
}

function settled(peer: RtpPeer, codec = PCMU, over: Partial<StreamDescription> = {}): StreamDescription {
  return {
    remote: { address: '127.0.0.1', rtp_port: peer.port },
    direction: 'sendrecv',
    receive: [codec],
    send: { ...codec, ptime_ms: 20 },
    telephone_event: { receive: [EVENTS], send: EVENTS },
    srtp: null,
    ...over,
  }
}

async function call(w: World, codecs: readonly ['PCMU' | 'PCMA', 'PCMU' | 'PCMA'] = ['PCMU', 'PCMU']) {
  const session = w.engine.openSession()
  const legs: { peer: RtpPeer; stream: Stream }[] = []
  for (const codec of codecs) {
    const peer = await w.peer(codec)
    const stream = session.openStream(POLICY)
    if (!stream) throw new Error('no port is left')
    stream.describe(settled(peer, codec === 'PCMU' ? PCMU : PCMA))
    peer.sendTo(stream.rtp_port)
    legs.push({ peer, stream })
  }
  const [a, b] = legs as [(typeof legs)[0], (typeof legs)[0]]
  session.bridge(a.stream, b.stream)
  return { session, a, b }
}

/** Returns what tells when a peer's next talk ends, in ms, as if none of its packets left later than the earliest. */
function endOfTalk(peer: RtpPeer): () => number {
  let [origin_ms, last_ms] = [Number.POSITIVE_INFINITY, 0]
  peer.onPacket = (bytes, sent) => {
    if (!sent) return
    last_ms = bytes.readUInt32BE(4) / 8
    origin_ms = Math.min(origin_ms, performance.now() - last_ms)
  }
  return () => origin_ms + last_ms
}

/** Returns the RMS level in dBm0. */
function level(samples: Int16Array): number {
  let energy = 0
  for (const sample of samples) energy += sample * sample
  return 10 * Math.log10(energy / Math.max(1, samples.length) / (32_767 ** 2 / 2)) + 3.14
}

t.test('relaying and G.711 conversion keep the level of a tone in both directions at once', async t => {
  const w = world(t)
  for (const codecs of [['PCMU', 'PCMU'] as const, ['PCMU', 'PCMA'] as const]) {
    const { session, a, b } = await call(w, codecs)
    await Promise.all([a.peer.send(tone(1000, 600)), b.peer.send(tone(400, 600))])
    for (const leg of [a, b]) {
      await leg.peer.packets(30)
      const heard = level(await leg.peer.sound(580))
      t.ok(Math.abs(heard + 10) < 0.3, `${codecs}: the level is ${heard.toFixed(2)} dBm0`)
      const sequences = leg.peer.received.map(packet => packet.sequence)
      t.ok(
        sequences.every((sequence, index) => sequence === (((sequences[0] ?? 0) + index) & 0xffff)),
        'sequence numbers have no gap',
      )
      t.equal(new Set(leg.peer.received.map(packet => packet.ssrc)).size, 1, 'packets have one SSRC')
      t.equal(leg.peer.received[0]?.from_port, leg.stream.rtp_port, 'packets come from our port')
    }
    t.not(a.peer.received[0]?.ssrc, b.peer.ssrc, 'our SSRC differs from the peer’s')
    // A packet is counted after it has left.
    const stats = await until('all are counted', () => {
      const counted = a.stream.stats()
      return (counted?.packets_sent ?? 0) >= 30 && counted
    })
    t.match(stats, { packets_received: 30, packets_sent: 30, packets_lost: 0, latched: true, receive_codec: 'PCMU' })
    session.close()
  }
  await until('no stream is in use', () => w.engine.stats().threads[0]?.streams === 0)
  t.match(w.engine.stats(), { ports_in_use: 0, threads: [{ streams: 0 }] }, 'no port and no stream is in use')
})

t.test('a stranger can neither take over a stream nor receive its audio', async t => {
  const w = world(t)
  const { a, b } = await call(w)
  const stranger = await w.peer()
  await a.peer.send(tone(1000, 100))
  await w.event('latched', event => event.stream_id === a.stream.id)
  stranger.sendTo(a.stream.rtp_port)
  await Promise.all([stranger.send(tone(300, 400)), a.peer.send(tone(1000, 400)), b.peer.send(tone(400, 400))])
  await b.peer.packets(25)
  t.equal(b.peer.received.length, 25, 'only the peer’s packets are relayed')
  t.equal(stranger.received.length, 0, 'the stranger receives no packet')
  await until('the stranger’s packets are counted', () => a.stream.stats()?.strangers_dropped === 20)
})

t.test('random bytes and malformed headers are counted and do not disturb a call', async t => {
  const w = world(t)
  const { a, b } = await call(w)
  await a.peer.send(tone(1000, 100))
  let seed = 12_345
  const random = () => {
    seed = (seed * 1_664_525 + 1_013_904_223) >>> 0
    return seed >>> 24
  }
  for (let n = 0; n < 300; n++) a.peer.raw(Buffer.from(Array.from({ length: n % 90 }, random)))
  await a.peer.send(tone(1000, 600))
  await b.peer.until(received => received.length >= 30, PATIENCE_MS, 'the audio after the random bytes')
  const stats = a.stream.stats()
  t.ok(
    (stats?.malformed_dropped ?? 0) + (stats?.unexpected_dropped ?? 0) > 200,
    'most of the random packets are counted',
  )
})

t.test('keys are reported once, pass the bridge, and are sent on request', async t => {
  const w = world(t)
  const { a, b } = await call(w)
  await a.peer.send(tone(1000, 60))
  const told = () => w.events.filter(event => event.type === 'key')
  const relayed = () => b.peer.keys().map(({ key }) => key)
  let before = { told: 0, relayed: 0 }
  // 150 ms without a packet end a key. Its event then has the length until the last packet.
  await a.peer.unpaused(async () => {
    before = { told: told().length, relayed: relayed().length }
    for (const key of ['1', '9', '#']) await a.peer.sendKey(key, 100)
    await until('the last key is told', () => told().slice(before.told).at(-1)?.digit === '#')
    await b.peer.until(
      () => relayed().slice(before.relayed).at(-1) === '#',
      PATIENCE_MS,
      'the last key at the other end',
    )
  })
  const keys = told().slice(before.told)
  t.same(
    keys.map(key => key.digit),
    ['1', '9', '#'],
    'each key is reported once, in order',
  )
  t.ok(keys.every(key => key.source === 'rfc4733' && key.duration_ms >= 80 && key.duration_ms <= 120))
  t.same(relayed().slice(before.relayed), ['1', '9', '#'], 'the bridge relays the keys')
  const count = relayed().length
  b.stream.sendKeys('mine', '4*w2')
  t.equal((await w.event('digits_sent')).sent, true)
  await b.peer.until(() => relayed().length === count + 3, PATIENCE_MS, 'our keys')
  t.same(relayed().slice(count), ['4', '*', '2'], 'the peer receives the keys that we send')
})

t.test('an event within 250 ms of another key’s tones is reported as a separate key', async t => {
  const w = world(t)
  const session = w.engine.openSession()
  const peer = await w.peer()
  let keys: string[] = []
  await peer.unpaused(async () => {
    const stream = session.openStream(POLICY)
    if (!stream) throw new Error('no port is left')
    stream.describe(settled(peer))
    stream.detect({ inband_keys: true })
    peer.sendTo(stream.rtp_port)
    const high = tone(1336, 120)
    await peer.send(tone(1000, 60))
    await peer.send(tone(770, 120).map((sample, index) => sample + (high[index] ?? 0)))
    for (const key of ['6', '5', '5']) await peer.sendKey(key, 60)
    await peer.sendKey('#', 60)
    const mine = (event: EngineEvent) => (event.type === 'key' && event.stream_id === stream.id ? [event] : [])
    await w.event('key', event => event.stream_id === stream.id && event.digit === '#')
    keys = w.events.flatMap(mine).map(({ digit, source }) => `${digit} ${source}`)
    stream.close()
  })
  t.same(
    keys,
    ['5 inband', '6 rfc4733', '5 rfc4733', '# rfc4733'],
    'only the first event of the same key is dropped as a repetition of its tones',
  )
})

t.test('a play replaces the bridge, reports its end, and can be stopped and looped', async t => {
  const w = world(t)
  const { b } = await call(w)
  b.stream.play({
    play_id: 'wav',
    pieces: [{ kind: 'pcm', samples: tone(800, 500, 16_000), rate_hz: 16_000 }],
    loop: 2,
  })
  const ended = await w.event('play_ended', event => event.play_id === 'wav')
  t.match(ended, { reason: 'finished', played_ms: 1000 })
  t.ok(Math.abs(level(await b.peer.sound(980)) + 10) < 0.3, 'the play has the right level')
  b.stream.play({ play_id: 'ring', pieces: [{ kind: 'tone', hz: [425], on_ms: 1000, off_ms: 4000, total_ms: null }] })
  await b.peer.packets(60)
  b.stream.stopPlay('ring')
  t.equal((await w.event('play_ended', event => event.play_id === 'ring')).reason, 'stopped')
  t.ok(
    b.peer.received.every(
      (packet, index, all) => index === 0 || packet.sequence === (((all[index - 1]?.sequence ?? 0) + 1) & 0xffff),
    ),
  )
})

t.test('a stereo recording has one leg per channel, aligned within 20 ms, and reports its digest', async t => {
  const w = world(t)
  const folder = mkdtempSync(join(tmpdir(), 'native-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'both.wav')
  const { session, a, b } = await call(w)
  // Long enough for the recorder to place the packets of each leg by the earliest of them.
  const talk_ms = 3000
  let takes = 0
  let sent_ends: (() => number)[] = []
  await b.peer.unpaused(async () => {
    const recording_id = `take ${++takes}`
    rmSync(file, { force: true })
    session.record({ recording_id, file, channels: 2, left: a.stream, right: b.stream })
    sent_ends = [a, b].map(({ peer }) => endOfTalk(peer))
    await Promise.all([a.peer.send(tone(1000, talk_ms)), b.peer.send(tone(400, talk_ms))])
    await until('the engine has read all packets', () =>
      [a, b].every(({ peer, stream }) => (stream.stats()?.packets_received ?? 0) >= peer.sent),
    )
    session.stopRecord(recording_id)
    await w.event('record_ended', event => event.recording_id === recording_id)
  })
  const ended = await w.event('record_ended', event => event.recording_id === `take ${takes}`)
  t.match(ended, { reason: 'stopped', empty: false })
  const bytes = readFileSync(file)
  t.equal(bytes.length, ended.bytes)
  t.equal(createHash('sha256').update(bytes).digest('hex'), ended.sha256)
  const frames = new Int16Array(bytes.buffer, bytes.byteOffset + 44, (bytes.length - 44) / 2)
  const channel = (n: number) => frames.filter((_sample, index) => index % 2 === n)
  // One of the peers may have begun later than the other, and the first packet of each may have come late.
  const late_ms = [0, 1].map(
    n => channel(n).findLastIndex(sample => Math.abs(sample) > 500) / 8 - (sent_ends[n]?.() ?? Number.NaN),
  )
  const apart_ms = Math.abs((late_ms[0] ?? 0) - (late_ms[1] ?? 0))
  t.ok(apart_ms < 20, `the channels end as far apart as what was sent, within 20 ms: ${apart_ms.toFixed(1)} ms`)
  const crossings = (samples: Int16Array) =>
    samples.reduce((count, sample, index) => count + (sample >= 0 && (samples[index - 1] ?? 0) < 0 ? 1 : 0), 0)
  for (const [n, hz] of [
    [0, 1000],
    [1, 400],
  ] as const) {
    const part = sounding(channel(n)).subarray(800, 8800)
    t.ok(Math.abs(crossings(part) - hz) < hz * 0.02, `channel ${n} has ${hz} Hz`)
  }
  session.close()
})

t.test('two streams exchange SRTP with their keys, and a peer without the key is refused', async t => {
  const w = world(t)
  const session = w.engine.openSession()
  const keys = (seed: number) => new Uint8Array(28).fill(seed)
  const [near, far] = [session.openStream(POLICY), session.openStream(POLICY)]
  if (!near || !far) throw new Error('no port is left')
  const suite = 'AEAD_AES_128_GCM' as const
  const [a, b] = [await w.peer(), await w.peer()]
  // Two of our streams are each other's peers, so that each must decrypt what the other one encrypts.
  near.describe(
    settled(a, PCMU, {
      remote: { address: '127.0.0.1', rtp_port: far.rtp_port },
      srtp: { suite, receive_key: keys(1), send_key: keys(2) },
    }),
  )
  far.describe(
    settled(b, PCMU, {
      remote: { address: '127.0.0.1', rtp_port: near.rtp_port },
      srtp: { suite, receive_key: keys(2), send_key: keys(1) },
    }),
  )
  near.play({ play_id: 'x', pieces: [{ kind: 'tone', hz: [1000], on_ms: 300, off_ms: 0, total_ms: 300 }] })
  await w.event('play_ended')
  await w.event('first_packet', event => event.stream_id === far.id)
  a.sendTo(near.rtp_port)
  await a.send(tone(500, 100))
  near.play({ play_id: 'y', pieces: [{ kind: 'tone', hz: [1000], on_ms: 100, off_ms: 0, total_ms: 100 }] })
  await w.event('play_ended', event => event.play_id === 'y')
  await until('15 packets are received', () => (far.stats()?.packets_received ?? 0) >= 15)
  t.match(far.stats(), { srtp_auth_failed: 0, strangers_dropped: 0 })
  await until('plain RTP on a secured stream is counted', () => near.stats()?.srtp_auth_failed === 5)
  t.equal(near.stats()?.packets_received, 0, 'a secured stream refuses plain RTP')
})

t.test('each party of a conference hears the others and not itself', async t => {
  const w = world(t, { threads: 2 })
  const conference = w.engine.openConference()
  const parties = []
  for (const hz of [400, 700, 1000]) {
    const session = w.engine.openSession()
    const stream = session.openStream(POLICY)
    const peer = await w.peer()
    if (!stream) throw new Error('no port is left')
    stream.describe(settled(peer))
    peer.sendTo(stream.rtp_port)
    conference.join(stream)
    parties.push({ hz, stream, peer })
  }
  const sounds = Promise.all(parties.map(party => party.peer.sound(1200)))
  await Promise.all(parties.map(party => party.peer.sendUntil(tone(party.hz, PATIENCE_MS), sounds)))
  const strength = (samples: Int16Array, hz: number) => {
    let [re, im] = [0, 0]
    for (const [n, sample] of samples.entries()) {
      re += sample * Math.cos((2 * Math.PI * hz * n) / 8000)
      im += sample * Math.sin((2 * Math.PI * hz * n) / 8000)
    }
    return (2 * Math.hypot(re, im)) / samples.length
  }
  const heard_by = await sounds
  for (const [index, party] of parties.entries()) {
    const heard = heard_by[index] ?? new Int16Array()
    const amplitude = 32_767 * 10 ** (-13.14 / 20)
    // Of the shares in pieces of 100 ms the middle one, because a stop of this process makes pauses at other times.
    const pieces = Array.from({ length: Math.floor(heard.length / 800) }, (_, at) =>
      heard.subarray(at * 800, at * 800 + 800),
    )
    for (const other of parties) {
      const shares = pieces.map(piece => strength(piece, other.hz) / amplitude).sort((one, two) => one - two)
      const share = shares[shares.length >> 1] ?? Number.NaN
      if (other === party) t.ok(share < 0.1, `the party of ${party.hz} Hz does not hear itself (${share.toFixed(3)})`)
      else t.ok(share > 0.7 && share < 1.1, `the party of ${party.hz} Hz hears ${other.hz} Hz (${share.toFixed(3)})`)
    }
  }
})

t.test('taps report received and sent audio, and a feed reports its mark once its audio is sent', async t => {
  const w = world(t)
  const { a, b } = await call(w)
  a.stream.tap({ tap_id: 'in', what: 'received', rate_hz: 8000 })
  a.stream.tap({ tap_id: 'out', what: 'sent', rate_hz: 16_000, chunk_ms: 40 })
  await Promise.all([a.peer.send(tone(1000, 400)), b.peer.send(tone(400, 400))])
  await w.event('tap', event => event.tap_id === 'in' && level(event.samples) > -11)
  const out = await w.event('tap', event => event.tap_id === 'out' && level(event.samples) > -11)
  t.equal(out.samples.length, 640, 'chunks have the requested length')
  await a.peer.packets(20)
  const before = a.peer.received.length
  a.stream.feed(tone(600, 300), 8000)
  a.stream.feedMark('end')
  t.equal((await w.event('mark')).name, 'end')
  await a.peer.packets(before + 15)
  t.equal(a.peer.received.length - before, 15, '300 ms of a feed are fifteen packets')
})

t.test('opening a stream fails while no port is free, and succeeds after the quarantine', async t => {
  const { first } = await freeBlock(2)
  // Longer than this process may be stopped between the close and the next line.
  const w = world(t, { port_min: first, port_max: first + 1, quarantine_ms: 3000 })
  const session = w.engine.openSession()
  const stream = session.openStream(POLICY)
  t.equal(stream?.rtp_port, first)
  t.equal(session.openStream(POLICY), null, 'no port is free')
  stream?.close()
  t.equal(session.openStream(POLICY), null, 'the closed port is quarantined')
  const again = await until('a port is free', () => session.openStream(POLICY))
  t.equal(again.rtp_port, first, 'the port is reused')
})

t.test('invalid arguments throw before they reach the data plane', async t => {
  const w = world(t)
  const session = w.engine.openSession()
  const stream = session.openStream(POLICY)
  if (!stream) throw new Error('no port is left')
  const peer = await w.peer()
  t.throws(() => stream.describe({ ...settled(peer), send: { ...PCMU, ptime_ms: 25 } }), /ptime/)
  t.throws(() => stream.describe({ ...settled(peer), remote: { address: 'localhost', rtp_port: 1 } }), /literal/)
  t.throws(() => stream.describe({ ...settled(peer), receive: [{ ...PCMU, payload_type: 128 }] }), /payload_type/)
  const short = new Uint8Array(29)
  t.throws(
    () =>
      stream.describe({
        ...settled(peer),
        srtp: { suite: 'AES_CM_128_HMAC_SHA1_80', receive_key: short, send_key: short },
      }),
    /30 bytes/,
  )
  t.throws(() => stream.sendKeys('x', '12E'), /digits/)
  t.throws(() => stream.play({ play_id: '', pieces: [] }), /play_id/)
  t.throws(
    () => session.record({ recording_id: 'x', file: 'x.wav', channels: 2, left: stream, right: null }),
    /absolute/,
  )
  t.throws(() => session.openStream({ ...POLICY, sources: ['10.0.0.0/33'] }), /0 to 32/)
  t.throws(() => session.bridge(stream, stream), /itself/)
  t.throws(
    () => createEngine({ threads: 0, bind_address: '127.0.0.1', port_min: 0, port_max: 0, quarantine_ms: 0 }, () => {}),
    /threads/,
  )
})

t.test('files are resampled, encoded and decoded at their level', async t => {
  t.ok(features().codecs.includes('OPUS'))
  const down = resample(tone(1000, 500, 44_100), 44_100, 8000)
  t.equal(down.length, 4000)
  t.ok(Math.abs(level(down.subarray(400, 3600)) + 10) < 0.2)
  for (const codec of features().codecs) {
    const rate = CODEC_RATES[codec]
    const frames = encodeAll(codec, tone(1000, 500, rate))
    t.equal(frames.length, 25, `${codec}: 25 frames`)
    const back = decodeAll(codec, frames)
    t.ok(Math.abs(level(back.subarray(rate / 10, (rate * 4) / 10)) + 10) < 1, `${codec}: level within 1 dB`)
  }
})

t.test('a line without a stream hears speech as a watched stream does', t => {
  const hear = hearing({ onset_ms: 40, end_ms: 600 })
  const said = Int16Array.from([...new Int16Array(1600), ...tone(220, 200), ...new Int16Array(8000)])
  const heard: string[] = []
  for (let at = 0; at + 160 <= said.length; at += 160)
    for (const { edge } of hear(said.subarray(at, at + 160)).edges)
      if (edge !== 'voiced') heard.push(`${edge} ${at / 8}`)
  t.strictSame(heard, ['began 220', 'paused 440', 'ended 980'])
  t.throws(() => hear(new Int16Array(80)), /160 samples/)
  t.throws(() => hearing({ onset_ms: 50, end_ms: 600 }), /onset_ms: a multiple of 40/)
  t.throws(() => hearing({ onset_ms: 40, end_ms: 10 }), /end_ms: 200 to 5000/)
  t.end()
})
