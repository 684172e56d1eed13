import { join } from 'node:path'
import { RtpHeader, SrtpSession } from 'werift'
import { SRTP_SUITES } from '../../../core/domain/codecs/crypto-line.ts'
import { MediaRefusal } from '../../../media/protocol/client.ts'
import type { CodecName, LegPolicy } from '../../../media/protocol/schema.ts'
import { features } from '../../../native/index.ts'
import { levelDbm0, readWavFile, strongestHz, tone, toneLevelDbm0 } from '../../support/audio.ts'
import t from '../../support/harness/index.ts'
import { POLICY, startTestWorker } from '../../support/media-worker.ts'
import type { RtpPeer } from '../../support/rtp-peer.ts'
import { PATIENCE_MS, until } from '../../support/wait.ts'

const w = await startTestWorker()
t.teardown(() => w.stop())
const { client } = w
let legs = 0

async function openLeg(session_id: string, policy: Partial<LegPolicy>): Promise<string> {
  const leg_id = `c${++legs}`
  await client.request('leg.open', { session_id, leg_id, policy: { ...POLICY, ...policy } })
  return leg_id
}

/** Connects two legs of the worker over UDP as if each were the other's peer. `change` edits the offer in transit. */
async function connectLegs(a: string, b: string, change: (sdp: string) => string = sdp => sdp): Promise<void> {
  const offer = await client.request('leg.local_offer', { leg_id: a })
  await client.request('leg.remote_offer', { leg_id: b, sdp: change(offer.sdp) })
  const answer = await client.request('leg.local_answer', { leg_id: b })
  await client.request('leg.remote_answer', { leg_id: a, sdp: answer.sdp })
}

const here = features().codecs

t.test('equal codecs are relayed byte for byte, even if this machine cannot decode them', async t => {
  const session_id = await w.session()
  const [a, b] = [await w.peer(), await w.peer()]
  const g729 = (peer: RtpPeer) =>
    peer.sdp().replace('RTP/AVP 0 101', 'RTP/AVP 18 101').replace('rtpmap:0 PCMU', 'rtpmap:18 G729')
  const [left, right] = [
    await openLeg(session_id, { codecs: ['G729'] }),
    await openLeg(session_id, { codecs: ['G729'] }),
  ]
  for (const [leg_id, peer] of [
    [left, a],
    [right, b],
  ] as const) {
    await client.request('leg.remote_offer', { leg_id, sdp: g729(peer) })
    const { sdp } = await client.request('leg.local_answer', { leg_id })
    t.match(sdp, /a=fmtp:18 annexb=no/)
    peer.sendTo(Number(/m=audio (\d+)/.exec(sdp)?.[1]))
  }
  t.match(await client.request('bridge', { a: left, b: right }), { mode: 'relay' })
  const frames = Array.from({ length: 50 }, (_value, index) => Buffer.alloc(20, index))
  for (const payload of frames) a.packet({ payload_type: 18, payload, marker: false })
  // Where the machine can encode G.729, a leg has silence until it is bridged.
  const relayed = () => b.received.map(({ payload }) => payload).filter(of => of.every(byte => byte === of[0]))
  await b.until(() => relayed().length >= frames.length, PATIENCE_MS, 'the payloads')
  t.strictSame(relayed(), frames, 'the payloads are unchanged')
  t.ok(b.received.every(packet => packet.payload_type === 18))
  await client.request('session.close', { session_id })
})

