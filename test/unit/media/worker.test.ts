import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connectMedia } from '../../../media/protocol/client.ts'
import { type PlaySource, SOUNDS_FOLDER } from '../../../media/protocol/schema.ts'
import {
  encodeG711,
  heardSpan,
  levelDbm0,
  readWavFile,
  sounding,
  strongestHz,
  tone,
  toneLevelDbm0,
  trimmed,
  wavBytes,
} from '../../support/audio.ts'
import t from '../../support/harness/index.ts'
import { POLICY, reasonOf, startTestWorker } from '../../support/media-worker.ts'
import { PATIENCE_MS, until } from '../../support/wait.ts'

const w = await startTestWorker()
t.teardown(() => w.stop())
const { client } = w

const TONE = { kind: 'tone', hz: [600], on_ms: 1000, off_ms: 0, total_ms: null } satisfies PlaySource

t.test('two legs with the same codec are relayed in both directions through our ports', async t => {
  const session_id = await w.session()
  const [a, b] = [await w.peer(), await w.peer()]
  const left = await w.answeredLeg(session_id, a)
  const right = await w.answeredLeg(session_id, b)
  t.notMatch(left.sdp, new RegExp(`audio ${b.port}`), 'no SDP shows the other peer’s port')
  const bridge = await client.request('bridge', { a: left.leg_id, b: right.leg_id })
  t.strictSame(bridge, { mode: 'relay', codecs: ['PCMU', 'PCMU'] })
  await Promise.all([a.send(tone(1000, 1000)), b.send(tone(700, 1000))])
  const [heard_by_a, heard_by_b] = await Promise.all([a.sound(800), b.sound(800)])
  await Promise.all([a.packets(50), b.packets(50)])
  t.equal(strongestHz(heard_by_b), 1000)
  t.equal(strongestHz(heard_by_a), 700)
  t.ok(Math.abs(levelDbm0(heard_by_b) + 10) < 0.3, 'the tone keeps its level')
  t.ok(b.received.every(packet => packet.from_port === right.rtp_port))
  t.equal(new Set(b.received.map(packet => packet.ssrc)).size, 1)
  t.not(b.received[0]?.ssrc, a.ssrc, 'the stream has our SSRC')
  const sequences = b.received.map(packet => packet.sequence)
  t.ok(sequences.every((sequence, index) => index === 0 || sequence === (((sequences[index - 1] ?? 0) + 1) & 0xffff)))
  t.match(await w.event('leg.latched', ({ leg_id }) => leg_id === left.leg_id), { address: '127.0.0.1', port: a.port })
  await w.event('leg.first_packet', ({ leg_id }) => leg_id === right.leg_id)

  const { legs } = await client.request('session.close', { session_id })
  const stats = legs[left.leg_id]
  t.match(stats, { codec: 'PCMU', secured: false, packets_lost: 0, remote_port: a.port, signalled_port: a.port })
  t.ok((stats?.packets_received ?? 0) >= 40)
  t.ok((stats?.mos ?? 0) > 4.2)
  t.match(stats?.first_packet_at, /^\d{4}-\d\d-\d\dT/)
  t.equal(await reasonOf(client.request('leg.stats', { leg_id: left.leg_id })), 'leg_unknown')
})

t.test('two legs with different codecs are transcoded at the same level', async t => {
  const session_id = await w.session()
  const [a, b] = [await w.peer({ codec: 'PCMU' }), await w.peer({ codec: 'PCMA' })]
  const left = await w.answeredLeg(session_id, a)
  const right = await w.answeredLeg(session_id, b)
  const bridge = await client.request('bridge', { a: left.leg_id, b: right.leg_id })
  t.strictSame(bridge, { mode: 'transcode', codecs: ['PCMU', 'PCMA'] })
  const heard = await a.sendUntil(tone(1000, PATIENCE_MS), b.sound(1200))
  t.equal(strongestHz(heard), 1000)
  t.ok(Math.abs(levelDbm0(heard) + 10) < 1)
  await client.request('session.close', { session_id })
})

t.test('an answer with prefer_leg selects that leg’s codec, so that the bridge is a relay', async t => {
  const session_id = await w.session()
  const [a, b] = [await w.peer({ codec: 'PCMA' }), await w.peer({ codec: 'PCMU' })]
  const left = await w.answeredLeg(session_id, a)
  const both = b.sdp().replace(`RTP/AVP 0 101`, 'RTP/AVP 0 8 101')
  await client.request('leg.open', { session_id, leg_id: 'prefers', policy: POLICY })
  const offer = await client.request('leg.remote_offer', { leg_id: 'prefers', sdp: both })
  t.match(offer, { codecs: ['PCMU', 'PCMA'], direction: 'sendrecv', hold: false, secured: false })
  const answer = await client.request('leg.local_answer', { leg_id: 'prefers', prefer_leg: left.leg_id })
  t.equal(answer.codec, 'PCMA')
  const again = await client.request('leg.local_answer', { leg_id: 'prefers' })
  t.equal(again.sdp, answer.sdp, 'the answers for the 183 and the 200 are identical')
  t.match(await client.request('bridge', { a: left.leg_id, b: 'prefers' }), { mode: 'relay' })
  await client.request('session.close', { session_id })
})

