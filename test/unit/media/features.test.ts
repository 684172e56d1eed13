import type { AddressInfo } from 'node:net'
import { join as path } from 'node:path'
import { type WebSocket, WebSocketServer } from 'ws'
import { AnsweringMachineDetector, type DetectionSettings } from '../../../media/detect/answering-machine.ts'
import { compressUlaw, expandUlaw } from '../../../media/files/pcm.ts'
import type { MethodParams } from '../../../media/protocol/schema.ts'
import { levelDbm0, sounding, strongestHz, tone, toneLevelDbm0 } from '../../support/audio.ts'
import t from '../../support/harness/index.ts'
import { reasonOf, startTestWorker } from '../../support/media-worker.ts'
import type { RtpPeer } from '../../support/rtp-peer.ts'
import { PATIENCE_MS, until } from '../../support/wait.ts'

const w = await startTestWorker()
t.teardown(() => w.stop())
const { client } = w

t.test(
  'each conference participant hears all others; muted ones are not heard, and deaf ones hear nothing',
  async t => {
    const peers = await Promise.all(Array.from({ length: 3 }, () => w.peer()))
    const legs = await Promise.all(peers.map(async peer => (await w.answeredLeg(await w.session(), peer)).leg_id))
    const join = (index: number, how: { muted?: boolean; deaf?: boolean } = {}) =>
      client.request('conference.join', {
        conference_id: 'room',
        leg_id: legs[index] ?? '',
        muted: false,
        deaf: false,
        ...how,
      })
    t.strictSame(await join(0), { participants: 1 })
    t.strictSame(await join(1), { participants: 2 })
    t.strictSame(await join(2), { participants: 3 })
    const hz = [500, 900, 1400]
    const talk = async (ms: number) => {
      await until('the room is quiet', () => peers.every(peer => peer.loudness() < -50))
      const from = peers.map(peer => peer.received.length)
      await Promise.all(peers.map((peer, index) => peer.send(tone(hz[index] ?? 0, ms, 8000, -20))))
      return peers.map((peer, index) => {
        const heard = sounding(peer.audio(from[index] ?? 0))
        return hz.map(frequency => toneLevelDbm0(heard, frequency) > -30)
      })
    }
    t.strictSame(await talk(1000), [
      [false, true, true],
      [true, false, true],
      [true, true, false],
    ])
    await join(0, { muted: true })
    await join(2, { deaf: true })
    const now = await talk(1000)
    t.strictSame(now[0], [false, true, true], 'the muted participant hears the others')
    t.strictSame(now[1], [false, false, true], 'the muted participant is not heard')
    t.strictSame(now[2], [false, false, false], 'the deaf participant hears nothing')
    await client.request('conference.leave', { leg_id: legs[2] ?? '' })
    await join(0)
    const left = await talk(1000)
    t.strictSame(left[0], [false, true, false])
    for (const index of [0, 1]) await client.request('conference.leave', { leg_id: legs[index] ?? '' })
    t.strictSame(await join(2), { participants: 1 }, 'an empty conference ends, and the next join opens a new one')
    const ready = await w.session()
    await client.request('leg.open', {
      session_id: ready,
      leg_id: 'unready',
      policy: {
        codecs: ['PCMU'],
        security: 'rtp',
        source_validation: 'relaxed',
        sources: [],
        signalled_from: null,
        telephone_event: true,
      },
    })
    t.equal(
      await reasonOf(
        client.request('conference.join', { conference_id: 'room', leg_id: 'unready', muted: false, deaf: false }),
      ),
      'leg_not_ready',
    )
  },
)

interface Frame {
  event: string
  sequenceNumber?: string
  streamSid?: string
  media?: { track: string; chunk: string; timestamp: string; payload: string }
  mark?: { name: string }
  dtmf?: { track: string; digit: string }
  start?: Record<string, unknown>
  stop?: Record<string, unknown>
}