t.test(
  'a pause is relayed to a peer that accepts comfort noise, and rendered as noise for one that does not',
  async t => {
    const session_id = await w.session()
    const NOISE = 13
    const [a, without, taking] = [
      await w.peer(),
      await w.peer({ codec: 'PCMA' }),
      await w.peer({ payload_type: 9, rtpmap: 'G722/8000' }),
    ]
    const legOf = async (peer: RtpPeer, codecs: CodecName[], noise: boolean) => {
      const leg_id = await openLeg(session_id, { codecs })
      const sdp = noise ? peer.sdp().replace(/^(m=audio [^\r]*)/m, `$1 ${NOISE}`) : peer.sdp()
      await client.request('leg.remote_offer', { leg_id, sdp })
      const answer = await client.request('leg.local_answer', { leg_id })
      t.equal(/a=rtpmap:13 CN\/8000/.test(answer.sdp), noise)
      peer.sendTo(Number(/m=audio (\d+)/.exec(answer.sdp)?.[1]))
      return leg_id
    }
    const left = await legOf(a, ['PCMU'], true)
    const pause = () => a.packet({ payload_type: NOISE, payload: Buffer.from([45]), marker: false })

    await client.request('bridge', { a: left, b: await legOf(without, ['PCMA'], false) })
    await a.send(tone(1000, 200))
    pause()
    // -45 dBov (RFC 3389) is -38.85 dBm0: 6.15 dB more.
    const noise = () => levelDbm0(without.audio(without.received.length - 25))
    await without.until(() => Math.abs(noise() + 38.85) < 2, PATIENCE_MS, 'noise of -38.85 dBm0 for half a second')
    t.ok(without.received.every(packet => packet.payload_type === 8))
    const hears = () => toneLevelDbm0(without.audio(without.received.length - 10), 1000) > -12
    await a.send(tone(1000, 60_000), hears)
    await without.until(hears, PATIENCE_MS, 'the tone')

    await client.request('bridge', { a: left, b: await legOf(taking, ['G722'], true) })
    let before = 0
    await a.unpaused(async () => {
      before = taking.received.length
      await a.send(tone(1000, 200))
      await taking.packets(before + 8)
    })
    pause()
    const told = () => taking.received.slice(before).filter(packet => packet.payload_type === NOISE)
    await taking.until(() => told().length >= 2, PATIENCE_MS, 'comfort noise')
    for (const packet of told()) t.ok(Math.abs((packet.payload[0] ?? 0) - 45) <= 2 && !packet.marker)
    const begun = taking.received.findIndex((packet, at) => at >= before && packet.payload_type === NOISE)
    t.ok(
      taking.received.slice(begun).every(packet => packet.payload_type === NOISE),
      'the pause carries no audio',
    )
    await a.send(tone(1000, 200))
    await taking.until(received => received.at(-1)?.payload_type === 9, PATIENCE_MS, 'audio again')
    t.ok(
      taking.received.slice(begun).find(packet => packet.payload_type === 9)?.marker,
      'the first packet after the pause has the marker bit',
    )
    await client.request('session.close', { session_id })
  },
)

t.test(
  'a bridge maps different payload types and relays a key with the payload type and clock of each leg',
  async t => {
    const session_id = await w.session()
    const a = await w.peer({ event_payload_type: 96 })
    const b = await w.peer({ codec: 'PCMA', event_payload_type: 120 })
    const left = await w.answeredLeg(session_id, a)
    const right = await w.answeredLeg(session_id, b, { codecs: ['PCMA'] })
    await client.request('bridge', { a: left.leg_id, b: right.leg_id })
    await a.send(tone(400, 200))
    await a.sendKey('7')
    await a.send(tone(400, 200))
    await b.until(() => b.keys().some(({ duration }) => duration === 800), PATIENCE_MS, 'the key of 100 ms')
    t.strictSame(b.keys(), [{ key: '7', duration: 800 }])
    t.ok(b.received.some(packet => packet.payload_type === 120))
    const events = b.received.filter(packet => packet.payload_type === 120)
    t.equal(new Set(events.map(packet => packet.timestamp)).size, 1)
    await client.request('session.close', { session_id })
  },
)

for (const { suite } of SRTP_SUITES) {
  t.test(`two legs exchange SRTP with ${suite} and are bridged with plain RTP`, async t => {
    const session_id = await w.session()
    const [a, b] = [await w.peer(), await w.peer()]
    const plain = [await w.answeredLeg(session_id, a), await w.answeredLeg(session_id, b)]
    const secured = [
      await openLeg(session_id, { security: 'sdes_srtp_required' }),
      await openLeg(session_id, { security: 'sdes_srtp_required' }),
    ] as const
    const only = (sdp: string) => sdp.replace(/^a=crypto:.*\r\n/gm, line => (line.includes(` ${suite} `) ? line : ''))
    await connectLegs(secured[0], secured[1], only)
    const stats = () => client.request('leg.stats', { leg_id: secured[0] })
    // A leg that has answered sends silence at once. The other leg cannot decrypt it before it has the answer.
    const early = (await stats()).srtp_dropped
    await client.request('bridge', { a: plain[0]?.leg_id ?? '', b: secured[0] })
    await client.request('bridge', { a: secured[1], b: plain[1]?.leg_id ?? '' })
    await Promise.all([a.send(tone(1000, 500)), b.send(tone(600, 500))])
    const [fromB, fromA] = await Promise.all([a.sound(200), b.sound(200)])
    t.equal(strongestHz(fromA), 1000)
    t.equal(strongestHz(fromB), 600)
    t.match(await stats(), { secured: true, srtp_dropped: early, packets_lost: 0 })
    await client.request('session.close', { session_id })
  })
}