t.test('each of our offers (first, hold, resume) raises the o= version, and media follows the answers', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const { rtp_port } = await client.request('leg.open', { session_id, leg_id: 'offers', policy: POLICY })
  peer.sendTo(rtp_port)
  const offer = await client.request('leg.local_offer', { leg_id: 'offers' })
  t.match(offer.sdp, new RegExp(`m=audio ${rtp_port} RTP/AVP 0 8 101`))
  t.match(offer.sdp, /^o=strowger \d+ 1 /m)
  t.equal(
    await reasonOf(
      client.request('play.start', { leg_id: 'offers', play_id: 'p', sources: [{ kind: 'silence', ms: 1 }], loop: 1 }),
    ),
    'leg_not_ready',
  )
  const answered = await client.request('leg.remote_answer', { leg_id: 'offers', sdp: peer.sdp() })
  t.strictSame(answered, { codec: 'PCMU', direction: 'sendrecv', hold: false, key_events: true })

  const held = await client.request('leg.local_offer', { leg_id: 'offers', direction: 'sendonly' })
  t.match(held.sdp, /^o=strowger \d+ 2 /m)
  t.match(held.sdp, /a=sendonly/)
  const holding = await client.request('leg.remote_answer', {
    leg_id: 'offers',
    sdp: peer.sdp({ direction: 'recvonly' }),
  })
  t.strictSame(holding, { codec: 'PCMU', direction: 'sendonly', hold: false, key_events: true })
  await client.request('leg.local_offer', { leg_id: 'offers', direction: 'sendrecv' })
  await client.request('leg.rollback', { leg_id: 'offers' })
  const resumed = await client.request('leg.local_offer', { leg_id: 'offers', direction: 'sendrecv' })
  t.match(resumed.sdp, /^o=strowger \d+ [45] /m, 'the version of a refused offer is not reused')
  await client.request('leg.remote_answer', { leg_id: 'offers', sdp: peer.sdp() })

  await client.request('play.start', {
    leg_id: 'offers',
    play_id: 'p',
    sources: [{ kind: 'tone', hz: [800], on_ms: 400, off_ms: 0, total_ms: 400 }],
    loop: 1,
  })
  t.equal(strongestHz(await peer.sound(360)), 800)
  const theirs = await client.request('leg.remote_offer', {
    leg_id: 'offers',
    sdp: peer.sdp({ direction: 'sendonly' }),
  })
  t.match(theirs, { hold: true, direction: 'sendonly' })
  t.match(await client.request('leg.local_answer', { leg_id: 'offers' }), { direction: 'recvonly' })
  await client.request('session.close', { session_id })
})

t.test('a leg whose peer asks for a fax, which we refuse, still hears what is played', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(session_id, peer)
  const fax = peer
    .sdp({ version: 2 })
    .replace(/m=audio \d+/, 'm=audio 0')
    .concat(`m=image ${peer.port} udptl t38\r\n`)
  t.equal(await reasonOf(client.request('leg.remote_offer', { leg_id, sdp: fax })), 'no_common_codec')
  await client.request('leg.rollback', { leg_id })
  await client.request('play.start', { leg_id, play_id: 'after', sources: [TONE], loop: 0 })
  t.equal(strongestHz(await peer.sound(400)), 600)
  t.match(await client.request('leg.stats', { leg_id }), { codec: 'PCMU' })
  await client.request('session.close', { session_id })
})

t.test('tones, prompts, speech and silence are played in sequence, and one play.ended follows', async t => {
  mkdirSync(join(w.data_dir, SOUNDS_FOLDER), { recursive: true })
  const sound = wavBytes(16_000, tone(1200, 600, 16_000), tone(1200, 600, 16_000))
  for (const folder of ['.', SOUNDS_FOLDER]) writeFileSync(join(w.data_dir, folder, 'welcome.wav'), sound)
  const welcome = { kind: 'file', path: `${SOUNDS_FOLDER}/welcome.wav` } as const
  const session_id = await w.session()
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(session_id, peer)
  await client.request('play.start', {
    leg_id,
    play_id: 'list',
    loop: 1,
    sources: [
      { kind: 'tone', hz: [500], on_ms: 500, off_ms: 0, total_ms: 500 },
      welcome,
      { kind: 'file', path: '../../etc/passwd' },
      { kind: 'speech', text: 'Good morning', voice: 'woman', language: 'en-GB' },
      { kind: 'silence', ms: 100 },
      { ...welcome, from_ms: 500 },
      { kind: 'file', path: 'welcome.wav' },
    ],
  })
  const ended = await w.event('play.ended', ({ play_id }) => play_id === 'list')
  t.match(ended, { leg_id, reason: 'finished', failures: [{ index: 2, reason: 'file_refused' }, { index: 6 }] })
  t.equal(ended.failures.length, 2, 'no other file of the data folder is a sound')
  // The event may be read before the last packets. The first prompt ends earlier than after 1.5 s of sound.
  const whole = (): boolean => {
    const heard = sounding(peer.audio())
    return heard.length > 1500 * 8 && toneLevelDbm0(heard.subarray(-640), 1200) > -14
  }
  await peer.until(whole, PATIENCE_MS, 'the end of the last prompt')
  const heard = sounding(peer.audio())
  t.equal(strongestHz(heard.subarray(800, 3200)), 500)
  const prompt = heard.subarray(4800, 8000)
  t.equal(strongestHz(prompt), 1200)
  t.ok(Math.abs(toneLevelDbm0(prompt, 1200) + 10) < 1, 'the prompt has the level of the file')
  const last = heard.subarray(-640)
  t.equal(strongestHz(last), 1200, 'the last 100 ms of the prompt are played')
  const speech = heard.subarray(10_000, -1600)
  t.ok(levelDbm0(speech) > -35, 'speech can be heard')
  t.ok((heardSpan(heard)?.to_ms ?? 0) > 1500)
  t.equal(w.events('play.ended').filter(({ play_id }) => play_id === 'list').length, 1)
  await client.request('session.close', { session_id })
})

