import { once } from 'node:events'
import { existsSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { MPEGDecoder } from 'mpg123-decoder'
import { createMp3Encoder } from '../../../../control/mp3/encoder.ts'
import { mp3File } from '../../../../control/mp3/file.ts'
import { mp3Shape } from '../../../../control/mp3/shape.ts'
import { recordingSealing } from '../../../../control/reconcilers/recordings.ts'
import { recordingMp3 } from '../../../../control/voice/audio.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { tone, toneLevelDbm0, trimmed } from '../../../support/audio.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { addRecording, wav } from '../../../support/recordings.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'

/** Recordings as MP3: what is heard, and what a client may ask. */

const encoder = createMp3Encoder()
t.teardown(() => encoder.close())

const bytesOf = (samples: Int16Array) => Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)

/** Puts two channels of the same length beside each other. */
function beside(left: Int16Array, right: Int16Array): Int16Array {
  return Int16Array.from({ length: 2 * left.length }, (_, at) => (at % 2 === 0 ? left : right)[at >> 1] ?? 0)
}

async function decoded(mp3: Uint8Array): Promise<{ readonly rate_hz: number; readonly channels: Int16Array[] }> {
  const decoder = new MPEGDecoder()
  await decoder.ready
  const { channelData, sampleRate, samplesDecoded, errors } = decoder.decode(mp3)
  t.same(errors, [], 'the decoder finds no fault')
  const channels = channelData.map(channel =>
    Int16Array.from(channel.subarray(0, samplesDecoded), sample =>
      Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_767))),
    ),
  )
  decoder.free()
  return { rate_hz: sampleRate, channels }
}

/** The whole file as an MP3. `piece` is how the WAV file is cut when it is read. */
async function mp3Of(file: Buffer, piece = 65_536): Promise<Buffer> {
  const shape = mp3Shape(file, file.length)
  const place = encoder.begin('prj_1')
  if (!shape || !place) throw new Error('the file cannot become MP3')
  const open = async () => ({
    bytes: file.length,
    stream: (first: number, last: number) =>
      Readable.from(
        Array.from({ length: Math.ceil((last + 1 - first) / piece) }, (_, at) =>
          file.subarray(first + at * piece, Math.min(last + 1, first + (at + 1) * piece)),
        ),
      ),
    close: async () => undefined,
  })
  const parts: Buffer[] = []
  for await (const part of mp3File(shape, place, open).stream(0, shape.bytes - 1)) parts.push(part)
  const made = Buffer.concat(parts)
  t.equal(made.length, shape.bytes, 'it is as long as was said before')
  return made
}

t.test('an MP3 has the tone, the level and the length of its recording, at every rate', async t => {
  for (const rate_hz of [8000, 16_000, 24_000, 48_000]) {
    const samples = new Int16Array(rate_hz)
    samples.set(tone(1000, 500, rate_hz), rate_hz / 4)
    const file = wav(bytesOf(samples), { rate_hz })
    const mp3 = await mp3Of(file)
    t.same(await mp3Of(file, 999), mp3, 'however the file is read, the bytes are the same')
    const { rate_hz: rate, channels } = await decoded(mp3)
    // The decoder gives two channels of mono too. The mode is in the head of each frame (ISO/IEC 11172-3 §2.4.2.3).
    t.same([rate, (mp3[3] ?? 0) >> 6], [rate_hz, 3], 'the rate, and the mode single_channel')
    const [mono = samples] = channels
    const longer_ms = ((mono.length - samples.length) / rate_hz) * 1000
    t.ok(longer_ms > 0 && longer_ms < 300, `${rate_hz}: ${longer_ms} ms of silence more, from frames`)
    const sound = trimmed(mono)
    t.ok(Math.abs(sound.length / rate_hz - 0.5) < 0.05, `${rate_hz}: the tone lasts ${sound.length / rate_hz} s`)
    const level = toneLevelDbm0(sound, 1000, rate_hz)
    t.ok(Math.abs(level + 10) < 1, `${rate_hz}: the tone has ${level} dBm0`)
  }
  for (const length of [0, 1, 575, 577, 1153]) await mp3Of(wav(bytesOf(tone(700, 1000).subarray(0, length))))
})