t.test('SRTP interoperates with another implementation; packets with wrong keys and replays are dropped', async t => {
  // werift implements SRTP independently, in JavaScript.
  const AES_CM_128_HMAC_SHA1_80 = 1
  const theirs = Buffer.alloc(30, 0x5a)
  const session_id = await w.session()
  const leg_id = await openLeg(session_id, { security: 'sdes_srtp_required' })
  let srtp: SrtpSession | null = null
  const sent: Buffer[] = []
  const a = await w.peer({
    protect: packet => {
      const bytes = srtp ? srtp.encrypt(packet.subarray(12), RtpHeader.deSerialize(packet.subarray(0, 12))) : packet
      sent.push(bytes)
      return bytes
    },
    unprotect: packet => (srtp ? srtp.decrypt(packet) : null),
  })
  const secure = a
    .sdp({ attributes: [`crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${theirs.toString('base64')}`] })
    .replace('RTP/AVP', 'RTP/SAVP')
  await client.request('leg.remote_offer', { leg_id, sdp: secure })
  const { sdp } = await client.request('leg.local_answer', { leg_id })
  const ours = Buffer.from(/inline:(\S+)/.exec(sdp)?.[1] ?? '', 'base64')
  t.equal(ours.length, 30)
  a.sendTo(Number(/m=audio (\d+)/.exec(sdp)?.[1]))
  const keys = (key: Buffer) => ({ masterKey: key.subarray(0, 16), masterSalt: key.subarray(16) })
  const sessionOf = (local: Buffer) =>
    new SrtpSession({
      keys: {
        localMasterKey: keys(local).masterKey,
        localMasterSalt: keys(local).masterSalt,
        remoteMasterKey: keys(ours).masterKey,
        remoteMasterSalt: keys(ours).masterSalt,
      },
      profile: AES_CM_128_HMAC_SHA1_80,
    })
  const b = await w.peer()
  const plain = await w.answeredLeg(session_id, b)
  await client.request('bridge', { a: leg_id, b: plain.leg_id })

  srtp = sessionOf(Buffer.alloc(30, 0x11))
  await a.send(tone(1000, 200))
  srtp = sessionOf(theirs)
  await Promise.all([a.send(tone(1000, 500)), b.send(tone(600, 500))])
  const [fromB, fromA] = await Promise.all([a.sound(200), b.sound(200)])
  t.equal(strongestHz(fromA), 1000)
  t.equal(strongestHz(fromB), 600)
  const dropped = async () => (await client.request('leg.stats', { leg_id })).srtp_dropped
  await until('ten packets with wrong keys are dropped', async () => (await dropped()) >= 10)
  const before = await dropped()
  for (const packet of sent.slice(-5)) a.raw(packet)
  a.raw(Buffer.concat([Buffer.from([0x80, 0, 1, 1, 0, 0, 0, 1, 1, 2, 3, 4]), Buffer.alloc(160, 0xff)]))
  await a.send(tone(1000, 100))
  await until('replays and plain packets are dropped', async () => (await dropped()) >= before + 5)
  t.equal(strongestHz(b.audio()), 1000, 'and not heard')
  await client.request('session.close', { session_id })
})