async function socketServer(t: { teardown(end: () => void): void }) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const frames: Frame[] = []
  const waiting: (() => void)[] = []
  const sockets: WebSocket[] = []
  const paths: string[] = []
  let closed = 0
  const wake = () => {
    for (const waiter of waiting.splice(0)) waiter()
  }
  server.on('connection', (socket, request) => {
    sockets.push(socket)
    paths.push(request.url ?? '')
    socket.on('message', data => {
      frames.push(JSON.parse(data.toString()) as Frame)
      wake()
    })
    socket.on('close', () => {
      closed++
      wake()
    })
  })
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/stream?x=1&back=https://shop.example/bought`,
    frames,
    sockets,
    paths,
    closed: () => closed,
    send: (frame: object | string) => sockets[0]?.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    /** Waits until a condition holds. Checks it after each frame. */
    async until(holds: () => boolean) {
      while (!holds()) await new Promise<void>(resolve => waiting.push(resolve))
    },
  }
}

const fork = (leg_id: string, url: string, over: Partial<MethodParams<'fork.start'>> = {}) =>
  client.request('fork.start', {
    leg_id,
    fork_id: `f-${leg_id}`,
    url,
    tracks: 'inbound',
    bidirectional: false,
    account_sid: 'AC1',
    call_sid: 'CA1',
    stream_sid: 'MZ1',
    parameters: { topic: 'tea' },
    ...over,
  })

t.test('a media stream carries both tracks and keys in the compatible form until it is stopped', async t => {
  const server = await socketServer(t)
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(await w.session(), peer)
  await fork(leg_id, server.url, { tracks: 'both' })
  await w.event('fork.started', event => event.leg_id === leg_id)
  await client.request('play.start', {
    leg_id,
    play_id: 'out',
    loop: 1,
    sources: [{ kind: 'tone', hz: [700], on_ms: 500, off_ms: 0, total_ms: 500 }],
  })
  await peer.send(tone(1000, 600))
  await peer.sendKey('4')
  await peer.send(tone(1000, 100))
  await server.until(() => server.frames.some(({ event }) => event === 'dtmf'))
  await client.request('fork.stop', { leg_id, fork_id: `f-${leg_id}` })
  t.match(await w.event('fork.ended', event => event.leg_id === leg_id), { reason: 'stopped', error_code: null })
  await server.until(() => server.closed() === 1)

  const { frames } = server
  t.strictSame(server.paths, ['/stream?x=1&back=https://shop.example/bought'], 'the URL is requested as written')
  t.strictSame(frames[0], { event: 'connected', protocol: 'Call', version: '1.0.0' })
  t.strictSame(frames[1], {
    event: 'start',
    sequenceNumber: '1',
    streamSid: 'MZ1',
    start: {
      accountSid: 'AC1',
      streamSid: 'MZ1',
      callSid: 'CA1',
      tracks: ['inbound', 'outbound'],
      mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
      customParameters: { topic: 'tea' },
    },
  })
  t.strictSame(
    frames.slice(1).map(({ sequenceNumber }) => Number(sequenceNumber)),
    frames.slice(1).map((_frame, index) => index + 1),
  )
  t.match(frames.at(-1), { event: 'stop', stop: { accountSid: 'AC1', callSid: 'CA1' } })
  t.match(
    frames.find(({ event }) => event === 'dtmf'),
    { dtmf: { track: 'inbound_track', digit: '4' }, streamSid: 'MZ1' },
  )
  const track = (name: string) => {
    const media = frames.flatMap(frame => (frame.media?.track === name ? [frame.media] : []))
    t.strictSame(
      media.map(({ chunk }) => Number(chunk)),
      media.map((_chunk, index) => index + 1),
    )
    t.ok(media.every(({ payload }) => Buffer.from(payload, 'base64').length === 160))
    t.ok(media.every(({ timestamp }, index) => index === 0 || Number(timestamp) > Number(media[index - 1]?.timestamp)))
    return Int16Array.from(Buffer.concat(media.map(({ payload }) => Buffer.from(payload, 'base64'))), expandUlaw)
  }
  t.equal(strongestHz(track('inbound')), 1000)
  t.equal(strongestHz(track('outbound')), 700)
})

t.test('the time of what is sent counts from the beginning of a stream, also while nothing is sent', async t => {
  const server = await socketServer(t)
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(await w.session(), peer)
  await fork(leg_id, server.url, { tracks: 'both' })
  await w.event('fork.started', event => event.leg_id === leg_id)
  const first = () => Number(server.frames.find(({ media }) => media?.track === 'outbound')?.media?.timestamp)
  await peer.send(tone(1000, 2000))
  const sources = [{ kind: 'tone' as const, hz: [700], on_ms: 200, off_ms: 0, total_ms: 200 }]
  await client.request('play.start', { leg_id, play_id: 'late', loop: 1, sources })
  await server.until(() => !Number.isNaN(first()))
  t.ok(first() >= 1900, `the prompt began at ${first()} ms`)
})