t.test('an MP3 is fetched by URL and played; a missing one is reported and skipped', async t => {
  const mp3 = readFileSync(
    fileURLToPath(new URL('../../../../fixtures/audio/tone-1000hz-stereo-44100.mp3', import.meta.url)),
  )
  const server = createServer((request, response) => {
    if (request.url === '/tone.mp3') response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(mp3)
    else response.writeHead(404).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const session_id = await w.session()
  const peer = await w.peer({ codec: 'PCMA' })
  const { leg_id } = await w.answeredLeg(session_id, peer)
  const sources = ['/none.mp3', '/tone.mp3'].map(path => ({ kind: 'url' as const, url: `${base}${path}` }))
  await client.request('play.start', { leg_id, play_id: 'mp3', sources, loop: 1 })
  const ended = await w.event('play.ended', ({ play_id }) => play_id === 'mp3')
  t.match(ended, { reason: 'finished', failures: [{ index: 0, reason: 'fetch_failed', detail: /404/ }] })
  const heard = await peer.sound(1940)
  t.ok(heard.length / 8 < 2140, `2 s lasted ${heard.length / 8} ms`)
  const middle = heard.subarray(4000, 12_000)
  t.equal(strongestHz(middle), 1000)
  t.ok(Math.abs(toneLevelDbm0(middle, 1000) + 9.9) < 1, 'the tone has the level of the file')
  await client.request('session.close', { session_id })
})

t.test('a play can be looped, replaced and stopped; one without playable sources ends as failed', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(session_id, peer)
  const short = { kind: 'tone', hz: [900], on_ms: 100, off_ms: 100, total_ms: 200 } satisfies PlaySource
  await client.request('play.start', { leg_id, play_id: 'thrice', sources: [short], loop: 3 })
  await w.event('play.ended', ({ play_id, reason }) => play_id === 'thrice' && reason === 'finished')
  const sound_ms = (await peer.sound(280)).length / 8
  const length_ms = trimmed(peer.audio()).length / 8
  t.ok(sound_ms <= 320 && length_ms >= 460, `three times 100 ms of tone and two pauses lasted ${length_ms} ms`)

  await client.request('play.start', {
    leg_id,
    play_id: 'endless',
    sources: [{ kind: 'ringback', country: 'ng' }],
    loop: 1,
  })
  const before = peer.received.length
  await peer.packets(before + 10)
  await client.request('play.start', {
    leg_id,
    play_id: 'next',
    sources: [{ kind: 'tone', hz: [600], on_ms: 50, off_ms: 0, total_ms: null }],
    loop: 0,
  })
  await w.event('play.ended', ({ play_id, reason }) => play_id === 'endless' && reason === 'stopped')
  await client.request('play.stop', { leg_id, play_id: 'another' })
  t.equal(
    w.events('play.ended').some(({ play_id }) => play_id === 'next'),
    false,
  )
  await client.request('play.stop', { leg_id })
  await w.event('play.ended', ({ play_id, reason }) => play_id === 'next' && reason === 'stopped')

  const missing = { kind: 'file', path: `${SOUNDS_FOLDER}/none.wav` } satisfies PlaySource
  await client.request('play.start', { leg_id, play_id: 'nothing', sources: [missing, missing], loop: 0 })
  const failed = await w.event('play.ended', ({ play_id }) => play_id === 'nothing')
  t.match(failed, { reason: 'failed', failures: [{ index: 0 }, { index: 1 }] })
  await client.request('session.close', { session_id })
})

t.test(
  'each key is reported once despite lost packets, and passes through a bridge unless relaying is off',
  async t => {
    const session_id = await w.session()
    const [a, b] = [await w.peer(), await w.peer()]
    const left = await w.answeredLeg(session_id, a)
    const right = await w.answeredLeg(session_id, b)
    await client.request('bridge', { a: left.leg_id, b: right.leg_id })
    await a.send(tone(400, 100))
    await a.sendKey('1')
    await a.sendKey('1', 100, { marker: false })
    await a.sendKey('#', 200, { ends: 0 })
    await a.send(tone(400, 60))
    await a.sendKey('D')
    await a.send(tone(400, 60))
    const mine = () => w.events('dtmf').filter(({ leg_id }) => leg_id === left.leg_id)
    await w.event('dtmf', ({ leg_id, digit }) => leg_id === left.leg_id && digit === 'D')
    t.strictSame(
      mine().map(({ digit, source }) => `${digit} ${source}`),
      ['1 rfc4733', '1 rfc4733', '# rfc4733', 'D rfc4733'],
    )
    await b.until(() => b.keys().length >= 4, PATIENCE_MS, 'four keys')
    t.strictSame(
      b.keys().map(({ key }) => key),
      ['1', '1', '#', 'D'],
    )

    await client.request('dtmf.relay', { leg_id: left.leg_id, enabled: false })
    // The packet thread alternates between commands and packets, so a packet relayed since proves that it has the
    // command.
    const frame = Int16Array.from({ length: 160 }, (_, at) => 90 * (at - 80))
    const payload = encodeG711('PCMU', frame)
    await a.send(frame)
    await b.until(received => received.some(packet => packet.payload.equals(payload)), PATIENCE_MS, 'the frame')
    await a.sendKey('5')
    await a.send(tone(400, 200))
    await w.event('dtmf', ({ leg_id, digit }) => leg_id === left.leg_id && digit === '5')
    t.strictSame(
      b.keys().map(({ key }) => key),
      ['1', '1', '#', 'D'],
      'the key is not relayed',
    )
    await client.request('session.close', { session_id })
  },
)

t.test('digits are sent in order as RFC 4733 events, or in-band to a peer without telephone-event', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(session_id, peer)
  await client.request('digits.send', { leg_id, send_id: 'd1', digits: '12w#' })
  await client.request('digits.send', { leg_id, send_id: 'd2', digits: 'A' })
  await w.event('digits.sent', ({ send_id }) => send_id === 'd2')
  t.strictSame(
    w.events('digits.sent').map(({ send_id }) => send_id),
    ['d1', 'd2'],
  )
  const whole = () => peer.keys().filter(({ duration }) => duration === 800)
  await peer.until(() => whole().length === 4, PATIENCE_MS, 'four keys of 100 ms each')
  t.strictSame(
    peer.keys().map(({ key }) => key),
    ['1', '2', '#', 'A'],
  )

  const plain = await w.peer({ codec: 'PCMA' })
  const other = await w.answeredLeg(session_id, plain, { telephone_event: false })
  await client.request('digits.send', { leg_id: other.leg_id, send_id: 'd3', digits: '5' })
  await w.event('digits.sent', ({ send_id }) => send_id === 'd3')
  const audio = await plain.sound(80)
  t.equal(strongestHz(audio, 8000, [697, 770, 852, 941]), 770)
  t.equal(strongestHz(audio, 8000, [1209, 1336, 1477, 1633]), 1336)
  t.equal(await reasonOf(client.request('digits.send', { leg_id, send_id: 'd4', digits: '1x' })), 'params_invalid')
  // What <Play digits>, sendDigits of <Number> and SendDigits of a call may hold.
  await client.request('digits.send', { leg_id, send_id: 'd5', digits: 'd'.repeat(500) })
  await client.request('session.close', { session_id })
})

