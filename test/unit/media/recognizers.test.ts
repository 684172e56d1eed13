import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { createHttpClient } from '../../../core/runtime/http/index.ts'
import { createAudioThreads } from '../../../media/files/audio-threads.ts'
import { createVoice } from '../../../media/files/voice.ts'
import { createConnectWebSocket } from '../../../media/forks/connect.ts'
import type { MethodParams } from '../../../media/protocol/schema.ts'
import { createRecognizer } from '../../../media/speech/index.ts'
import { hintGrammar } from '../../../media/speech/pocketsphinx-input.ts'
import type { RecognitionSettings } from '../../../media/speech/recognizer.ts'
import { readWav, tone, wavBytes } from '../../support/audio.ts'
import t from '../../support/harness/index.ts'
import { startTestWorker } from '../../support/media-worker.ts'
import { socketServer } from '../../support/recognizer.ts'
import { echoAgent, say, sayAndHear } from '../../support/relay-app.ts'
import { HAS_POCKETSPHINX, person, SETTINGS } from '../../support/spoken.ts'
import { until } from '../../support/wait.ts'
import { type Page, webServer } from '../../support/web.ts'

const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'test' })
t.teardown(() => http.close())
const ways = { http, connect: createConnectWebSocket(['loopback']) }

/** A relay session of English with the usual settings. */
const RELAY: Omit<MethodParams<'relay.start'>, 'leg_id' | 'url'> = {
  relay_id: 'VX1',
  account_sid: 'AC1',
  call_sid: 'CA1',
  headers: {},
  setup: {},
  parameters: {},
  languages: [],
  greeting: null,
  greeting_interruptible: 'any',
  interruptible: 'any',
  report: 'none',
  sensitivity: 'high',
  tts_language: 'en-US',
  transcription_language: 'en-US',
  voice: 'man',
  model: null,
  keys: false,
  preemptible: false,
  hints: [],
  profanity_filter: true,
}

/** Opens a recognition and keeps what it reports. */
function listening(
  settings: Parameters<typeof createRecognizer>[0],
  over: Partial<RecognitionSettings> = {},
  by: Parameters<typeof createRecognizer>[1] = ways,
) {
  const heard: { text: string; final: boolean; confidence: number }[] = []
  const ends: (string | null)[] = []
  const warnings: string[] = []
  const session = createRecognizer(settings, by)?.open(
    { ...SETTINGS, ...over },
    {
      started: () => undefined,
      heard: result => heard.push(result),
      warned: detail => warnings.push(detail),
      ended: fault => ends.push(fault),
    },
  )
  if (!session) throw new Error('there is no recognizer')
  const say = (samples: Int16Array) => {
    for (let at = 0; at + 160 <= samples.length; at += 160)
      session.audio('inbound', samples.slice(at, at + 160), at / 8)
  }
  return { session, say, heard, ends, warnings }
}

const audio = createAudioThreads()
t.teardown(() => audio.close())
const spoken = person(t)
const quiet = (ms: number) => new Int16Array(ms * 8)

t.test('the offline recognizer hears the phrases of the hints over the telephone, and says what it cannot', async t => {
  if (!HAS_POCKETSPHINX) return t.comment('pocketsphinx is not installed')
  const hints = ['two large pizzas', 'opening hours', 'a person', 'Strowgerphone']
  const line = listening({ engine: 'pocketsphinx' }, { hints })
  line.say(quiet(400))
  line.say(await spoken('opening hours'))
  line.say(quiet(800))
  await until('the offline recognizer has heard it', () => line.heard.length === 1)
  t.match(line.heard, [{ text: 'opening hours', final: true, confidence: 0.8 }])
  line.say(await spoken('two large pizzas'))
  line.say(quiet(800))
  await until('and the next', () => line.heard.length === 2)
  t.equal(line.heard[1]?.text, 'two large pizzas')
  line.session.stop()
  t.strictSame(line.ends, [null])

  const french = listening({ engine: 'pocketsphinx' }, { language: 'fr-FR' })
  french.say(tone(300, 500))
  french.say(quiet(800))
  await until('it tells what it lacks', () => french.ends.length === 1)
  t.match(french.ends[0], /knows English only, not fr-FR/)
})