t.test('hold, resume and a codec change keep one SSRC without a jump of sequence numbers or timestamps', async t => {
  const session_id = await w.session()
  const [a, b] = [await w.peer(), await w.peer()]
  const left = await w.answeredLeg(session_id, a)
  const right = await w.answeredLeg(session_id, b)
  await client.request('bridge', { a: left.leg_id, b: right.leg_id })
  const reinvite = async (sdp: string) => {
    await client.request('leg.remote_offer', { leg_id: right.leg_id, sdp })
    return client.request('leg.local_answer', { leg_id: right.leg_id })
  }
  await a.send(tone(1000, 400))
  await b.packets(20)
  t.match(await reinvite(b.sdp({ direction: 'sendonly', version: 2 })), { direction: 'recvonly' })
  const held = await b.settled()
  await a.send(tone(1000, 400))
  t.equal(await b.settled(), held, 'nothing is sent to a peer that put us on hold')
  t.match(await reinvite(b.sdp({ version: 3 })), { direction: 'sendrecv' })
  await a.send(tone(1000, 400))
  const resumed = b.received.length
  await client.request('play.start', {
    leg_id: right.leg_id,
    play_id: 'splice',
    loop: 1,
    sources: [{ kind: 'tone', hz: [700], on_ms: 200, off_ms: 0, total_ms: 200 }],
  })
  await a.send(tone(1000, 400))
  await w.event('play.ended', ({ play_id }) => play_id === 'splice')
  await a.send(tone(1000, 200))
  const { received } = b
  t.equal(new Set(received.map(packet => packet.ssrc)).size, 1)
  const steps = received.slice(1).map((packet, index) => ({
    sequence: (packet.sequence - (received[index]?.sequence ?? 0)) & 0xffff,
    timestamp: (packet.timestamp - (received[index]?.timestamp ?? 0)) >>> 0,
  }))
  t.strictSame(
    steps.filter(({ sequence }) => sequence !== 1),
    [],
    'no sequence number is skipped or repeated',
  )
  t.ok(
    steps.every(({ timestamp }) => timestamp > 0 && timestamp < 8000 * 60),
    'timestamps only increase',
  )
  // A busy machine may deliver packets late but never early, so the least lag of each part is that of the stream.
  const lag = (from: number, to: number) =>
    Math.min(
      ...received
        .slice(from, to)
        .map(packet => packet.at_ms - ((packet.timestamp - (received[0]?.timestamp ?? 0)) >>> 0) / 8),
    )
  const lags = [lag(0, held), lag(held, resumed), lag(resumed, received.length)]
  const hold_ms = (received[held]?.at_ms ?? 0) - (received[held - 1]?.at_ms ?? 0)
  t.ok(
    Math.max(...lags) - Math.min(...lags) < hold_ms / 2,
    `timestamps keep pace with the clock, including the hold of ${hold_ms} ms: ${lags}`,
  )

  const pcma = b.sdp({ version: 4 }).replace('RTP/AVP 0', 'RTP/AVP 8').replace('rtpmap:0 PCMU', 'rtpmap:8 PCMA')
  t.match(await client.request('leg.remote_offer', { leg_id: right.leg_id, sdp: pcma }), { codecs: ['PCMA'] })
  t.match(await client.request('leg.local_answer', { leg_id: right.leg_id }), { codec: 'PCMA' })
  const count = b.received.length
  await a.send(tone(1000, 400))
  await b.until(
    packets => packets.slice(count).filter(packet => packet.payload_type === 8).length > 10,
    PATIENCE_MS,
    'PCMA',
  )
  t.equal(new Set(b.received.map(packet => packet.ssrc)).size, 1)
  await client.request('session.close', { session_id })
})

t.test('a dual recording stays aligned through hold, loss and a codec change', async t => {
  const session_id = await w.session()
  const [a, b] = [await w.peer(), await w.peer()]
  const left = await w.answeredLeg(session_id, a)
  const right = await w.answeredLeg(session_id, b)
  await client.request('bridge', { a: left.leg_id, b: right.leg_id })
  await Promise.all([a.send(tone(1000, 100)), b.send(tone(600, 100))])
  const file = join(w.data_dir, 'recordings', 'kept.wav')
  const asked_ms = performance.now()
  await client.request('record.start', {
    session_id,
    recording_id: 'kept',
    file,
    channels: 2,
    left: left.leg_id,
    right: right.leg_id,
    what: 'both',
    max_ms: null,
    silence_ms: null,
    finish_keys: '',
    beep: false,
    trim: false,
  })
  const began_ms = performance.now()
  const reinvite = async (sdp: string) => {
    await client.request('leg.remote_offer', { leg_id: right.leg_id, sdp })
    await client.request('leg.local_answer', { leg_id: right.leg_id })
  }
  const marks: number[] = []
  const mark = () => marks.push(performance.now() - began_ms)
  const called = async () => {
    await b.sendImpaired(tone(600, 1000), { loss: 0.1, jitter_ms: 20, seed: 5 })
    mark()
    await reinvite(b.sdp({ direction: 'sendonly', version: 2 }))
    await new Promise(resolve => setTimeout(resolve, 1000))
    const pcma = await w.peer({ codec: 'PCMA' })
    await reinvite(pcma.sdp({ version: 3 }))
    pcma.sendTo(right.rtp_port)
    mark()
    await pcma.send(tone(600, 1000))
  }
  await Promise.all([a.send(tone(1000, 3100)), called()])
  const least_ms = performance.now() - began_ms
  await client.request('record.stop', { recording_id: 'kept' })
  const ended = await w.event('record.ended', ({ recording_id }) => recording_id === 'kept')
  const most_ms = performance.now() - asked_ms
  t.ok(
    ended.duration_ms > least_ms - 100 && ended.duration_ms < most_ms + 100,
    `${least_ms.toFixed()} to ${most_ms.toFixed()} ms were recorded as ${ended.duration_ms}`,
  )
  const [caller = new Int16Array(), other = new Int16Array()] = readWavFile(file).channels
  const [held_ms = 0, resumed_ms = 0] = marks
  /** The level of a tone in the loudest 100 ms of a time: a stop of this process leaves pauses in what is sent. */
  const loudest = (channel: Int16Array, from_ms: number, to_ms: number, hz: number) => {
    let level = Number.NEGATIVE_INFINITY
    for (let at_ms = from_ms; at_ms + 100 <= to_ms; at_ms += 100)
      level = Math.max(level, toneLevelDbm0(channel.subarray(at_ms * 8, (at_ms + 100) * 8), hz))
    return level
  }
  const times = [
    [200, held_ms - 100],
    [held_ms + 200, resumed_ms - 20],
    [resumed_ms + 200, least_ms - 100],
  ] as const
  for (const [from_ms, to_ms] of times)
    t.ok(loudest(caller, from_ms, to_ms, 1000) > -12, `the caller is heard after ${from_ms.toFixed()} ms`)
  const [before = 0, during = 0, after = 0] = times.map(([from_ms, to_ms]) => loudest(other, from_ms, to_ms, 600))
  t.ok(before > -14, 'the callee is heard before the hold')
  t.ok(during < -50, 'the callee is silent during the hold, and no audio moved to an earlier time')
  t.ok(after > -12, 'the callee is heard after the hold')
  await client.request('session.close', { session_id })
})