t.test(
  'in-band keys are detected on an unbridged leg without telephone-event, and in a bridge only on request',
  async t => {
    const session_id = await w.session()
    const [peer, other] = [await w.peer(), await w.peer()]
    const { leg_id } = await w.answeredLeg(session_id, peer, { telephone_event: false })
    const far = await w.answeredLeg(session_id, other)
    // A key is pressed again when a stop of this process has split it in two.
    const press = (low_hz: number, high_hz: number) =>
      peer.unpaused(async () => {
        const high = tone(high_hz, 120, 8000, -9)
        await peer.send(new Int16Array(800))
        await peer.send(tone(low_hz, 120, 8000, -9).map((sample, index) => sample + (high[index] ?? 0)))
        await peer.send(new Int16Array(1600))
      })
    const keys = () => w.events('dtmf').filter(event => event.leg_id === leg_id)
    const heard = (digit: string) => w.event('dtmf', event => event.leg_id === leg_id && event.digit === digit)
    let presses = await press(852, 1477)
    t.match(await heard('9'), { source: 'inband' })
    await client.request('bridge', { a: leg_id, b: far.leg_id })
    presses += await press(697, 1209)
    await client.request('inband.detect', { leg_id, enabled: true })
    presses += await press(770, 1336)
    await heard('5')
    const digits = keys().map(({ digit }) => digit)
    t.strictSame(
      presses === 3 ? digits : [...new Set(digits)],
      ['9', '5'],
      'in the bridge, 1 is ignored; 5 is detected on request',
    )
    await client.request('session.close', { session_id })
  },
)

t.test('keys count by the number of the peer’s own answer and by the clock rate that the peer lists', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const leg_id = 'own-numbers'
  const { rtp_port } = await client.request('leg.open', { session_id, leg_id, policy: POLICY })
  const { sdp } = await client.request('leg.local_offer', { leg_id })
  t.match(sdp, /a=rtpmap:101 telephone-event\/8000/)
  const answer = peer
    .sdp()
    .replace(/ 101\r\n/, ' 96 97\r\n')
    .replaceAll(':101 telephone', ':96 telephone')
  const wide = `${answer}a=rtpmap:97 telephone-event/16000\r\n`
  await client.request('leg.remote_answer', { leg_id, sdp: wide })
  peer.sendTo(rtp_port)
  const digits = () => w.events('dtmf').flatMap(event => (event.leg_id === leg_id ? event.digit : []))
  for (const [key, event_payload_type] of [
    ['1', 101],
    ['2', 96],
    ['3', 97],
  ] as const) {
    await peer.sendKey(key, 100, { event_payload_type })
    await w.event('dtmf', event => event.leg_id === leg_id && event.digit === key)
  }
  t.strictSame(digits(), ['1', '2', '3'], 'each once, in order')
  t.match(await w.event('leg.sdp_notes', event => event.leg_id === leg_id), {
    notes: ['telephone-event is answered as 96, offered as 101: both are accepted'],
  })
  await client.request('digits.send', { leg_id, send_id: 'back', digits: '7' })
  await w.event('digits.sent', ({ send_id }) => send_id === 'back')
  await peer.until(
    received => received.some(packet => packet.payload_type === 96),
    PATIENCE_MS,
    'our key with the peer’s number',
  )
  await client.request('session.close', { session_id })
})