t.test('an agent works without a network: it hears, answers, is interrupted, gets a key, and hands over', async t => {
  if (!HAS_POCKETSPHINX) return t.comment('pocketsphinx is not installed')
  const w = await startTestWorker({ stt: { engine: 'pocketsphinx' } })
  t.teardown(() => w.stop())
  const app = await echoAgent(t)
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(await w.session(), peer)
  await w.client.request('relay.start', {
    ...RELAY,
    leg_id,
    url: app.url,
    keys: true,
    hints: ['opening hours', 'a person', 'two large pizzas'],
  })
  await app.told('setup')
  await sayAndHear(app, peer, 'opening hours', await spoken('opening hours'), 8 * 1500)
  await say(app, peer, 'two large pizzas', await spoken('two large pizzas'))
  await app.told('interrupt', ({ utteranceUntilInterrupt }) => /^You said/.test(utteranceUntilInterrupt))
  await peer.sendKey('0')
  t.match(await w.event('relay.ended'), { reason: 'ended', hand_off: '{"to":"a person"}' })
  const measured = w.events('relay.turn').filter(turn => turn.recognizer_ms > 0 && turn.total_ms > turn.recognizer_ms)
  t.ok(measured.length > 0, 'a turn was measured')
})

t.test('a grammar has the hints that the model can hear', t => {
  const words = new Set(['yes', 'no', 'two', 'pizzas', "o'clock"])
  t.strictSame(
    hintGrammar(['Yes!', 'two pizzas', "two o'clock", 'xyzzy', 'yes', '); public <x> = no', ''], () => words)?.split(
      '\n',
    )[2],
    "public <hint> = yes | two pizzas | two o'clock;",
    'with unknown words left out, and without signs of the grammar',
  )
  t.equal(
    hintGrammar(['xyzzy'], () => words),
    null,
  )
  t.equal(
    hintGrammar([], () => words),
    null,
  )
  t.end()
})

t.test('an OpenAI-compatible recognizer gets each utterance as a form', async t => {
  const web = await webServer(t, {
    '/v1/audio/transcriptions': { type: 'application/json', body: '{"text":" I would like tea. "}' },
  })
  const settings = { engine: 'openai', url: `${web.url}/v1`, api_key: 'sk-1', model: null } as const
  const line = listening(settings, { hints: ['tea', 'milk'], language: 'en-GB' })
  line.say(tone(300, 500))
  line.say(quiet(800))
  await until('it was heard', () => line.heard.length === 1)
  t.match(line.heard, [{ text: 'I would like tea.', final: true }])
  const [request] = web.requests
  t.equal(request?.headers['authorization'], 'Bearer sk-1')
  const form = await new Response(new Uint8Array(request?.body ?? []), {
    headers: { 'content-type': request?.headers['content-type'] ?? '' },
  }).formData()
  const fields = Object.fromEntries([...form].filter(([name]) => name !== 'file'))
  t.strictSame(fields, { model: 'whisper-1', language: 'en', response_format: 'json', prompt: 'tea, milk' })
  const file = form.get('file')
  const wav = readWav(Buffer.from(await new Response(file).arrayBuffer()))
  t.equal(wav.rate_hz, 8000)
  t.ok(wav.duration_ms > 500)
  line.session.stop()
})

t.test('an OpenAI-compatible recognizer that lacks the model of the document serves by the default', async t => {
  const asked: string[] = []
  const web = await webServer(t, {
    '/v1/audio/transcriptions': ({ body }) => {
      const model = /name="model"\r\n\r\n(.*)\r\n/.exec(body.toString('latin1'))?.[1] ?? ''
      asked.push(model)
      return model === 'whisper-1' ? { type: 'application/json', body: '{"text":"tea"}' } : { status: 404, body: '{}' }
    },
  })
  const settings = { engine: 'openai', url: `${web.url}/v1`, api_key: 'sk-1', model: null } as const
  const heard = async (model: string, utterances: number) => {
    const line = listening(settings, { model })
    for (let at = 0; at < utterances; at++) {
      line.say(tone(300, 500))
      line.say(quiet(800))
    }
    await until('it was heard', () => line.heard.length === utterances)
    line.session.stop()
    return { asked: asked.splice(0), warned: line.warnings.length > 0 }
  }
  t.same(await heard('telephony', 2), { asked: ['telephony', 'whisper-1', 'whisper-1'], warned: true })
  t.same(await heard('deepgram_nova-2', 1), { asked: ['whisper-1'], warned: true })
  t.same(await heard('phone_call', 1), { asked: ['whisper-1'], warned: false })
})