t.test('media follows a peer to the address of its new SDP at once, and ignores a stranger', async t => {
  const session_id = await w.session()
  const [a, b, moved, stranger] = [await w.peer(), await w.peer(), await w.peer(), await w.peer()]
  const left = await w.answeredLeg(session_id, a)
  const right = await w.answeredLeg(session_id, b)
  await client.request('bridge', { a: left.leg_id, b: right.leg_id })
  await Promise.all([a.send(tone(1000, 200)), b.send(tone(600, 200))])
  stranger.sendTo(right.rtp_port)
  await Promise.all([stranger.send(tone(2000, 600)), b.send(tone(600, 600)), a.send(tone(1000, 600))])
  t.equal(stranger.received.length, 0, 'nothing is sent to a stranger')
  const hijacked = toneLevelDbm0(a.audio(), 2000)
  t.ok(hijacked < -45, `the stranger is not heard (${hijacked.toFixed(1)} dBm0)`)
  await until('the stranger’s packets are counted', async () => {
    const { strangers_dropped } = await client.request('leg.stats', { leg_id: right.leg_id })
    return strangers_dropped >= 25
  })

  await client.request('leg.remote_offer', { leg_id: right.leg_id, sdp: moved.sdp({ version: 2 }) })
  await client.request('leg.local_answer', { leg_id: right.leg_id })
  moved.sendTo(right.rtp_port)
  await Promise.all([moved.send(tone(800, 400)), a.send(tone(1000, 400))])
  await moved.packets(15)
  t.equal(strongestHz(moved.audio()), 1000)
  await client.request('session.close', { session_id })
})

t.test('a strict leg accepts media only from its SDP address and its sources', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const leg_id = await openLeg(session_id, { source_validation: 'strict', sources: ['127.0.0.9/32'] })
  await client.request('leg.remote_offer', { leg_id, sdp: peer.sdp({ address: '127.0.0.8' }) })
  const { sdp } = await client.request('leg.local_answer', { leg_id })
  const port = Number(/m=audio (\d+)/.exec(sdp)?.[1])
  peer.sendTo(port)
  await peer.send(tone(1000, 400))
  t.match(await client.request('leg.stats', { leg_id }), { packets_received: 0, remote_address: '127.0.0.8' })
  const source = await w.peer({ address: '127.0.0.9' })
  source.sendTo(port)
  await source.send(tone(1000, 400))
  const taken = async () => (await client.request('leg.stats', { leg_id })).packets_received
  await until('packets of a source of the trunk are taken', async () => (await taken()) === 20)
  await client.request('session.close', { session_id })
})

const decodable = here.includes('G729') ? 'G.729 can be transcoded on this machine' : false
t.test(
  'a bridge that would have to transcode a codec that this machine lacks is refused',
  { skip: decodable },
  async t => {
    const session_id = await w.session()
    const one = await openLeg(session_id, { codecs: ['G729'] })
    const two = await openLeg(session_id, { codecs: ['G729'] })
    await connectLegs(one, two)
    const peer = await w.peer()
    const plain = await w.answeredLeg(session_id, peer)
    await t.rejects(client.request('bridge', { a: one, b: plain.leg_id }), MediaRefusal)
  },
)