t.test('audio at a host name waits for its address, and then is heard', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const leg_id = 'named'
  const { rtp_port } = await client.request('leg.open', { session_id, leg_id, policy: POLICY })
  const sdp = peer.sdp().replace('c=IN IP4 127.0.0.1', 'c=IN IP4 media.pbx.example')
  t.equal(await reasonOf(client.request('leg.remote_offer', { leg_id, sdp })), 'address_unknown')
  t.equal(await reasonOf(client.request('leg.remote_offer', { leg_id, sdp, places: {} })), 'sdp_malformed')
  await client.request('leg.remote_offer', { leg_id, sdp, places: { 'media.pbx.example': '127.0.0.1' } })
  await client.request('leg.local_answer', { leg_id })
  peer.sendTo(rtp_port)
  await client.request('play.start', { leg_id, play_id: 'tone', sources: [TONE], loop: 0 })
  await peer.hears(600)
  await client.request('session.close', { session_id })
})

t.test('a key is reported once when a gateway passes its tones before a long RFC 4733 event', async t => {
  const peer = await w.peer()
  let told: string[] = []
  // The echo of a key is known by its time, so a gateway that stops between tones and event would send two keys.
  await peer.unpaused(async () => {
    const session_id = await w.session()
    const { leg_id } = await w.answeredLeg(session_id, peer)
    await client.request('inband.detect', { leg_id, enabled: true })
    const high = tone(1336, 120, 8000, -9)
    await peer.send(new Int16Array(800))
    await peer.send(tone(770, 120, 8000, -9).map((sample, index) => sample + (high[index] ?? 0)))
    await peer.sendKey('5', 800)
    await peer.sendKey('9')
    await w.event('dtmf', event => event.leg_id === leg_id && event.digit === '9')
    const mine = w.events('dtmf').filter(event => event.leg_id === leg_id)
    told = mine.map(({ digit, source }) => `${digit} ${source}`)
    await client.request('session.close', { session_id })
  })
  t.strictSame(told, ['5 inband', '9 rfc4733'])
})

t.test('a recording of what a leg hears holds that alone, and a muted participant is not recorded', async t => {
  const session_id = await w.session()
  const [a, b] = [await w.peer(), await w.peer()]
  const left = await w.answeredLeg(session_id, a)
  const right = await w.answeredLeg(session_id, b)
  await client.request('bridge', { a: left.leg_id, b: right.leg_id })
  const recorded = async (recording_id: string, what: 'sent' | 'received', talk: () => Promise<unknown>) => {
    const file = join(w.data_dir, 'recordings', `${recording_id}.wav`)
    const common = { session_id, channels: 1, left: left.leg_id, right: null, max_ms: null, silence_ms: null } as const
    const rest = { finish_keys: '', beep: false, trim: false }
    await client.request('record.start', { ...common, ...rest, what, recording_id, file })
    await talk()
    await client.request('record.stop', { recording_id })
    await w.event('record.ended', event => event.recording_id === recording_id)
    return readWavFile(file).channels[0] ?? new Int16Array(0)
  }
  const both = () => Promise.all([a.send(tone(1000, 1000)), b.send(tone(600, 1000))])
  const heard = await recorded('RE-sent', 'sent', both)
  t.equal(strongestHz(heard), 600, 'what the callee says')
  t.ok(toneLevelDbm0(heard, 1000) < -40, 'and not what the caller says')

  await client.request('unbridge', { leg_id: left.leg_id })
  const join_ = { conference_id: 'CF-mute', deaf: false }
  await client.request('conference.join', { ...join_, leg_id: left.leg_id, muted: true })
  const muted = await recorded('RE-muted', 'received', both)
  t.ok(muted.length === 0 || levelDbm0(muted) < -60, 'the recording sees the mute of the mix')
  await client.request('conference.join', { ...join_, leg_id: left.leg_id, muted: false })
  const open = await recorded('RE-open', 'received', both)
  t.equal(strongestHz(open), 1000, 'unmuted, it is recorded')
  await client.request('session.close', { session_id })
})

t.test(
  'the recording of a conference is one file of its mix, whoever leaves, and one participant may be apart',
  async t => {
    const conference_id = 'CF-tape'
    const parties = await Promise.all(
      [1000, 600, 400].map(async hz => {
        const session_id = await w.session()
        const peer = await w.peer()
        const { leg_id } = await w.answeredLeg(session_id, peer)
        await client.request('conference.join', { conference_id, leg_id, muted: false, deaf: false })
        return { session_id, leg_id, talk: () => peer.send(tone(hz, 1000)) }
      }),
    )
    const [a, b, c] = parties
    if (!a || !b || !c) throw new Error('three parties')
    const file = (name: string) => join(w.data_dir, 'recordings', `${name}.wav`)
    const start = (recording_id: string, channels: 1 | 2, left: string | null, room = conference_id) =>
      client.request('record.start', {
        ...{
          session_id: a.session_id,
          recording_id,
          file: file(recording_id),
          channels,
          left,
          right: null,
          what: 'both',
        },
        ...{ conference_id: room, max_ms: null, silence_ms: null, finish_keys: '', beep: false, trim: false },
      })
    t.equal(await reasonOf(start('RE-none', 1, null, 'CF-none')), 'conference_unknown')
    t.equal(await reasonOf(start('RE-nobody', 2, null)), 'params_invalid')
    await start('RE-mix', 1, null)
    await start('RE-apart', 2, a.leg_id)
    await Promise.all([a.talk(), b.talk()])
    await client.request('session.close', { session_id: a.session_id })
    await c.talk()
    await client.request('record.stop', { recording_id: 'RE-apart' })
    for (const { session_id } of [b, c]) await client.request('session.close', { session_id })
    const ended = (id: string) => w.event('record.ended', ({ recording_id }) => recording_id === id)
    t.match(await ended('RE-mix'), { reason: 'leg_closed', empty: false }, 'it ends with the room')
    t.match(await ended('RE-apart'), { reason: 'stopped', empty: false })
    const has = (name: string) =>
      readWavFile(file(name)).channels.map(samples =>
        [1000, 600, 400].map(hz => toneLevelDbm0(sounding(samples), hz) > -26),
      )
    t.strictSame(has('RE-mix'), [[true, true, true]])
    t.strictSame(has('RE-apart'), [
      [true, false, false],
      [true, true, true],
    ])
  },
)