t.test('a key by INFO ends a recording and reaches a stream, and its echo in the media does neither', async t => {
  const peer = await w.peer()
  const attempt = async () => {
    const server = await socketServer(t)
    const session_id = await w.session()
    const { leg_id } = await w.answeredLeg(session_id, peer)
    await fork(leg_id, server.url)
    await w.event('fork.started', event => event.leg_id === leg_id)
    const record = async (name: string) => {
      const recording_id = `${name}-${leg_id}`
      const file = path(w.data_dir, `${recording_id}.wav`)
      const whole = { channels: 1, what: 'received', max_ms: null, silence_ms: null, beep: false, trim: false } as const
      const legs = { left: leg_id, right: null }
      await client.request('record.start', { session_id, recording_id, file, ...legs, ...whole, finish_keys: '#' })
      return {
        ended: () => w.event('record.ended', event => event.recording_id === recording_id),
        stop: () => client.request('record.stop', { recording_id }),
      }
    }
    const first = await record('first')
    const begun_ms = performance.now()
    await client.request('key.heard', { leg_id, digit: '#' })
    t.match(await first.ended(), { reason: 'key', key: '#' })
    const second = await record('second')
    await peer.sendKey('#')
    t.match(await w.event('dtmf', event => event.leg_id === leg_id), { digit: '#', source: 'rfc4733' })
    const took_ms = performance.now() - begun_ms
    await peer.sendKey('7')
    await server.until(() => server.frames.some(({ dtmf }) => dtmf?.digit === '7'))
    await second.stop()
    const { reason } = await second.ended()
    await client.request('session.close', { session_id })
    return { took_ms, reason, keys: server.frames.flatMap(({ dtmf }) => (dtmf ? [dtmf.digit] : [])) }
  }
  const begun_ms = performance.now()
  let last = await attempt()
  // A key that comes two seconds after the INFO is another press. So what a stop of this process split is sent again.
  while (last.took_ms > 1900 && performance.now() - begun_ms < PATIENCE_MS) last = await attempt()
  t.match(last, { reason: 'stopped', keys: ['#', '7'] })
})

t.test(
  'a bidirectional stream plays the server’s audio, returns each mark once its audio was played, and can be cleared',
  async t => {
    const server = await socketServer(t)
    const peer = await w.peer()
    const { leg_id } = await w.answeredLeg(await w.session(), peer)
    await fork(leg_id, server.url, { bidirectional: true })
    await server.until(() => server.frames.some(({ event }) => event === 'start'))
    const payload = (samples: Int16Array) => Buffer.from(Uint8Array.from(samples, compressUlaw)).toString('base64')
    server.send({ event: 'media', streamSid: 'MZ1', media: { payload: payload(tone(800, 510)) } })
    server.send({ event: 'media', streamSid: 'MZ1', media: { payload: payload(tone(800, 90)) } })
    server.send({ event: 'mark', streamSid: 'MZ1', mark: { name: 'said' } })
    await server.until(() => server.frames.some(({ mark }) => mark?.name === 'said'))
    const heard = await peer.sound(500)
    t.equal(strongestHz(heard), 800)
    t.ok(Math.abs(levelDbm0(heard) + 10) < 1)

    server.send({ event: 'media', streamSid: 'MZ1', media: { payload: payload(tone(800, 20_000)) } })
    server.send({ event: 'mark', streamSid: 'MZ1', mark: { name: 'never said' } })
    server.send({ event: 'clear', streamSid: 'MZ1' })
    await server.until(() => server.frames.some(({ mark }) => mark?.name === 'never said'))
    server.send('not json')
    t.match(await w.event('fork.warning', event => event.leg_id === leg_id), { code: 31_950 })
    server.send({ event: 'dance' })
    await w.event('fork.warning', event => event.leg_id === leg_id && event.code === 31_951)
    server.sockets[0]?.close()
    t.match(await w.event('fork.ended', event => event.leg_id === leg_id), { reason: 'closed_by_server' })
  },
)

