import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAIN } from '../../../bench/up.ts'
import { heardSpan, readWavFile, tone, wavBytes } from '../../support/audio.ts'
import t from '../../support/harness/index.ts'
import { recognizerServer } from '../../support/recognizer.ts'
import { relayApp } from '../../support/relay-app.ts'

/** Runs `strowger agent try` with this document and these lines of input. */
async function tried(document: string, lines: readonly string[], env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-agent-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'agent.xml'), document)
  writeFileSync(join(folder, 'order.wav'), wavBytes(8000, tone(300, 600)))
  const child = spawn(process.execPath, [MAIN, 'agent', 'try', 'agent.xml', '--out', 'heard.wav'], {
    cwd: folder,
    env: { ...process.env, STROWGER_ALLOW_PRIVATE_WEBHOOKS: 'loopback', ...env },
  })
  let told = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', data => {
      told += data
    })
  child.stdin.end(lines.map(line => `${line}\n`).join(''))
  const code = await new Promise(resolve => child.on('close', resolve))
  return { code, told, heard: join(folder, 'heard.wav') }
}

t.test('agent try: a WAV file is heard, the answer is spoken, and a key hands over', async t => {
  const engine = await recognizerServer(t, 'two large pizzas')
  const app = await relayApp(t, (message, send) => {
    if (message.type === 'prompt' && message['last']) send({ type: 'text', token: 'Coming.', last: true })
    if (message.type === 'dtmf') send({ type: 'end', handoffData: 'a person' })
  })
  const relay = `<ConversationRelay url="${app.url}" dtmfDetection="true" interruptible="none"><Parameter name="shop" value="12"/></ConversationRelay>`
  const { code, told, heard } = await tried(`<Response><Connect>${relay}</Connect></Response>`, ['order.wav', '0'], {
    STROWGER_RECOGNIZER_URL: engine.url,
  })
  t.equal(code, 0, told)
  t.match(app.of('setup'), [{ from: '+2348030000099', customParameters: { shop: '12' } }])
  t.match(app.of('prompt').at(-1), { voicePrompt: 'two large pizzas', last: true })
  t.match(app.of('dtmf'), [{ digit: '0' }])
  t.match(
    told,
    /^> \{"type":"prompt","voicePrompt":"two large pizzas".*\n[\s\S]*^< \{"type":"text","token":"Coming\."/m,
  )
  t.match(told, /^turn \d+ ms: detector \d+, recognizer \d+, customer \d+, voice \d+, playout \d+$/m)
  t.match(told, /^ended with a person$/m)
  t.not(heardSpan(readWavFile(heard).channels[0] ?? new Int16Array(0)), null, 'the answer can be heard')
})

t.test('agent try says why a document or an application cannot be used', async t => {
  const none = await tried('<Response><Say>Hello</Say></Response>', [])
  t.not(none.code, 0)
  t.match(none.told, /does not begin with a <ConversationRelay>/)
  const away = await tried('<Response><Connect><ConversationRelay url="ws://127.0.0.1:9/"/></Connect></Response>', [])
  t.match(away.told, /^failed 64102: /m)
})