t.test('the channels of a dual recording stay apart', async t => {
  for (const rate_hz of [8000, 16_000, 48_000]) {
    const [left, right] = [tone(700, 500, rate_hz), tone(1900, 500, rate_hz)]
    const { channels } = await decoded(await mp3Of(wav(bytesOf(beside(left, right)), { channels: 2, rate_hz })))
    t.equal(channels.length, 2)
    for (const [index, [own, other]] of [
      [700, 1900],
      [1900, 700],
    ].entries()) {
      const sound = trimmed(channels[index] ?? new Int16Array())
      const [own_level, other_level] = [own, other].map(hz => toneLevelDbm0(sound, hz ?? 0, rate_hz))
      t.ok(Math.abs((own_level ?? 0) + 10) < 1, `${rate_hz}: channel ${index} has ${own_level} dBm0 of its own`)
      t.ok((other_level ?? 0) < -40, `${rate_hz}: channel ${index} has ${other_level} dBm0 of the other`)
    }
  }
})

t.test('a file of another kind becomes no MP3', async t => {
  const good = wav(bytesOf(tone(700, 100)))
  t.ok(mp3Shape(good, good.length))
  for (const change of [
    (head: Buffer) => head.write('RIFX', 0),
    (head: Buffer) => head.writeUInt16LE(3, 22),
    (head: Buffer) => head.writeUInt32LE(11_025, 24),
    (head: Buffer) => head.writeUInt16LE(24, 34),
  ]) {
    const bad = Buffer.from(good)
    change(bad)
    t.equal(mp3Shape(bad, bad.length), null)
  }
  t.equal(mp3Shape(good.subarray(0, 20), 20), null)
})

t.test('a client that leaves ends its work, and a project has a share of the places', async t => {
  const head = wav(Buffer.alloc(0))
  const endless = mp3Shape(head, 1_000_000_000)
  if (!endless) throw new Error('the head is good')
  const closed: string[] = []
  const begin = () => {
    const place = encoder.begin('prj_2')
    const open = async () => ({
      bytes: 1_000_000_000,
      stream: () =>
        Readable.from(
          (function* () {
            for (;;) yield Buffer.alloc(65_536)
          })(),
        ).once('close', () => closed.push('read')),
      close: async () => void closed.push('file'),
    })
    return place && mp3File(endless, place, open).stream(0, endless.bytes - 1)
  }
  const four = [begin(), begin(), begin(), begin()]
  t.equal(begin(), null, 'a fifth file of the project has no place')
  const [first, second] = four
  if (!first || !second) throw new Error('four have places')
  await once(first, 'readable')
  t.ok((first.read() as Buffer).length > 0)
  first.destroy()
  await once(first, 'close')
  t.same(closed.sort(), ['file', 'read'], 'the recording is read no further')
  second.destroy()
  await once(second, 'close')
  const more = [begin(), begin()]
  t.ok(more[0] && more[1], 'one that had begun and one that had not gave their places back')
  t.equal(begin(), null)
  const neighbour = encoder.begin('prj_3')
  t.ok(neighbour, 'another project has its own share')
  neighbour?.release()
  for (const stream of [...four, ...more]) stream?.destroy()
})