t.test('what a server sends more than ten minutes ahead is dropped with a warning, until it clears', async t => {
  const server = await socketServer(t)
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(await w.session(), peer)
  await fork(leg_id, server.url, { bidirectional: true })
  await server.until(() => server.frames.some(({ event }) => event === 'start'))
  const media = (samples: Int16Array) => {
    const payload = Buffer.from(Uint8Array.from(samples, compressUlaw)).toString('base64')
    return { event: 'media', streamSid: 'MZ1', media: { payload } }
  }
  const half_minute = media(tone(800, 30_000))
  for (let sent = 0; sent < 24; sent++) server.send(half_minute)
  const warnings = () => w.events('fork.warning').filter(event => event.leg_id === leg_id)
  await w.event('fork.warning', event => event.leg_id === leg_id)
  await peer.hears(800)
  server.send({ event: 'clear', streamSid: 'MZ1' })
  server.send(media(tone(1200, 5000)))
  await peer.hears(1200)
  t.match(warnings(), [{ code: 31_931 }], 'once')
})

t.test('a media stream that cannot connect reports the error code', async t => {
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(await w.session(), peer)
  const server = await socketServer(t)
  const closed_port = Number(new URL(server.url).port)
  const outcome = async (fork_id: string, url: string) => {
    await fork(leg_id, url, { fork_id })
    const { reason, error_code } = await w.event('fork.ended', event => event.fork_id === fork_id)
    return `${reason} ${error_code}`
  }
  t.equal(await outcome('tls', server.url.replace('ws:', 'wss:')), 'failed 31910')
  t.equal(await outcome('private', 'wss://10.1.2.3/x'), 'failed 31902')
  t.equal(await outcome('public', 'ws://192.0.2.1/x'), 'failed 31902', 'audio without TLS must not cross the internet')
  t.equal(await outcome('scheme', 'http://127.0.0.1/x'), 'failed 31902')
  t.equal(await outcome('nobody', `ws://127.0.0.1:${closed_port === 9 ? 10 : 9}/`), 'failed 31902')
  t.equal(await reasonOf(fork('nobody', server.url)), 'leg_unknown')
})

t.test('a recording server that is left takes no place from what hears the leg later', async t => {
  const caller = await w.peer()
  const server = await w.peer()
  const session_id = await w.session()
  const { leg_id } = await w.answeredLeg(session_id, caller)
  const copy = async (what: 'received' | 'sent') => {
    const { leg_id: to_leg_id } = await w.answeredLeg(session_id, server)
    await client.request('copy.start', { leg_id, to_leg_id, what })
    return to_leg_id
  }
  for (let round = 0; round < 20; round++) {
    const copies = [await copy('received'), await copy('sent')]
    for (const each of copies) await client.request('leg.close', { leg_id: each })
  }
  await copy('received')
  await caller.send(tone(1000, 2000))
  t.equal(strongestHz(await server.sound(400)), 1000)
})

t.test('as many streams and copies as a leg may have all get its sound, and one more is refused', async t => {
  const caller = await w.peer()
  const session_id = await w.session()
  const { leg_id } = await w.answeredLeg(session_id, caller)
  const streams = await Promise.all(
    ['a', 'b', 'c', 'd'].map(async fork_id => {
      const server = await socketServer(t)
      await fork(leg_id, server.url, { fork_id, tracks: 'both' })
      await w.event('fork.started', event => event.leg_id === leg_id && event.fork_id === fork_id)
      return server
    }),
  )
  const copy = async (peer: RtpPeer) => {
    const { leg_id: to_leg_id } = await w.answeredLeg(session_id, peer)
    return reasonOf(client.request('copy.start', { leg_id, to_leg_id, what: 'received' }))
  }
  const servers: RtpPeer[] = []
  for (let index = 0; index < 8; index++) {
    const server = await w.peer()
    servers.push(server)
    t.equal(await copy(server), 'not refused')
  }
  t.equal(await copy(await w.peer()), 'copy_limit')
  t.equal(await reasonOf(fork(leg_id, 'ws://127.0.0.1:9/', { fork_id: 'e' })), 'fork_limit')
  await caller.send(tone(1000, 2000))
  for (const server of servers) t.equal(strongestHz(await server.sound(400)), 1000)
  for (const { frames, until: holds } of streams)
    await holds(() => frames.some(({ media }) => media?.track === 'inbound'))
})

