import type { MethodParams } from '../../../media/protocol/schema.ts'
import { tone, wavBytes } from '../../support/audio.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { reasonOf, startTestWorker } from '../../support/media-worker.ts'
import { endsSilent, recognizerServer, socketServer } from '../../support/recognizer.ts'
import { relayApp } from '../../support/relay-app.ts'
import { PATIENCE_MS, until } from '../../support/wait.ts'
import { webServer } from '../../support/web.ts'

const engine = await recognizerServer(t, 'two large pizzas')
const voice = await webServer(t, { '/chosen': { type: 'audio/wav', body: wavBytes(8000, tone(700, 2000)) } })
const w = await startTestWorker({
  stt: { engine: 'url', url: engine.url },
  tts_choices: [{ engine: 'url', url: `${voice.url}/chosen` }],
})
t.teardown(() => w.stop())
const { client } = w

let sessions = 0
const start = async (
  leg_id: string,
  url: string,
  over: Partial<MethodParams<'relay.start'>> = {},
  { client } = w,
): Promise<string> => {
  const relay_id = over.relay_id ?? `VX${++sessions}`
  await client.request('relay.start', {
    leg_id,
    relay_id,
    account_sid: 'AC1',
    call_sid: 'CA1',
    url,
    headers: { 'X-Twilio-Signature': 'signed' },
    setup: { callSid: 'CA1', parentCallSid: null },
    parameters: { topic: 'tea' },
    greeting: null,
    greeting_interruptible: 'any',
    tts_language: 'en-US',
    transcription_language: 'en-US',
    voice: 'man',
    model: null,
    languages: [],
    interruptible: 'any',
    sensitivity: 'high',
    keys: false,
    report: 'none',
    preemptible: false,
    hints: [],
    profanity_filter: true,
    ...over,
  })
  return relay_id
}
const line = async (at = w) => {
  const peer = await at.peer()
  const { leg_id } = await at.answeredLeg(await at.session(), peer)
  return { peer, leg_id }
}
type Peer = Awaited<ReturnType<typeof w.peer>>
/** The caller speaks until the platform has understood: how much of a tone it gets depends on the machine. */
const speaks = (peer: Peer, understood: () => boolean) => peer.send(tone(300, 30_000), understood)
const quiet = (ms: number) => new Int16Array(ms * 8)
const sounds = ({ payload }: { payload: Buffer }) => payload.some(byte => (byte & 0x7f) < 0x50)
/** Whether the latest packets of the agent are silent. Packets from before may still wait in the peer's socket. */
const still = ({ received }: Peer, packets = 20) => received.length > packets && !received.slice(-packets).some(sounds)
const LONG = 'This is a rather long sentence that the agent says to the caller, and it goes on for quite a while.'
/** Starts an engine that hears sound as `words.now`, after 300 ms of silence. `told` has what it said. */
const engineAfterSpeech = async (t: Test, words: { readonly now: string }) => {
  const told: string[] = []
  const heard = new WeakMap<object, number>()
  const { url } = await socketServer(t, (frame, socket, frames) => {
    if (frame.event !== 'media') return
    const before = heard.get(socket) ?? 0
    if (before < 2 || !endsSilent(frames, 15)) {
      heard.set(socket, endsSilent(frames, 1) ? before : before + 1)
      return
    }
    heard.set(socket, 0)
    told.push(words.now)
    socket.send(JSON.stringify({ event: 'transcript', track: 'inbound', transcript: words.now, final: true }))
  })
  return { url, told }
}

t.test('a relay application gets the call’s facts and the caller’s words, and its answer is spoken', async t => {
  const app = await relayApp(t)
  const { peer, leg_id } = await line()
  const relay_id = await start(leg_id, app.url, { hints: ['pizza'] })
  const { at_ms: _, ...setup } = await app.told('setup')
  t.strictSame(setup, {
    type: 'setup',
    sessionId: relay_id,
    callSid: 'CA1',
    parentCallSid: null,
    customParameters: { topic: 'tea' },
  })
  t.equal(app.headers['x-twilio-signature'], 'signed')
  const before = peer.received.length
  await speaks(peer, () => app.of('prompt').some(message => message['last']))
  t.match(await app.told('prompt', message => message['last']), { voicePrompt: 'two large pizzas', lang: 'en-GB' })
  t.match(app.of('prompt')[0], { voicePrompt: 'yes', last: false }, 'partial results come first')
  // Speech that goes on would interrupt the answer.
  await peer.send(quiet(400))
  for (const token of ['You ', 'said ', 'something. ', 'And the rest', ' of it']) app.send({ type: 'text', token })
  app.send({ type: 'text', token: '.', last: true })
  await peer.sounds(before)
  const figures = await w.event('relay.turn', event => event.leg_id === leg_id)
  const { detector_ms, recognizer_ms, customer_ms, voice_ms, playout_ms, total_ms } = figures
  t.ok(Math.abs(detector_ms + recognizer_ms + customer_ms + voice_ms + playout_ms - total_ms) <= 5, 'the parts add up')
  t.match(engine.connections[0]?.frames[1]?.['start'].recognition, { language: 'en-US', hints: ['pizza'] })
  app.send({ type: 'end', handoffData: '{"reason":"done"}' })
  t.match(await w.event('relay.ended', event => event.relay_id === relay_id), {
    reason: 'ended',
    hand_off: '{"reason":"done"}',
    error_code: null,
  })
  await until('the socket is closed', () => app.closed())
})