t.test('a recording is downloaded as MP3 by its project alone', async t => {
  const w = await controlPlane(t)
  const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, []))
  const recording = wav(bytesOf(tone(1000, 1000)))
  const sid = await addRecording(w, newId.call(), 'completed', recording)
  const serve = (voice_api: 'spec' | 'extended') => w.state.db.updateTable('voice_account').set({ voice_api }).execute()
  const basic = `Basic ${Buffer.from(`${w.demo.account_sid}:${w.demo.auth_token}`).toString('base64')}`
  const ways = {
    voice: { path: `/2010-04-01/Accounts/${w.demo.account_sid}/Recordings/${sid}.mp3`, Authorization: basic },
    v1: { path: `/v1/recordings/${sid}.mp3`, Authorization: `Bearer ${w.key}` },
  }
  const get = async (way: keyof typeof ways, headers: Record<string, string> = {}, method = 'GET') => {
    const { path, Authorization } = ways[way]
    const answer = await fetch(`${w.base_url}${path}`, { method, headers: { Authorization, ...headers } })
    return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
  }

  const refused = await w.voice('GET', `/Recordings/${sid}.mp3`)
  t.match(refused, { status: 404, body: { code: 'voice_route_not_proxied' } }, 'the specification has no .mp3')
  const plain = await get('v1')
  t.match([plain.status, plain.headers.get('content-type')], [200, 'audio/mpeg'])
  await serve('extended')
  t.match(await rival.voice('GET', `/Recordings/${sid}.mp3`), { status: 404, body: { code: 20404 } })
  t.equal((await rival.ask('GET', `/v1/recordings/${sid}.mp3`)).status, 404)
  t.equal((await w.ask('GET', ways.v1.path, { key: null })).status, 401)

  await recordingSealing.run(w)
  t.notOk(existsSync(join(w.settings.data_dir, `recordings/${sid}.wav`)), 'the file is encrypted now')
  const whole = await get('voice')
  t.same(whole.bytes, plain.bytes, 'both addresses, plain and encrypted, have the same bytes')
  const { channels } = await decoded(whole.bytes)
  t.ok(Math.abs(toneLevelDbm0(trimmed(channels[0] ?? new Int16Array()), 1000) + 10) < 1, 'the tone is heard')
  const etag = whole.headers.get('etag') ?? ''
  t.not(etag, (await w.voice('GET', `/Recordings/${sid}.wav`)).headers.get('etag'), 'the WAV has another tag')
  for (const way of ['voice', 'v1'] as const) {
    const head = await get(way, {}, 'HEAD')
    t.same([head.status, head.headers.get('content-length')], [200, String(whole.bytes.length)], `${way} HEAD`)
    const part = await get(way, { Range: 'bytes=1000-1999', 'If-Range': etag })
    t.same([part.status, part.bytes], [206, whole.bytes.subarray(1000, 2000)], `${way} range`)
    t.equal(part.headers.get('content-range'), `bytes 1000-1999/${whole.bytes.length}`)
    t.same((await get(way, { Range: 'bytes=-300' })).bytes, whole.bytes.subarray(-300))
    t.equal((await get(way, { Range: `bytes=${whole.bytes.length}-` })).status, 416)
    t.same((await get(way, { Range: 'bytes=0-9', 'If-Range': '"other"' })).bytes, whole.bytes)
    for (let times = 0; times < 6; times++) {
      t.equal((await get(way, { 'If-None-Match': etag })).status, 304, 'what is not sent keeps no place')
      t.equal((await get(way, { 'If-Match': '"other"' })).status, 412)
    }
  }

  const long = await addRecording(w, newId.call(), 'completed', recording)
  truncateSync(join(w.settings.data_dir, `recordings/${long}.wav`), 44 + 16_000 * (4 * 3600 + 1))
  t.match(await w.ask('GET', `/v1/recordings/${long}.mp3`), { status: 409, body: { code: 'limit_reached' } })
  t.match(await w.voice('GET', `/Recordings/${long}.mp3`), { status: 400, body: { message: /240 minutes/ } })
  const row = await w.state.db.selectFrom('recording').selectAll().where('sid', '=', sid).executeTakeFirstOrThrow()
  const full = { ...w, mp3: { begin: () => null, close: async () => undefined } } as never
  const busy = await recordingMp3(full, row, { method: 'GET', headers: {} }).catch((error: unknown) => error)
  t.match(busy, { refusal: { refused: 'rate_limited' } }, 'without a place it is refused')
  t.match(await recordingMp3(full, row, { method: 'HEAD', headers: {} }), { status: 200 }, 'HEAD needs none')
  const running = await addRecording(w, newId.call(), 'in-progress', recording)
  t.equal((await w.voice('GET', `/Recordings/${running}.mp3`)).status, 404, 'one that runs has no file yet')
})
