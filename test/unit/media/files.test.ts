import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createHttpClient, type HttpClient } from '../../../core/runtime/http/index.ts'
import { createAudioThreads } from '../../../media/files/audio-threads.ts'
import { decodeAudio } from '../../../media/files/decode.ts'
import { FairQueue } from '../../../media/files/fair-queue.ts'
import { mp3Decoder as mp3 } from '../../../media/files/mp3.ts'
import { compressUlaw, expandAlaw, expandUlaw, fromUlaw, toUlaw } from '../../../media/files/pcm.ts'
import { inspectRecording, repairRecordings } from '../../../media/files/repair.ts'
import { ringbackPieces } from '../../../media/files/ringback.ts'
import { createSpeech, voiceName } from '../../../media/files/speech.ts'
import { httpSpeech } from '../../../media/files/speech-http.ts'
import { createUrlAudio } from '../../../media/files/url-audio.ts'
import { levelDbm0, strongestHz, tone, toneLevelDbm0, wavBytes } from '../../support/audio.ts'
import t from '../../support/harness/index.ts'
import { fc } from '../../support/properties.ts'

const FIXTURES = fileURLToPath(new URL('../../../../fixtures/audio/', import.meta.url))
const audio = createAudioThreads()
t.teardown(() => audio.close())
const owner = 'prj_a'
const fixture = (name: string) => readFileSync(join(FIXTURES, name))

function folder(t: { teardown(end: () => void): void }): string {
  const made = mkdtempSync(join(tmpdir(), 'strowger-files-'))
  t.teardown(() => rmSync(made, { recursive: true, force: true }))
  return made
}