t.test('a dual recording holds the caller left and the callee right, aligned, and reports its hash', async t => {
  const session_id = await w.session()
  const [a, b] = [await w.peer(), await w.peer()]
  const left = await w.answeredLeg(session_id, a)
  const right = await w.answeredLeg(session_id, b)
  await client.request('bridge', { a: left.leg_id, b: right.leg_id })
  const file = join(w.data_dir, 'recordings', 'RE1.wav')
  const base = {
    session_id,
    channels: 2,
    left: left.leg_id,
    right: right.leg_id,
    what: 'both',
    max_ms: null,
    silence_ms: null,
    finish_keys: '',
    beep: false,
    trim: false,
  } as const
  const begun_ms = performance.now()
  await client.request('record.start', { ...base, recording_id: 'RE1', file })
  const silence = new Int16Array(8000)
  // First only the caller talks, then both, then only the callee: a second each, so that a late packet shifts nothing.
  await Promise.all([
    a.send(Int16Array.from([...tone(1000, 2000), ...silence])),
    b.send(Int16Array.from([...silence, ...tone(600, 2000)])),
  ])
  await client.request('record.stop', { recording_id: 'RE1' })
  const ended = await w.event('record.ended', ({ recording_id }) => recording_id === 'RE1')
  const lasted_ms = performance.now() - begun_ms
  t.match(ended, { reason: 'stopped', empty: false })
  const bytes = readFileSync(file)
  t.equal(ended.bytes, bytes.length)
  t.equal(ended.sha256, createHash('sha256').update(bytes).digest('hex'))
  const sox = spawnSync('sox', ['--i', file], { encoding: 'utf8' })
  t.match(sox.stdout, /Channels\s+: 2[\s\S]*Sample Rate\s+: 8000/, 'sox reads it')
  t.match(sox.stdout, /Precision\s+: 16-bit[\s\S]*Sample Encoding: 16-bit Signed Integer PCM/)
  t.equal(sox.stderr, '', 'sox reports no warning')
  // The levels of the channels in each piece of 100 ms. A stop of this process makes pieces in which nobody talks.
  const wav = readWavFile(file)
  const pieces = Array.from({ length: Math.floor(wav.duration_ms / 100) }, (_piece, at) =>
    wav.channels.map(channel => levelDbm0(channel.subarray(at * 800, at * 800 + 800))),
  )
  const talks = (level = Number.NEGATIVE_INFINITY): boolean => Math.abs(level + 10) < 0.5
  const placed = (holds: (left: number | undefined, right: number | undefined) => boolean): number[] =>
    pieces.flatMap(([left, right], at) => (holds(left, right) ? [at] : []))
  const parts = [
    placed((left, right) => talks(left) && (right ?? 0) < -70),
    placed((left, right) => talks(left) && talks(right)),
    placed((left, right) => (left ?? 0) < -70 && talks(right)),
  ]
  for (const [index, who] of ['only the caller', 'both', 'only the callee'].entries())
    t.ok((parts[index]?.length ?? 0) >= 6, `${who} for a second, at the level that was sent: ${parts[index]}`)
  t.strictSame(
    parts.flat(),
    parts.flat().toSorted((one, other) => one - other),
    'one after the other',
  )
  const rmsBySox = (channel: number, piece = 0) => {
    const args = [file, '-n', 'remix', String(channel), 'trim', String(piece / 10), '0.1', 'stats']
    return Number(/RMS lev dB\s+(\S+)/.exec(spawnSync('sox', args, { encoding: 'utf8' }).stderr)?.[1])
  }
  // The peak of -10 dBm0 is 13.14 dB below full scale. The RMS of a tone is 3.01 dB below its peak.
  for (const channel of [1, 2]) {
    const level = rmsBySox(channel, parts[1]?.[3])
    t.ok(Math.abs(level + 16.15) < 0.5, `sox: channel ${channel} has the sent level (${level})`)
  }
  t.equal(wav.channels.length, 2)
  t.ok(
    wav.duration_ms > 2600 && wav.duration_ms <= lasted_ms,
    `${lasted_ms.toFixed()} ms are ${wav.duration_ms} ms of the file`,
  )
  t.ok(Math.abs(wav.duration_ms - ended.duration_ms) <= 1)
  const [caller = new Int16Array(), called = new Int16Array()] = wav.channels.map(channel =>
    Int16Array.from((parts[1] ?? []).flatMap(at => [...channel.subarray(at * 800, at * 800 + 800)])),
  )
  t.equal(strongestHz(caller), 1000)
  t.equal(strongestHz(called), 600)
  t.ok(toneLevelDbm0(caller, 600) < -60, 'no cross-talk')
  t.ok(toneLevelDbm0(called, 1000) < -60, 'no cross-talk')
  t.equal(
    await reasonOf(client.request('record.start', { ...base, recording_id: 'RE2', file })),
    'file_refused',
    'an existing file is not overwritten',
  )
  t.equal(
    await reasonOf(client.request('record.start', { ...base, recording_id: 'RE2', file: '/tmp/elsewhere.wav' })),
    'file_refused',
  )
  t.match(await client.request('record.inspect', { file }), { bytes: bytes.length, sha256: ended.sha256, channels: 2 })
  await client.request('session.close', { session_id })
})