t.test('an agent speaks by the engine that its application chose, and without one by the operator’s', async t => {
  const app = await relayApp(t)
  const { peer, leg_id } = await line()
  await start(leg_id, app.url)
  await app.told('setup')
  app.send({ type: 'text', token: 'By the operator.', last: true })
  await peer.sounds()
  t.strictSame(voice.requests, [])

  const other = await relayApp(t)
  const chosen = await line()
  await start(chosen.leg_id, other.url, { tts_engine: 'url' })
  await other.told('setup')
  other.send({ type: 'text', token: 'By the choice.', last: true })
  await chosen.peer.hears(700)
  t.match(voice.requests, [{ path: '/chosen' }])
  t.match(JSON.parse(String(voice.requests[0]?.body)), { text: 'By the choice.' })
  app.send({ type: 'end' })
  other.send({ type: 'end' })
  await until('both are over', () => app.closed() && other.closed())
})

t.test('the caller’s voice stops the agent, and the application learns what was heard', async t => {
  const app = await relayApp(t)
  const { peer, leg_id } = await line()
  const relay_id = await start(leg_id, app.url)
  await app.told('setup')
  // `First words.` is shorter than 1.2 s. What follows lasts so long that the caller interrupts it however late.
  const whole = `First words. ${`${LONG} `.repeat(4)}`
  app.send({ type: 'text', token: whole, last: false })
  await peer.sound(2000)
  await speaks(peer, () => app.of('interrupt').length > 0)
  const { utteranceUntilInterrupt, durationUntilInterruptMs } = await app.told('interrupt')
  t.match(utteranceUntilInterrupt, /^First words\. This is/)
  t.ok(utteranceUntilInterrupt.length < whole.trim().length, 'only what was heard')
  t.ok(durationUntilInterruptMs > 1000, `${durationUntilInterruptMs} ms`)
  const lastSound = () => peer.received.findLast(sounds)?.at_ms ?? 0
  await peer.until(() => still(peer), PATIENCE_MS, 'silence')
  const stopped_ms = lastSound()

  app.send({ type: 'text', token: 'This belongs to the turn that was cut. ' })
  app.send({ type: 'text', token: 'So does this.', last: true })
  await peer.send(quiet(600))
  t.equal(lastSound(), stopped_ms, 'the rest of a cut turn is not spoken')
  const from = peer.received.length
  app.send({ type: 'text', token: 'A new turn.', last: true })
  await peer.sounds(from)
  await client.request('relay.stop', { leg_id, relay_id })
  t.match(await w.event('relay.ended', event => event.relay_id === relay_id), { reason: 'stopped' })
})

t.test('a greeting that may not be interrupted goes on, and keys are reported as the document says', async t => {
  const app = await relayApp(t)
  const { peer, leg_id } = await line()
  const greeting = `${LONG} `.repeat(4)
  await start(leg_id, app.url, { greeting, greeting_interruptible: 'none', keys: true, report: 'dtmf' })
  await peer.sounds()
  await peer.send(tone(300, 700))
  await peer.sendKey('7')
  t.match(await app.told('dtmf'), { digit: '7' })
  await peer.sounds()
  t.strictSame(app.of('interrupt'), [])
  t.strictSame(app.of('prompt'), [], 'speech during it is not reported')

  const second = await relayApp(t)
  const other = await line()
  await start(other.leg_id, second.url, { greeting, interruptible: 'dtmf', greeting_interruptible: 'dtmf' })
  await other.peer.sounds()
  await other.peer.sendKey('8')
  t.match(await second.told('interrupt'), { utteranceUntilInterrupt: /^(This|$)/ })
  t.strictSame(second.of('dtmf'), [], 'without dtmfDetection, keys only interrupt')
})

t.test(
  'after a key or a cough has cut an open turn, the next answer is heard, whether the app sent last or not',
  async t => {
    const words = { now: '' }
    const quiet_engine = await engineAfterSpeech(t, words)
    const other = await startTestWorker({ stt: { engine: 'url', url: quiet_engine.url } })
    t.teardown(() => other.stop())
    const app = await relayApp(t)
    const { peer, leg_id } = await line(other)
    await start(leg_id, app.url, { keys: true }, other)
    await app.told('setup')
    const cut = async (how: () => Promise<void>, count: number) => {
      app.send({ type: 'text', token: `${LONG} `.repeat(4), last: false })
      await peer.sounds()
      await how()
      await until('the turn is cut', () => app.of('interrupt').length === count)
      await peer.until(() => still(peer), PATIENCE_MS, 'silence')
    }
    const answers = async (token: string) => {
      const from = peer.received.length
      app.send({ type: 'text', token, last: true })
      await peer.sounds(from)
      await peer.until(() => still(peer, 50), PATIENCE_MS, 'the end of the answer')
    }
    await cut(() => peer.sendKey('1'), 1)
    await app.told('dtmf')
    await answers('You pressed one.')

    const coughs = quiet_engine.told.length
    await cut(() => speaks(peer, () => app.of('interrupt').length === 2), 2)
    await peer.send(quiet(30_000), () => quiet_engine.told.length > coughs)
    await peer.send(quiet(200))
    await answers('Are you still there?')
    t.strictSame(app.of('prompt'), [], 'a cough is no prompt')
  },
)