/** Writes the header of a µ-law WAV file into the bytes. */
function wavHeader(file: Buffer, rate_hz: number): void {
  file.write('RIFF', 0, 'latin1')
  file.write('WAVEfmt ', 8, 'latin1')
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(7, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(rate_hz, 24)
  file.writeUInt16LE(8, 34)
  file.write('data', 36, 'latin1')
  file.writeUInt32LE(file.length - 44, 40)
}

t.test('G.711 bytes expand to the values of the recommendation’s tables', async t => {
  // The extreme values of ITU-T G.711 tables 1a and 2a, scaled to 16 bits.
  t.strictSame([0x00, 0x80, 0x7f, 0xff, 0x0f, 0x70].map(expandUlaw), [-32124, 32124, 0, 0, -16764, -120])
  t.strictSame([0xd5, 0x55, 0x2a, 0xaa, 0x00].map(expandAlaw), [8, -8, -32256, 32256, -5504])
  const samples = Int16Array.from({ length: 65_536 }, (_, index) => index - 32_768)
  t.ok(
    toUlaw(samples).every((code, at) => code === compressUlaw(samples[at] ?? 0)),
    'the table of µ-law holds every sample',
  )
  const codes = Uint8Array.from({ length: 256 }, (_, code) => code)
  t.strictSame([...fromUlaw(codes)], [...codes].map(expandUlaw))
})

t.test('a short WAV file of plain samples is read at once, to the same sound as by a thread', async t => {
  const samples = tone(440, 300)
  const file = wavBytes(8000, samples)
  // Long enough for a thread, by a chunk that is skipped.
  const long = Buffer.concat([
    file.subarray(0, 36),
    Buffer.from('junk\0\0\x10\0'),
    Buffer.alloc(1 << 20),
    file.subarray(36),
  ])
  for (const bytes of [Buffer.concat([Buffer.alloc(1), file]).subarray(1), long]) {
    const decoded = await audio.decode(new Uint8Array(bytes), 'audio/wav', owner)
    t.strictSame('pcm' in decoded && [...decoded.pcm.samples], [...samples])
    if (!('pcm' in decoded)) continue
    const fitted = await audio.fit(decoded.pcm, 8000, 0, owner)
    t.strictSame('pcm' in fitted && [...fitted.pcm.samples], [...samples])
    t.ok('pcm' in fitted && fitted.pcm.samples.buffer instanceof ArrayBuffer, 'the data plane gets memory of its own')
    const later = await audio.fit(decoded.pcm, 8000, 100, owner)
    t.equal('pcm' in later && later.pcm.samples.length, samples.length - 800, 'from an offset on')
  }
  const none = await audio.decode(new Uint8Array(file.subarray(0, 44)), 'audio/wav', owner)
  t.match(none, { refused: 'audio_unsupported', detail: 'the file has no audio' })
})

t.test('files of every supported format decode to the right frequency, level and length', async t => {
  const files: [name: string, rate_hz: number, hz: number, ms: number, dbm0: number][] = [
    ['tone-600hz-alaw.wav', 8000, 600, 500, -6.9],
    ['tone-600hz-ulaw.wav', 8000, 600, 500, -6.9],
    ['tone-600hz-24bit-stereo.wav', 16_000, 600, 500, -6.9],
    ['tone-600hz-8bit.wav', 11_025, 600, 500, -6.9],
    ['tone-600hz-float.wav', 48_000, 600, 500, -6.9],
    ['tone-600hz.aiff', 22_050, 600, 500, -6.9],
    ['tone-600hz.au', 8000, 600, 500, -6.9],
    ['tone-600hz-gsm.wav', 8000, 600, 500, -6.9],
    ['tone-600hz.gsm', 8000, 600, 500, -6.9],
    ['tone-1000hz-stereo-44100.mp3', 44_100, 1000, 2000, -9.9],
  ]
  for (const [name, rate_hz, hz, ms, dbm0] of files) {
    const decoded = await decodeAudio(fixture(name), null, mp3)
    if ('refused' in decoded) {
      t.fail(`${name}: ${decoded.detail}`)
      continue
    }
    const { samples } = decoded.pcm
    t.equal(decoded.pcm.rate_hz, rate_hz, name)
    t.ok(Math.abs((samples.length / rate_hz) * 1000 - ms) < 60, `${name} lasts ${(samples.length / rate_hz) * 1000} ms`)
    t.equal(strongestHz(samples.subarray(0, rate_hz / 4), rate_hz), hz, name)
    t.ok(Math.abs(levelDbm0(samples.subarray(rate_hz / 10, rate_hz / 4)) - dbm0) < 0.5, name)
  }
})

t.test('a streamed WAV or AIFF, whose length its writer did not know, plays what is there', async t => {
  const sound = tone(600, 500)
  for (const size of [0, 0xffff_ffff, 0x7fff_ffff, 20_000_000]) {
    for (const riff of [0, size, 8036]) {
      const file = wavBytes(8000, sound)
      file.writeUInt32LE(riff, 4)
      file.writeUInt32LE(size, 40)
      const decoded = await decodeAudio(file, 'audio/wav', mp3)
      t.match(decoded, { pcm: { rate_hz: 8000 } }, `${size} bytes in a file of ${riff}`)
      if ('pcm' in decoded) t.strictSame([...decoded.pcm.samples], [...sound], 'all of it')
    }
  }
  const large = wavBytes(8000, sound)
  large.write('RF64', 0, 'latin1')
  large.writeUInt32LE(0xffff_ffff, 40)
  t.match(await decodeAudio(large, null, mp3), { pcm: { samples: { length: sound.length } } }, 'RF64')
  const aiff = Buffer.from(fixture('tone-600hz.aiff'))
  const whole = await decodeAudio(aiff, null, mp3)
  aiff.writeUInt32BE(0, aiff.indexOf('SSND') + 4)
  const open = await decodeAudio(aiff, null, mp3)
  t.ok('pcm' in whole && 'pcm' in open && open.pcm.samples.length === whole.pcm.samples.length, 'AIFF')
})

t.test('a file without audio is refused with its reason', async t => {
  t.match(await decodeAudio(Buffer.alloc(0), 'audio/wav', mp3), { refused: 'audio_unsupported', detail: /is empty/ })
  const none = { refused: 'audio_unsupported', detail: /has no audio/ }
  t.match(await decodeAudio(wavBytes(8000, new Int16Array(0)), null, mp3), none)
  const tagged = Buffer.concat([wavBytes(8000, new Int16Array(0)), Buffer.from('LIST\x04\0\0\0INFO', 'latin1')])
  t.match(await decodeAudio(tagged, null, mp3), none, 'a chunk after no audio is no audio')
})

t.test('the content type identifies raw µ-law; files that are not audio are refused with their type', async t => {
  const raw = await decodeAudio(Buffer.alloc(800, 0x7f), 'audio/x-ulaw; rate=8000', mp3)
  t.match(raw, { pcm: { rate_hz: 8000 } })
  t.match(await decodeAudio(Buffer.from('<html>'), 'text/html', mp3), {
    refused: 'audio_unsupported',
    detail: /text\/html/,
  })
  t.match(await decodeAudio(Buffer.from('ID3 but no music in it'), null, mp3), { refused: 'audio_unsupported' })
  t.match(await decodeAudio(fixture('tone-600hz.aiff').subarray(0, 40), null, mp3), { refused: 'audio_unsupported' })
  const odd = wavBytes(8000, tone(600, 20))
  odd.writeUInt16LE(17, 20)
  t.match(await decodeAudio(odd, 'audio/wav', mp3), { refused: 'audio_unsupported', detail: /format 17/ })
})

t.test('GSM: the type or the frames tell it, a cut frame is left out, and other bytes are no sound', async t => {
  const file = fixture('tone-600hz.gsm')
  const whole = { pcm: { samples: { length: (file.length / 33) * 160 }, rate_hz: 8000 } }
  for (const type of [null, 'application/octet-stream', 'audio/gsm', 'audio/x-gsm'])
    t.match(await decodeAudio(file, type, mp3), whole, `${type}`)
  const cut = file.subarray(0, -1)
  t.match(await decodeAudio(cut, 'audio/gsm', mp3), { pcm: { samples: { length: whole.pcm.samples.length - 160 } } })
  t.match(await decodeAudio(cut, null, mp3), { refused: 'audio_unsupported' })
  t.match(await decodeAudio(file.subarray(0, 20), 'audio/gsm', mp3), { refused: 'audio_unsupported' })
  const noise = Buffer.from(Array.from({ length: 660 }, (_, at) => (at * 7919) & 0xff))
  t.match(await decodeAudio(noise, null, mp3), { refused: 'audio_unsupported' })
  t.match(await decodeAudio(noise, 'audio/gsm', mp3), { pcm: { samples: { length: 3200 } } }, 'any bits are a frame')
})

t.test('property: no bytes make the decoders throw', async t => {
  const names = ['tone-600hz-8bit.wav', 'tone-600hz-gsm.wav', 'tone-600hz.gsm', 'tone-600hz.aiff', 'tone-600hz.au']
  const seeds = names.map(name => fixture(name).subarray(0, 400))
  const damaged = fc
    .tuple(fc.constantFrom(...seeds), fc.array(fc.tuple(fc.nat(80), fc.nat(255)), { maxLength: 8 }), fc.nat(400))
    .map(([seed, changes, length]) => {
      const bytes = Buffer.from(seed.subarray(0, length))
      for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
      return bytes
    })
  await fc.assert(
    fc.asyncProperty(damaged, async bytes => {
      // Skip bytes that look like MPEG audio by accident. The tests above cover the MPEG decoder.
      if (bytes[0] === 0xff || bytes.toString('latin1', 0, 3) === 'ID3') return true
      const decoded = await decodeAudio(bytes, null, mp3)
      return 'refused' in decoded || decoded.pcm.samples.length <= 5 * bytes.length
    }),
    { numRuns: 1000 },
  )
  t.pass('the property held for 1000 files')
})

t.test('audio by URL is revalidated, played from the cache while fresh, and kept when the server fails', async t => {
  const requests: { path: string; etag: string | undefined }[] = []
  let broken = false
  const body = wavBytes(8000, tone(600, 100))
  const server = createServer((request, response) => {
    requests.push({ path: request.url ?? '', etag: request.headers['if-none-match'] })
    if (broken) return response.writeHead(503).end()
    if (request.url === '/missing.wav') return response.writeHead(404).end()
    const headers: Record<string, string> = { 'content-type': 'audio/wav' }
    if (request.url !== '/plain.wav') headers['etag'] = '"one"'
    if (request.url === '/fresh.wav') headers['cache-control'] = 'max-age=60'
    if (request.headers['if-none-match'] === '"one"') return response.writeHead(304, headers).end()
    return response.writeHead(200, headers).end(body)
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'test' })
  t.teardown(async () => {
    await http.close()

    server.close()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let now_ms = 0
  const urls = createUrlAudio(http, audio, { now: () => now_ms, base_url: 'https://voice.test' })
  const paths = () => requests.splice(0).map(({ path, etag }) => (etag ? `${path} ${etag}` : path))

  const [first, second] = await Promise.all([
    urls.get(`${base}/tagged.wav`, owner),
    urls.get(`${base}/tagged.wav`, owner),
  ])
  t.match(first, { pcm: { rate_hz: 8000 } })
  t.equal(first, second)
  t.strictSame(paths(), ['/tagged.wav'], 'concurrent plays share one request')
  t.match(await urls.get(`${base}/tagged.wav`, owner), { pcm: { rate_hz: 8000 } })
  t.strictSame(paths(), ['/tagged.wav "one"'])

  await urls.get(`${base}/fresh.wav`, owner)
  await urls.get(`${base}/fresh.wav`, owner)
  t.strictSame(paths(), ['/fresh.wav'])
  now_ms = 61_000
  await urls.get(`${base}/fresh.wav`, owner)
  await urls.get(`${base}/fresh.wav`, owner)
  t.strictSame(paths(), ['/fresh.wav "one"'], 'a 304 makes it fresh again')

  await urls.get(`${base}/plain.wav`, owner)
  await urls.get(`${base}/plain.wav`, owner)
  t.strictSame(paths(), ['/plain.wav', '/plain.wav'], 'a file without validators is fetched again')

  t.match(await urls.get(`${base}/missing.wav`, owner), { refused: 'fetch_failed', detail: /404/ })
  broken = true
  t.match(await urls.get(`${base}/tagged.wav`, owner), { pcm: { rate_hz: 8000 } }, 'the cached copy is used')
  t.match(await urls.get(`${base}/plain.wav`, owner), { refused: 'fetch_failed', detail: /503/ })
  t.match(await urls.get('http://10.1.2.3/x.wav', owner), { refused: 'fetch_failed' }, 'a private address is refused')
})

t.test('text is SSML only if flagged, and SSML cannot play a file', async t => {
  const speech = createSpeech(audio)
  const words = (text: string, ssml: boolean) => speech.speak({ text, ssml, voice: 'man', language: 'en-US', owner })
  const heard = async (text: string, ssml: boolean) => {
    const spoken = await words(text, ssml)
    if ('refused' in spoken) throw new Error(spoken.detail)
    return spoken.pcm
  }
  const file = join(folder(t), 'RE1.wav')
  writeFileSync(file, wavBytes(22_050, tone(600, 3000, 22_050)))
  const told = `<speak>hi<audio src="${file}"/></speak>`
  for (const ssml of [true, false]) {
    const { samples, rate_hz } = await heard(told, ssml)
    const [window, pure] = [Math.floor(rate_hz / 4), 3]
    for (let at = 0; at + window <= samples.length; at += window) {
      const part = samples.subarray(at, at + window)
      if (levelDbm0(part) > -40)
        t.ok(levelDbm0(part) - toneLevelDbm0(part, 600, rate_hz) > pure, 'the tone of the file is not heard')
    }
  }
  const [plain, marked] = [await heard('<speak>hi</speak>', false), await heard('<speak>hi</speak>', true)]
  t.ok(plain.samples.length > 0 && marked.samples.length > 0)
  const pause = (await heard('<speak>hi<break time="2s"/></speak>', true)).samples.length - marked.samples.length
  t.ok(pause > 1.5 * marked.rate_hz, 'a break in flagged SSML is a pause')
  const long = (await heard('<speak>hi<break time="2900s"/></speak>', true)).samples.length - marked.samples.length
  t.ok(long < 3 * marked.rate_hz, 'a break of more than ten seconds is replaced by one of ordinary length')
})

t.test('the synthesiser inherits no secret, and its temporary folder is removed', async t => {
  const place = folder(t)
  const program = join(place, 'fake')
  const wav = join(place, 'said.wav')
  writeFileSync(wav, wavBytes(8000, tone(600, 100)))
  writeFileSync(program, `#!/bin/sh\ntouch $HOME/left $TMPDIR/over\nenv > ${place}/env\ncat ${wav}\n`, { mode: 0o755 })
  process.env['STROWGER_MASTER_KEY'] = 'secret'
  t.teardown(() => delete process.env['STROWGER_MASTER_KEY'])
  const spoken = await createSpeech(audio, program).speak({ text: 'hi', voice: 'man', language: 'en-US', owner })
  t.match(spoken, { pcm: { rate_hz: 8000 } })
  const env = Object.fromEntries(
    readFileSync(join(place, 'env'), 'utf8')
      .split('\n')
      .map(line => line.split('=')),
  )
  // Ignore the variables that the shell sets.
  const of_shell = ['', 'PWD', 'SHLVL', '_', 'OLDPWD']
  const names = Object.keys(env).filter(name => !of_shell.includes(name))
  t.strictSame(names.sort(), ['HOME', 'LANG', 'PATH', 'TMPDIR', 'XDG_RUNTIME_DIR'])
  t.equal(env.HOME, env.TMPDIR)
  t.notOk(existsSync(env.HOME), 'the files that it wrote are removed')
})

t.test('speech longer than ten minutes is refused', async t => {
  const program = join(folder(t), 'endless')
  writeFileSync(program, '#!/bin/sh\nexec head -c 30000000 /dev/zero\n', { mode: 0o755 })
  const spoken = await createSpeech(audio, program).speak({ text: 'hi', voice: 'man', language: 'en-US', owner })
  t.match(spoken, { refused: 'speech_failed', detail: 'the speech is longer than ten minutes' })
})

t.test('the event loop keeps running while a large file is decoded and resampled', async t => {
  const bytes = 24 * 1024 * 1024
  const file = Buffer.alloc(bytes, 0x55)
  wavHeader(file, 24_000)
  let turns = 0
  let on = true
  const turn = () => {
    turns++
    if (on) setImmediate(turn)
  }
  turn()
  const decoded = await audio.decode(file, null, owner)
  if ('refused' in decoded) throw new Error(decoded.detail)
  const fitted = await audio.fit(decoded.pcm, 24_000, 60_000, owner)
  on = false
  t.ok(turns > 20, `${turns} turns`)
  t.equal(file.length, 0, 'the bytes were transferred, not copied')
  t.equal(decoded.pcm.samples.length, bytes - 44)
  if ('refused' in fitted) throw new Error(fitted.detail)
  t.equal(fitted.pcm.rate_hz, 16_000, 'very long audio gets a lower rate')
  const seconds = decoded.pcm.samples.length / 24_000 - 60
  t.ok(Math.abs(fitted.pcm.samples.length / 16_000 - seconds) < 1)
})

t.test('a busy project delays another by at most one job and cannot exceed its share', async t => {
  const queue = new FairQueue({ at_once: 2, owner_at_once: 2, owner_jobs: 5, owner_bytes: 100 })
  const order: string[] = []
  const ends: (() => void)[] = []
  const job = (name: string, bytes = 1) =>
    queue.run(name, bytes, () => {
      order.push(name)
      return new Promise<void>(resolve => ends.push(resolve))
    })
  const jobs = ['a', 'a', 'a', 'a', 'b', 'b'].map(name => job(name))
  t.equal(job('b', 100), null, 'bytes beyond the share are refused')
  t.ok(job('a'))
  t.equal(job('a'), null, 'jobs beyond the share are refused')
  await new Promise(setImmediate)
  t.strictSame(order, ['a', 'a'])
  for (let ended = 0; ended <= jobs.length; ended++) {
    ends[ended]?.()
    await new Promise(setImmediate)
  }
  t.strictSame(order, ['a', 'a', 'a', 'b', 'a', 'b', 'a'])
})

t.test('projects that want the same sound or text do not wait for each other', async t => {
  const body = wavBytes(8000, tone(600, 100))
  const http = {
    request: (asked: { readonly url: string; readonly body?: string }) =>
      `${asked.url}${asked.body}`.includes('hang')
        ? new Promise(() => undefined)
        : Promise.resolve({ ok: true, status: 200, headers: { 'content-type': 'audio/wav' }, body }),
  } as unknown as HttpClient
  const urls = createUrlAudio(http, audio, { now: () => 0, base_url: null })
  for (let n = 0; n < 8; n++) void urls.get(`https://hang.test/${n}`, 'prj_greedy')
  const queued = urls.get('https://rival.test/hello.wav', 'prj_greedy')
  const own = urls.get('https://rival.test/hello.wav', 'prj_rival')
  t.not(own, queued, 'it has a turn of its own')
  t.match(await own, { pcm: { rate_hz: 8000 } })
  const speech = httpSpeech(({ plain }) => ({ url: 'https://voice.test/', body: { plain } }), http, audio)
  const speaks = (text: string, by: string) => speech.speak({ text, voice: 'man', language: 'en-US', owner: by })
  for (let n = 0; n < 8; n++) void speaks(`hang ${n}`, 'prj_greedy')
  const waiting = speaks('Hello', 'prj_greedy')
  const spoken = speaks('Hello', 'prj_rival')
  t.not(spoken, waiting, 'so does it')
  t.match(await spoken, { pcm: { rate_hz: 8000 } })
})

t.test('speech is synthesised once for the same text, and a failing synthesiser is reported', async t => {
  const speech = createSpeech(audio)
  const request = { text: 'Please hold the line.', voice: 'man', language: 'en-US', owner }
  const [one, two] = await Promise.all([speech.speak(request), speech.speak(request)])
  if ('refused' in one || 'refused' in two) throw new Error('speech failed')
  t.equal(one.pcm, two.pcm)
  t.ok(one.pcm.samples.length / one.pcm.rate_hz > 0.8, 'the speech has a plausible length')
  t.ok(levelDbm0(one.pcm.samples) > -35, 'the speech is audible')
  const again = await speech.speak(request)
  t.equal('pcm' in again && again.pcm, one.pcm)
  const dashed = await speech.speak({ ...request, text: '--version $(reboot)' })
  t.ok('pcm' in dashed, 'text is never an option or a command')
  t.ok('pcm' in (await speech.speak({ ...request, language: 'xx-XX' })), 'an unknown language is spoken in English')
  t.match(await createSpeech(audio, '/nonexistent/espeak').speak(request), { refused: 'speech_failed' })
  t.strictSame(
    [
      ['man', 'en-GB'],
      ['woman', 'en-US'],
      ['Polly.Joanna', 'en-US'],
      ['alice', 'fr-FR'],
      ['man', 'en-us -w /etc'],
    ].map(([voice = '', language = '']) => voiceName({ voice, language })),
    ['en-gb', 'en-us+f3', 'en-us+f3', 'fr-fr+f3', 'en-us'],
  )
})

t.test('ring-back has the cadence of its country, or the European one for an unknown country', async t => {
  t.strictSame(ringbackPieces('UK'), [
    { kind: 'tone', hz: [400, 450], on_ms: 400, off_ms: 200, total_ms: 600, level_dbm0: -19 },
    { kind: 'tone', hz: [400, 450], on_ms: 400, off_ms: 2000, total_ms: 2400, level_dbm0: -19 },
  ])
  t.match(ringbackPieces('us'), [{ hz: [440, 480], on_ms: 2000, off_ms: 4000 }])
  t.match(ringbackPieces('us-old'), [{ hz: [420] }])
  t.match(ringbackPieces('zz'), [{ hz: [425], on_ms: 1000, off_ms: 4000 }])
})

t.test('recordings whose writer was killed get a correct header; complete ones stay unchanged', async t => {
  const dir = folder(t)
  mkdirSync(join(dir, 'a'))
  const whole = wavBytes(8000, tone(600, 1000), tone(700, 1000))
  writeFileSync(join(dir, 'a', 'whole.wav'), whole)
  const torn = Buffer.concat([whole, Buffer.alloc(32_001, 1)])
  torn.writeUInt32LE(0, 40)
  writeFileSync(join(dir, 'torn.wav'), torn)
  writeFileSync(join(dir, 'cut.wav'), whole)
  truncateSync(join(dir, 'cut.wav'), 44 + 8000)
  writeFileSync(join(dir, 'empty.wav'), '')
  writeFileSync(join(dir, 'notes.txt'), 'not a recording')
  const repaired = repairRecordings(dir).sort((a, b) => a.file.localeCompare(b.file))
  t.strictSame(repaired, [
    { file: join(dir, 'cut.wav'), duration_ms: 250 },
    { file: join(dir, 'torn.wav'), duration_ms: 2000 },
  ])
  t.strictSame(repairRecordings(dir), [], 'a second run repairs nothing')
  const bytes = readFileSync(join(dir, 'torn.wav'))
  t.strictSame(await inspectRecording(join(dir, 'torn.wav')), {
    duration_ms: 2000,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    channels: 2,
  })
  t.equal(await inspectRecording(join(dir, 'empty.wav')), null)
  t.equal(await inspectRecording(join(dir, 'gone.wav')), null)
  t.strictSame(repairRecordings(join(dir, 'gone')), [])
})