t.test('a mono recording can begin with a beep and ends by key, silence, length or the close of its leg', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(session_id, peer)
  const record = (recording_id: string, over: object) =>
    client.request('record.start', {
      session_id,
      recording_id,
      file: join(w.data_dir, 'recordings', `${recording_id}.wav`),
      channels: 1,
      left: leg_id,
      right: null,
      what: 'received',
      max_ms: null,
      silence_ms: null,
      finish_keys: '',
      beep: false,
      trim: false,
      ...over,
    })
  const ended = (id: string) => w.event('record.ended', ({ recording_id }) => recording_id === id)

  await record('key', { beep: true, finish_keys: '1234567890*#' })
  t.equal(strongestHz(await peer.sound(280)), 1000, 'the peer hears the whole beep')
  await peer.send(tone(700, 600))
  await peer.sendKey('#')
  t.match(await ended('key'), { reason: 'key', key: '#', empty: false })
  const { channels } = readWavFile(join(w.data_dir, 'recordings', 'key.wav'))
  t.equal(channels.length, 1)
  t.equal(strongestHz(channels[0]?.subarray(1600) ?? new Int16Array()), 700)

  // Long enough that a stop of this process before the tone is no silence.
  await record('silence', { silence_ms: 3000 })
  await peer.send(tone(700, 300))
  await peer.send(new Int16Array(8 * 3300))
  t.match(await ended('silence'), { reason: 'silence', empty: false })

  await record('length', { max_ms: 300 })
  await peer.send(tone(700, 500))
  const length = await ended('length')
  t.match(length, { reason: 'max_length' })
  t.ok(Math.abs(length.duration_ms - 300) <= 40, `300 ms lasted ${length.duration_ms}`)

  const begun_ms = performance.now()
  await record('paused', {})
  await peer.send(tone(700, 300))
  await client.request('record.pause', { recording_id: 'paused', silent: false })
  await peer.send(tone(1500, 600))
  await client.request('record.resume', { recording_id: 'paused' })
  await peer.send(tone(700, 300))
  await client.request('record.stop', { recording_id: 'paused' })
  const paused = await ended('paused')
  // The packet thread obeys before requests are answered, so its own measure of the pause counts.
  const recorded_ms = performance.now() - begun_ms - (paused.pauses?.[0]?.length_ms ?? 0)
  t.ok(
    paused.duration_ms >= 480 && paused.duration_ms <= recorded_ms + 2,
    `${recorded_ms.toFixed()} ms besides the pause lasted ${paused.duration_ms}`,
  )
  const heardIn = (file: string) =>
    sounding(readWavFile(join(w.data_dir, 'recordings', file)).channels[0] ?? new Int16Array())
  const kept = heardIn('paused.wav')
  t.ok(toneLevelDbm0(kept, 1500) < -30, 'the file omits what was said in the pause')
  t.match(paused.pauses, [{ silent: false }])

  await record('hushed', {})
  await peer.send(tone(700, 300))
  await client.request('record.pause', { recording_id: 'hushed', silent: true })
  await peer.send(tone(1500, 600))
  await client.request('record.resume', { recording_id: 'hushed' })
  await peer.send(tone(700, 300))
  await client.request('record.stop', { recording_id: 'hushed' })
  const hushed = await ended('hushed')
  const [pause = { at_ms: 0, length_ms: 0, silent: false }] = hushed.pauses ?? []
  t.ok(pause.silent && pause.length_ms >= 500, `the timeline tells of the pause: ${JSON.stringify(pause)}`)
  const whole = readWavFile(join(w.data_dir, 'recordings', 'hushed.wav')).channels[0] ?? new Int16Array()
  // All 300 ms before the pause may be placed behind its beginning: late packets, in a burst, one after the other.
  const within = whole.subarray(8 * (pause.at_ms + 320), 8 * (pause.at_ms + pause.length_ms - 40))
  t.ok(within.length > 0 && within.every(sample => sample === 0), 'the file has silence, to the sample')
  t.ok(toneLevelDbm0(sounding(whole), 1500) < -30, 'and nothing of what was said in the pause')
  t.ok(toneLevelDbm0(sounding(whole.subarray(0, 8 * pause.at_ms)), 700) > -30, 'what was said before is there')
  const after = whole.subarray(8 * (pause.at_ms + pause.length_ms))
  t.ok(toneLevelDbm0(sounding(after), 700) > -30, 'and what was said after it')

  await record('trimmed', { trim: true })
  await peer.send(new Int16Array(8 * 500))
  await peer.send(tone(700, 500))
  await peer.send(new Int16Array(8 * 500))
  await client.request('record.stop', { recording_id: 'trimmed' })
  const trimmed = await ended('trimmed')
  const span = heardSpan(readWavFile(join(w.data_dir, 'recordings', 'trimmed.wav')).channels[0] ?? new Int16Array())
  const silent_ms = trimmed.duration_ms - ((span?.to_ms ?? 0) - (span?.from_ms ?? 0))
  t.ok(heardIn('trimmed.wav').length >= 8 * 400, 'the sound is kept')
  t.ok(silent_ms < 400, `${silent_ms} ms of the silence around it are left`)

  await record('nothing', { trim: true })
  await client.request('record.stop', { recording_id: 'nothing' })
  t.match(await ended('nothing'), { reason: 'stopped', empty: true })

  // Both requests are in one packet, so the beep cannot end between them.
  await Promise.all([record('waiting', { beep: true }), client.request('record.stop', { recording_id: 'waiting' })])
  t.match(await ended('waiting'), { reason: 'stopped', duration_ms: 0, empty: true, sha256: null })

  await record('leg', {})
  await peer.send(tone(700, 200))
  await client.request('leg.close', { leg_id })
  t.match(await ended('leg'), { reason: 'leg_closed', empty: false })
  await client.request('session.close', { session_id })
})