t.test('what the caller says across the end of a greeting that may not be interrupted is reported', async t => {
  const late_engine = await engineAfterSpeech(t, { now: 'hello there' })
  const other = await startTestWorker({ stt: { engine: 'url', url: late_engine.url } })
  t.teardown(() => other.stop())
  const app = await relayApp(t)
  const { peer, leg_id } = await line(other)
  await start(leg_id, app.url, { greeting: 'Welcome to the bank.', greeting_interruptible: 'none' }, other)
  await peer.sounds()
  await peer.send(tone(300, 30_000), () => still(peer, 50))
  const over = () => app.of('prompt').some(({ last }) => last)
  await peer.send(quiet(5000), over)
  t.match(await app.told('prompt', ({ last }) => last), { voicePrompt: 'hello there' })
})

t.test('sounds, keys and languages of the application; bad messages are answered, and the session goes on', async t => {
  const app = await relayApp(t)
  const web = await webServer(t, { '/900.wav': { type: 'audio/wav', body: wavBytes(8000, tone(900, 600)) } })
  const { peer, leg_id } = await line()
  const languages = [{ code: 'de-DE', voice: 'woman', model: 'telephony' }]
  const relay_id = await start(leg_id, app.url, { languages })
  await app.told('setup')
  app.send({ type: 'play', source: `${web.url}/900.wav`, loop: 2 })
  await peer.hears(900)
  app.send({ type: 'sendDigits', digits: '42' })
  await until('the peer got the keys', () => peer.keys().length === 2)
  app.send({ type: 'language', ttsLanguage: 'de-DE', transcriptionLanguage: 'de-DE' })
  const asked = () => engine.connections.map(({ frames }) => frames[1]?.['start'].recognition)
  const german = await until('recognition begins again', () =>
    asked().find(({ language } = {}) => language === 'de-DE'),
  )
  t.match(german, { language: 'de-DE', model: 'telephony' })

  const bad: [unknown, RegExp][] = [
    ['not json', /not JSON/],
    ['[]', /not a JSON object/],
    [{ type: 'dance' }, /unknown message type "dance"/],
    [{ type: 'text' }, /text has no token/],
    [{ type: 'text', token: 5 }, /token is not a string/],
    [{ type: 'text', token: 'x', last: 'perhaps' }, /last is not true or false/],
    [{ type: 'text', token: 'x', interruptible: 'maybe' }, /interruptible is not/],
    [{ type: 'play', source: 'file:///etc/passwd' }, /not an http\(s\) URL/],
    [{ type: 'play', source: 'https://x.example', loop: -1 }, /loop of play/],
    [{ type: 'sendDigits', digits: 'abc' }, /digits of sendDigits/],
    [{ type: 'language' }, /language names no/],
    [{ type: 'text', token: 'x'.repeat(70_000) }, /longer than 65536 bytes/],
    [{ type: 'play', source: `${web.url}/missing.wav` }, /could not be said/],
  ]
  for (const [message, description] of bad) {
    app.send(message as object | string)
    await app.told('error', told => description.test(told['description']))
  }
  t.match(await w.event('relay.warning', event => event.relay_id === relay_id), { code: 64_107 })
  const from = peer.received.length
  app.send({ type: 'text', token: 'The session goes on.', last: true })
  await peer.sounds(from)
  app.close()
  t.match(await w.event('relay.ended', event => event.relay_id === relay_id), { reason: 'failed', error_code: 64_105 })
})

t.test('a socket that cannot be reached, a closed leg and a second session', async t => {
  const { leg_id } = await line()
  for (const url of ['ws://127.0.0.1:9/', 'wss://10.1.2.3/x', 'ws://192.0.2.1/x']) {
    const relay_id = await start(leg_id, url, { greeting: LONG })
    t.match(await w.event('relay.ended', event => event.relay_id === relay_id), {
      reason: 'failed',
      error_code: 64_102,
      hand_off: null,
    })
  }
  const app = await relayApp(t)
  const relay_id = await start(leg_id, app.url)
  await app.told('setup')
  t.equal(await reasonOf(start(leg_id, app.url)), 'relay_exists')
  await client.request('leg.close', { leg_id })
  t.match(await w.event('relay.ended', event => event.relay_id === relay_id), { reason: 'stopped' })
  await until('the socket is closed', () => app.closed())
})