t.test('a project whose utterances hang at the recognizer leaves places to those of others', async t => {
  const page: Page = ({ body, url }) =>
    `${url}${body.toString('latin1')}`.includes('hang')
      ? new Promise(() => undefined)
      : { type: 'application/json', body: '{"text":"tea","transcript":"tea"}' }
  const web = await webServer(t, { '/hear': page, '/v1/audio/transcriptions': page })
  const openai = { engine: 'openai', url: `${web.url}/v1`, api_key: 'sk-1', model: null } as const
  for (const settings of [openai, { engine: 'url', url: `${web.url}/hear` } as const]) {
    const few = createHttpClient({ allow_private: ['loopback'], user_agent: 'test', max_in_flight: 4 })
    t.teardown(() => few.close())
    const before = web.requests.length
    const speaks = (account_sid: string, hint: string) => {
      const line = listening(settings, { account_sid, hints: [hint] }, { ...ways, http: few })
      line.say(tone(300, 500))
      line.say(quiet(800))
      return line
    }
    const lines = [1, 2, 3, 4].map(() => speaks('AC1', 'hang'))
    await until('two are refused', () => lines.filter(({ ends }) => ends.length === 1).length === 2)
    await until('two are at the recognizer', () => web.requests.length === before + 2)
    const rival = speaks('AC2', 'tea')
    await until('the other project is heard', () => rival.heard.length === 1)
    for (const { session } of [...lines, rival]) session.stop()
  }
})

t.test('a recognition that finishes hears the utterance that goes on', async t => {
  const web = await webServer(t, {
    '/v1/audio/transcriptions': { type: 'application/json', body: '{"text":"good bye"}' },
  })
  const line = listening({ engine: 'openai', url: `${web.url}/v1`, api_key: 'sk-1', model: null })
  line.say(tone(300, 500))
  line.session.finish()
  await until('it has ended', () => line.ends.length === 1)
  t.match(line.heard, [{ text: 'good bye', final: true }])
  t.same(line.ends, [null])

  const engine = await socketServer(t, ({ event }, socket) => {
    if (event !== 'stop') return
    socket.send(JSON.stringify({ event: 'transcript', track: 'inbound', transcript: 'see you', final: true }))
    socket.close()
  })
  const own = listening({ engine: 'url', url: engine.url })
  own.say(tone(300, 100))
  own.session.finish()
  await until('it has ended, too', () => own.ends.length === 1)
  t.match(own.heard, [{ text: 'see you', final: true }])
  t.same(own.ends, [null])
  const frames = engine.connections[0]?.frames.map(({ event }) => event) ?? []
  t.same(frames, ['connected', 'start', ...Array(5).fill('media'), 'stop'], 'all that was said has been sent')
})