t.test('a client’s disconnection closes its sessions and finishes its recordings', async t => {
  const other = connectMedia({ path: w.socket_path, log: { info: () => undefined, warn: () => undefined } })
  await new Promise<void>(resolve => other.once('up', () => resolve()))
  const peer = await w.peer()
  await other.request('session.open', { session_id: 'theirs' })
  const { rtp_port } = await other.request('leg.open', { session_id: 'theirs', leg_id: 'their-leg', policy: POLICY })
  t.equal(
    await reasonOf(client.request('leg.stats', { leg_id: 'their-leg' })),
    'leg_unknown',
    'another client’s leg is unknown',
  )
  await other.request('leg.remote_offer', { leg_id: 'their-leg', sdp: peer.sdp() })
  await other.request('leg.local_answer', { leg_id: 'their-leg' })
  peer.sendTo(rtp_port)
  const file = join(w.data_dir, 'recordings', 'abandoned.wav')
  const begun_ms = performance.now()
  await other.request('record.start', {
    session_id: 'theirs',
    recording_id: 'abandoned',
    file,
    channels: 1,
    left: 'their-leg',
    right: null,
    what: 'received',
    max_ms: null,
    silence_ms: null,
    finish_keys: '',
    beep: false,
    trim: false,
  })
  await peer.send(tone(700, 500))
  other.close()
  const inUse = async () => Number(/strowger_media_legs\{[^}]*\} (\d+)/.exec(await w.metrics.metrics())?.[1])
  await until('no leg is open', async () => (await inUse()) === 0)
  const most_ms = performance.now() - begun_ms
  const inspected = await client.request('record.inspect', { file })
  t.ok(
    inspected.duration_ms > 350 && inspected.duration_ms <= most_ms,
    `500 ms of sound in ${most_ms.toFixed()} ms lasted ${inspected.duration_ms}`,
  )
  t.ok(existsSync(file))
})

t.test('invalid requests are refused with the reason', async t => {
  const session_id = await w.session()
  t.equal(await reasonOf(client.request('session.open', { session_id })), 'session_exists')
  t.equal(await reasonOf(client.request('session.close', { session_id: 'none' })), 'session_unknown')
  t.equal(
    await reasonOf(client.request('leg.open', { session_id: 'none', leg_id: 'x', policy: POLICY })),
    'session_unknown',
  )
  t.equal(await reasonOf(client.request('leg.open', { session_id, leg_id: '', policy: POLICY })), 'params_invalid')
  await client.request('leg.open', {
    session_id,
    leg_id: 'strict',
    policy: { ...POLICY, security: 'sdes_srtp_required' },
  })
  const peer = await w.peer()
  const offer = (sdp: string) => reasonOf(client.request('leg.remote_offer', { leg_id: 'strict', sdp }))
  t.equal(await offer('nonsense'), 'sdp_malformed')
  t.equal(await offer(peer.sdp()), 'srtp_required')
  const foreign = peer
    .sdp()
    .replace(/(m=audio \d+ \S+) 0/, '$1 97')
    .replace('rtpmap:0 PCMU', 'rtpmap:97 iLBC')
  t.equal(await offer(foreign), 'no_common_codec')
  t.equal(await reasonOf(client.request('leg.local_answer', { leg_id: 'strict' })), 'offer_missing')
  t.equal(await reasonOf(client.request('leg.remote_answer', { leg_id: 'strict', sdp: peer.sdp() })), 'offer_missing')
  t.equal(await reasonOf(client.request('bridge', { a: 'strict', b: 'none' })), 'leg_unknown')
  t.equal(await reasonOf(client.request('record.stop', { recording_id: 'none' })), 'recording_unknown')
  await client.request('session.close', { session_id })
})

t.test(
  'a malformed frame closes its connection, an unknown method is refused, and the worker keeps running',
  async t => {
    const junk = connect(w.socket_path)
    await once(junk, 'connect')
    junk.write('GET / HTTP/1.1\r\n\r\n')
    await once(junk, 'close')
    const raw = connect(w.socket_path)
    await once(raw, 'connect')
    raw.write('{"id":1,"method":"dance","params":{}}\n{"id":2,"method":"leg.stats"}\n{"id":')
    raw.write('3,"method":"session.open","params":{"session_id":"x","more":1}}\n')
    let text = ''
    raw.on('data', chunk => {
      text += String(chunk)
    })
    while (text.split('\n').length < 4) await once(raw, 'data')
    const reasons = text
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { id: number; error: { reason: string } })
    t.strictSame(
      reasons.map(({ id, error }) => `${id} ${error.reason}`),
      ['1 method_unknown', '2 params_invalid', '3 params_invalid'],
    )
    raw.destroy()
    t.equal(await reasonOf(client.request('session.close', { session_id: await w.session() })), 'not refused')
  },
)