const SETTINGS: DetectionSettings = {
  mode: 'message_end',
  timeout_ms: 30_000,
  speech_threshold_ms: 2400,
  speech_end_threshold_ms: 1200,
  silence_timeout_ms: 5000,
}

/** Simulated speech: syllables of 180 ms made of several tones, with pauses of 60 ms. */
const speech = (ms: number) => {
  const parts = [220, 470, 810, 1330].map(hz => tone(hz, ms, 8000, -22))
  return Int16Array.from({ length: ms * 8 }, (_value, index) =>
    index % 1920 < 1440 ? parts.reduce((sum, part) => sum + (part[index] ?? 0), 0) : 0,
  )
}
const quiet = (ms: number) => new Int16Array(ms * 8)
const join = (...parts: Int16Array[]) => Int16Array.from(parts.flatMap(part => [...part]))

t.test('the detector distinguishes people, machines and fax by their audio and returns its evidence', async t => {
  const verdict = (audio: Int16Array, over: Partial<DetectionSettings> = {}) => {
    const detector = new AnsweringMachineDetector({ ...SETTINGS, ...over })
    for (let at = 0; at + 160 <= audio.length; at += 160) {
      const found = detector.frame(audio.subarray(at, at + 160))
      if (found) return found
    }
    return null
  }
  const greeting = join(quiet(400), speech(6000))
  const rows: [name: string, audio: Int16Array, over: Partial<DetectionSettings>, answered_by: string][] = [
    ['hello?', join(quiet(500), speech(700), quiet(3000)), {}, 'human'],
    ['hello? yes?', join(quiet(500), speech(500), quiet(700), speech(400), quiet(3000)), {}, 'human'],
    ['a long greeting', greeting, { mode: 'enable' }, 'machine_start'],
    ['a greeting and silence', join(greeting, quiet(2000)), {}, 'machine_end_silence'],
    ['a greeting and a beep', join(greeting, quiet(300), tone(1000, 400), quiet(500)), {}, 'machine_end_beep'],
    ['a greeting without end', join(greeting, greeting, greeting), { timeout_ms: 12_000 }, 'machine_end_other'],
    ['fax answer tone', join(quiet(1000), tone(2100, 2600, 8000, -12)), {}, 'fax'],
    ['nobody', quiet(6000), {}, 'unknown'],
    [
      'a noisy room',
      Int16Array.from({ length: 48_000 }, (_value, index) => ((index * 7919) % 120) - 60),
      {},
      'unknown',
    ],
  ]
  for (const [name, audio, over, answered_by] of rows) {
    const found = verdict(audio, over)
    t.equal(found?.answered_by, answered_by, name)
    t.strictSame(verdict(audio, over), found, 'the same audio gives the same verdict')
  }
  const human = verdict(join(quiet(500), speech(700), quiet(3000)))
  const [first] = human?.evidence ?? []
  t.match(first, { kind: 'speech' })
  t.ok(Math.abs((first?.from_ms ?? 0) - 500) <= 40, 'the evidence has the right beginning of speech')
  t.ok(Math.abs((human?.duration_ms ?? 0) - 2400) <= 150, `decided after ${human?.duration_ms} ms`)
})

t.test('a talking leg gets its verdict when its utterance ends, a silent one after the silence timeout', async t => {
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(await w.session(), peer)
  const start = { leg_id, ...SETTINGS, silence_timeout_ms: 10_000 }
  await client.request('amd.start', start)
  t.equal(await reasonOf(client.request('amd.start', start)), 'amd_running')
  await peer.send(join(quiet(300), speech(700), quiet(1600)))
  t.match(await w.event('amd.result', event => event.leg_id === leg_id), { answered_by: 'human' })

  const mute = await w.peer()
  const silent = await w.answeredLeg(await w.session(), mute)
  await client.request('amd.start', { ...start, leg_id: silent.leg_id, silence_timeout_ms: 2000 })
  t.match(await w.event('amd.result', event => event.leg_id === silent.leg_id), {
    answered_by: 'unknown',
    evidence: [],
  })
})

t.test('the metrics of the worker include sessions, legs, ports, packets and recordings', async t => {
  const text = await w.metrics.metrics()
  for (const name of ['sessions', 'legs', 'ports_in_use', 'packets_received_total', 'packets_sent_total', 'recordings'])
    t.match(text, new RegExp(`strowger_media_${name}\\{process="media"\\} \\d`), name)
})