/** Starts a server of Deepgram's live API, which refuses what it does not know. Returns its address. */
async function liveApi(
  take: Parameters<WebSocketServer['on']>[1],
  knows: (query: URLSearchParams) => boolean = () => true,
): Promise<string> {
  const server = new WebSocketServer({
    ...{ port: 0, host: '127.0.0.1' },
    verifyClient: ({ req }, done) => done(knows(new URL(req.url ?? '', 'http://test').searchParams), 400),
  })
  t.teardown(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  await new Promise(resolve => server.once('listening', resolve))
  server.on('connection', take)
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
}
const results = (transcript: string, is_final: boolean, speech_final: boolean) =>
  JSON.stringify({
    type: 'Results',
    is_final,
    speech_final,
    channel: { alternatives: [{ transcript, confidence: 0.9 }] },
  })

t.test('Deepgram’s live API gets linear audio, and its pieces become results', async t => {
  let asked = ''
  let key: string | undefined
  let bytes = 0
  let closing = ''
  const url = await liveApi((socket: WebSocket, request: IncomingMessage) => {
    asked = request.url ?? ''
    key = request.headers.authorization
    socket.on('message', (data, binary) => {
      if (!binary) closing = String(data)
      else if (bytes === 0) {
        socket.send('{"type":"SpeechStarted"}')
        socket.send(results('two', false, false))
        socket.send(results('two large', true, false))
        socket.send(results('pizzas', true, true))
        socket.send(results('', true, true))
      }
      bytes += binary ? (data as Buffer).length : 0
    })
  })
  const line = listening({ engine: 'deepgram', url, api_key: 'dg-1', model: null }, { hints: ['pizza'] })
  line.say(tone(300, 200))
  await until('the results came', () => line.heard.some(({ final }) => final))
  t.strictSame(
    line.heard.map(({ text, final }) => `${text} ${final}`),
    ['two false', 'two large false', 'two large pizzas true'],
  )
  t.equal(key, 'Token dg-1')
  const query = new URL(asked, url).searchParams
  t.match(Object.fromEntries(query), {
    ...{ language: 'en-US', encoding: 'linear16', sample_rate: '8000', endpointing: '500', keywords: 'pizza' },
  })
  await until('all audio came', () => bytes === 3200)
  line.session.stop()
  await until('the end is told', () => closing !== '')
  t.equal(closing, '{"type":"CloseStream"}')
  t.strictSame(line.ends, [null])
})

t.test('Deepgram gets models and hints by its own names, and serves a model that it lacks by the default', async t => {
  const asked: string[] = []
  const url = await liveApi(
    (socket: WebSocket) => socket.send(results('yes', true, true)),
    query => {
      const model = query.get('model') ?? ''
      const hints = ['keywords', 'keyterm'].filter(name => query.has(name))
      asked.push(`${model} ${hints}`)
      // As Deepgram does: https://github.com/deepgram/deepgram-js-sdk/issues/474
      return /^nova-[23](-|$)/.test(model) && !(model.startsWith('nova-3') && query.has('keywords'))
    },
  )
  const heard = async (model: string, usual: string | null = null, hints = ['pizza']) => {
    const line = listening({ engine: 'deepgram', url, api_key: 'dg-1', model: usual }, { model, hints })
    await until('it was heard', () => line.heard.length + line.ends.length > 0)
    line.session.stop()
    t.same(line.ends, [null], model)
    return [...asked.splice(0), ...line.warnings.map(warning => /".*"/.exec(warning)?.[0])]
  }
  t.same(await heard('nova-3-general'), ['nova-3-general keyterm'])
  t.same(await heard('deepgram_nova-3'), ['nova-3 keyterm'])
  t.same(await heard('phone_call'), ['nova-2-phonecall keywords'])
  t.same(await heard('default', 'nova-3'), ['nova-3 keyterm'])
  t.same(await heard('googlev2_long'), ['nova-2-phonecall keywords', '"googlev2_long"'])
  t.same(await heard('telephony', 'nova-3'), ['telephony keywords', 'nova-3 keyterm', '"telephony"'])
  t.same(await heard('deepgram_base', null, []), ['base ', 'nova-2-phonecall ', '"base"'])
})

t.test('Deepgram gets no more hints than it takes', async t => {
  let query = new URLSearchParams()
  const url = await liveApi(
    (socket: WebSocket) => socket.send(results('yes', true, true)),
    asked => {
      query = asked
      return true
    },
  )
  const taken = async (name: string, model: string, hints: string[]): Promise<number> => {
    const line = listening({ engine: 'deepgram', url, api_key: 'dg-1', model }, { hints })
    await until('it was heard', () => line.heard.length > 0)
    line.session.stop()
    return query.getAll(name).length
  }
  t.equal(await taken('keywords', 'nova-2', Array(500).fill('pizza')), 100)
  t.equal(await taken('keyterm', 'nova-3', Array(500).fill('x'.repeat(100))), 15)
})

t.test('noise that Deepgram takes for speech ends as an utterance without words', async t => {
  const url = await liveApi((socket: WebSocket) => {
    socket.send(results('', true, true))
    socket.send('{"type":"SpeechStarted"}')
    socket.send(results('', true, false))
    socket.send(results('', true, true))
    socket.send(results('', true, true))
    socket.send(results('yes', true, true))
  })
  const line = listening({ engine: 'deepgram', url, api_key: 'dg-1', model: null })
  await until('the words came', () => line.heard.some(({ text }) => text === 'yes'))
  t.match(line.heard, [
    { text: '', final: true, confidence: 0 },
    { text: 'yes', final: true },
  ])
  t.equal(line.heard.length, 2)
  line.session.stop()
})

t.test('a recognition by Deepgram that finishes hears what was said until then', async t => {
  let bytes = 0
  const url = await liveApi((socket: WebSocket) => {
    socket.on('message', (data, binary) => {
      bytes += binary ? (data as Buffer).length : 0
      if (binary || !/CloseStream/.test(String(data))) return
      socket.send(results('two large', true, false))
      socket.send(results('pizzas', true, false))
      socket.send('{"type":"Metadata"}')
      socket.close(1000)
    })
  })
  const line = listening(
    { engine: 'deepgram', url, api_key: 'dg-1', model: null },
    { partial: false, tracks: ['inbound', 'outbound'] },
  )
  line.say(tone(300, 200))
  line.session.finish()
  await until('it has ended', () => line.ends.length === 1)
  t.equal(bytes, 3200, 'what waited was sent')
  const finals = line.heard.filter(({ final }) => final).map(({ text }) => text)
  t.same(finals, ['two large pizzas', 'two large pizzas'], 'of both tracks')
  t.same(line.ends, [null])
})

t.test('an utterance without an end is cut, so that its pieces take no more and more memory', async t => {
  const url = await liveApi((socket: WebSocket) => {
    socket.once('message', () => {
      for (let piece = 0; piece < 300; piece++) socket.send(results(`w${piece} ${'x'.repeat(40)}`, true, false))
      socket.send(results('over', true, true))
    })
  })
  const line = listening({ engine: 'deepgram', url, api_key: 'dg-1', model: null })
  line.say(tone(300, 20))
  await until('all of it came', () => line.heard.some(({ text, final }) => final && text.endsWith('over')))
  const finals = line.heard.filter(({ final }) => final).map(({ text }) => text)
  t.ok(finals.length > 5 && line.heard.every(({ text }) => text.length < 2200), `${finals.length} utterances`)
  const words = finals.join(' ').match(/w\d+/g) ?? []
  t.strictSame(
    words,
    Array.from({ length: 300 }, (_, piece) => `w${piece}`),
    'and no word is lost or told twice',
  )
  line.session.stop()
})

t.test('voices of other providers are asked as they document it', async t => {
  const wav = { type: 'audio/wav', body: wavBytes(8000, tone(500, 300)) }
  const web = await webServer(t, { '/v1/audio/speech': wav, '/v1/text-to-speech/nova/stream': wav })
  const provider = { api_key: 'key-1', model: null, voice: 'nova' }
  const words = { text: 'Hello', language: 'en-US', owner: 'p' }
  const openai = createVoice({ engine: 'openai', url: `${web.url}/v1`, ...provider }, http, audio)
  t.ok('pcm' in (await openai.speak({ ...words, voice: 'man' })))
  const elevenlabs = createVoice({ engine: 'elevenlabs', url: web.url, ...provider }, http, audio)
  t.ok('pcm' in (await elevenlabs.speak({ ...words, voice: 'Polly.Joanna' })))
  const id = 'UgBBYS2sOqTuMpoF3BR0'
  for (const voice of ['unknown', `${id}-flash_v2_5-0.8_0.8_0.6`])
    t.match(await elevenlabs.speak({ ...words, voice }), {
      pcm: {},
      warning: `the voice "${voice}" is not one of the engine's, whose default speaks instead`,
    })
  const asked = web.requests.slice(2).map(({ path }) => path.split('/')[3])
  t.same(asked, ['unknown', 'nova', id, 'nova'], 'by its id, and then by the voice of the installation')
  const again = await elevenlabs.speak({ ...words, voice: 'unknown' })
  t.ok('warning' in again && web.requests.length === 6, 'the warning is kept with the speech')
  const refused = createVoice({ engine: 'elevenlabs', url: `${web.url}/nowhere`, ...provider }, http, audio)
  t.match(await refused.speak({ ...words, voice: 'unknown' }), { refused: 'speech_failed' })
  const [first, second] = web.requests
  t.equal(first?.headers['authorization'], 'Bearer key-1')
  t.strictSame(JSON.parse(String(first?.body)), {
    model: 'tts-1',
    input: 'Hello',
    voice: 'nova',
    response_format: 'wav',
  })
  t.equal(second?.headers['xi-api-key'], 'key-1')
  t.strictSame(JSON.parse(String(second?.body)), { text: 'Hello', model_id: 'eleven_flash_v2_5' })
})
