import { execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { WebSocket } from 'ws'
import { timedSignature, timedSignatureData } from '../../../core/domain/webhooks/signature.ts'
import { handshakeSignature } from '../../../core/runtime/voice-request.ts'
import { checkDocument } from '../../../markup/check.ts'
import { VERBS } from '../../../markup/verbs/index.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/wait.ts'

// #own-process: packs and installs the package, and runs the programs of its README.

const TOKEN = 'the auth token of the account'
const folder = mkdtempSync(join(tmpdir(), 'strowger-voice-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

const project = join(folder, 'project')
mkdirSync(project)
writeFileSync(join(project, 'package.json'), '{"name":"empty","private":true,"type":"module"}')
execFileSync(process.execPath, ['scripts/packages.mjs', join(folder, 'packages')])
const [tarball = ''] = readdirSync(join(folder, 'packages')).filter(file => file.endsWith('.tgz'))
const options = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
execFileSync('npm', ['install', join(folder, 'packages', tarball), ...options], { cwd: project })

t.test('the tarball brings one package, which has a function for each supported verb', async t => {
  const installed = readdirSync(join(project, 'node_modules')).filter(name => !name.startsWith('.'))
  t.same(installed, ['@strowger'])
  t.same(readdirSync(join(project, 'node_modules/@strowger/voice')).sort(), [
    'LICENSE',
    'README.md',
    'dist',
    'package.json',
  ])
  const named = `import * as voice from '@strowger/voice'\nprocess.stdout.write(Object.keys(voice).join(' '))`
  const names = execFileSync(process.execPath, ['--input-type=module', '-e', named], { cwd: project })
    .toString()
    .split(' ')
  for (const { name, unsupported } of VERBS)
    t.equal(names.includes(`${name.charAt(0).toLowerCase()}${name.slice(1)}`), unsupported === null, name)
})

t.test('texts and attributes are escaped, and lists are written as their attributes read them', async t => {
  const program = `import { connect, conversationRelay, dial, number, parameter, response, say, ssml } from '@strowger/voice'
    process.stdout.write(response(
      say('Tom & "Ada" </Say><Hangup/>\\u0007'),
      say(ssml('Wait <break time="1s"/>.')),
      dial(
        { action: '/a?b=1&c="2"', method: undefined },
        number('+2348030000001', { statusCallbackEvent: ['ringing', 'answered'] }),
      ),
      connect({}, conversationRelay(
        { url: 'wss://a.example/', hints: ['one', 'two'] },
        parameter({ name: 'n', value: 'x\\ny' }),
      )),
    ))`
  const text = execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: project }).toString()
  t.equal(
    text,
    '<?xml version="1.0" encoding="UTF-8"?><Response><Say>Tom &amp; &quot;Ada&quot; &lt;/Say&gt;&lt;Hangup/&gt;</Say>' +
      '<Say>Wait <break time="1s"/>.</Say><Dial action="/a?b=1&amp;c=&quot;2&quot;">' +
      '<Number statusCallbackEvent="ringing answered">+2348030000001</Number></Dial><Connect>' +
      '<ConversationRelay url="wss://a.example/" hints="one,two"><Parameter name="n" value="x&#10;y"/>' +
      '</ConversationRelay></Connect></Response>',
  )
})

/** The programs of the README, compiled strictly, with ports that are free. */
async function programs(t: Test) {
  const readme = readFileSync(join(project, 'node_modules/@strowger/voice/README.md'), 'utf8')
  const ports = { 3000: await freePort(), 3001: await freePort() }
  const own = join(project, 'examples')
  mkdirSync(own)
  // The examples use `ws`, and types of Node.js, which their reader has installed.
  for (const name of ['ws', '@types']) symlinkSync(resolve('node_modules', name), join(project, 'node_modules', name))
  const texts = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text = '']) => text)
  const here = (text: string) => text.replace(/\b300[01]\b/g, port => String(ports[port as '3000']))
  for (const [at, text] of texts.entries()) writeFileSync(join(own, `${at}.ts`), here(text))
  writeFileSync(
    join(own, 'wrong.ts'),
    `import { dial, gather, number, pause, response, say } from '@strowger/voice'
// @ts-expect-error: no such attribute
say('x', { langauge: 'en' })
// @ts-expect-error: a value that the attribute does not have
gather({ input: 'voice' })
// @ts-expect-error: a noun is no verb
response(number('+1'))
// @ts-expect-error: Pause may not stand in Dial
dial({}, pause())
`,
  )
  const settings = ['--strict', '--noUncheckedIndexedAccess', '--target', 'es2022', '--module', 'nodenext']
  const flags = [...settings, '--skipLibCheck', '--types', 'node', '--outDir', 'made', '--rootDir', '.']
  const files = ['wrong.ts', ...texts.map((_, at) => `${at}.ts`)].map(file => join('examples', file))
  t.doesNotThrow(() =>
    execFileSync(resolve('node_modules/.bin/tsc'), [...flags, ...files], { cwd: project, stdio: 'inherit' }),
  )
  return { ports, files: texts.map((_, at) => join(project, 'made/examples', `${at}.js`)) }
}

async function started(t: Test, file: string, port: number): Promise<void> {
  const child = spawn(process.execPath, [file], { env: { AUTH_TOKEN: TOKEN }, stdio: ['ignore', 'ignore', 'inherit'] })
  t.teardown(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  await until(`${file} listens`, async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD' }).catch(() => null)
    return answer !== null
  })
}

t.test('the programs of the README compile and do what it says', async t => {
  const { ports, files } = await programs(t)
  const [documents = '', server = '', agent = ''] = files

  const printed = execFileSync(process.execPath, [documents]).toString().trim().split('\n')
  t.equal(printed.length, 2)
  for (const document of printed) t.same(checkDocument(document, { url: 'https://example.com/' }).advice, [], document)

  await started(t, server, ports[3000])
  const url = `http://127.0.0.1:${ports[3000]}/call?step=1`
  const body = new URLSearchParams({ From: '+2348030000001', Body: 'é & ü' }).toString()
  const ask = async (headers: Record<string, string>, sent = body) =>
    fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      body: sent,
    })
  const signed = (age_seconds: number) => {
    const time = Math.floor(Date.now() / 1000) - age_seconds
    const hmac = createHmac('sha256', TOKEN)
      .update(timedSignatureData(time, url, body))
      .digest('hex')
    return { 'X-Strowger-Signature': timedSignature(time, hmac) }
  }
  const good = await ask(signed(0))
  const rotated = signed(0)['X-Strowger-Signature'].replace(',', `,v1=${'0'.repeat(64)},`)
  t.equal((await ask({ 'X-Strowger-Signature': rotated })).status, 200, 'one of two secrets')
  const neither = rotated.replace(/[0-9a-f]{64}$/, 'f'.repeat(64))
  t.equal((await ask({ 'X-Strowger-Signature': neither })).status, 403, 'neither of two')
  t.equal(good.status, 200)
  t.match(await good.text(), /<Say>You called from \+2348030000001\.<\/Say>/)
  t.equal((await ask(signed(0), `${body}&From=me`)).status, 403, 'another body')
  t.equal((await ask(signed(4000))).status, 403, 'a request that somebody recorded')
  t.equal((await ask({})).status, 403, 'no signature')

  await started(t, agent, ports[3001])
  await relayed(t, `ws://127.0.0.1:${ports[3001]}/agent?call=1`)
})

/** Talks to the agent of the README as the platform does. */
async function relayed(t: Test, url: string): Promise<void> {
  const stranger = new WebSocket(url, { headers: { 'X-Twilio-Signature': handshakeSignature('another token', url) } })
  const [error] = await once(stranger, 'error')
  t.match(error.message, '401', 'a stranger gets no session')

  const socket = new WebSocket(url, { headers: { 'X-Twilio-Signature': handshakeSignature(TOKEN, url) } })
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  const told: Record<string, unknown>[] = []
  socket.on('message', data => told.push(JSON.parse(String(data))))
  const tell = (message: object): void => socket.send(JSON.stringify(message))
  const last = () => until('the end of a turn', () => (told.at(-1)?.['last'] === true ? told.splice(0) : undefined))

  tell({ type: 'setup', sessionId: 'VX1', callSid: 'CA1', from: '+2348030000001', to: '+1', customParameters: {} })
  t.same(await last(), [{ type: 'text', token: 'Hello +2348030000001. What would you like to know?', last: true }])
  tell({ type: 'prompt', voicePrompt: 'half of a', lang: 'en-US', last: false })
  tell({ type: 'prompt', voicePrompt: 'the time', lang: 'en-US', last: true })
  const tokens = await last()
  t.equal(tokens.map(({ token }) => token).join(''), 'You asked: the time ')
  t.same(
    tokens.map(({ last }) => last),
    [false, false, false, false, true],
  )
  tell({ type: 'dtmf', digit: '5' })
  t.same(await last(), [{ type: 'text', token: 'You pressed 5.', last: true }])
  tell({ type: 'dtmf', digit: '0' })
  t.same(await until('the end', () => told[0]), { type: 'end', handoffData: 'operator' })
}

t.test('a session that is interrupted stops reading the answer, and does not end its turn', async t => {
  const program = `import { relay } from '@strowger/voice'
    const listeners = {}, sent = []
    const addEventListener = (type, listener) => (listeners[type] = listener)
    const socket = { send: text => sent.push(JSON.parse(text)), close() {}, addEventListener }
    const tell = message => listeners.message({ data: JSON.stringify(message) })
    let read = 0, ended
    const over = new Promise(resolve => (ended = resolve))
    const interrupt = { type: 'interrupt', utteranceUntilInterrupt: 'word', durationUntilInterruptMs: 90 }
    async function* answer() { for (;;) { read++; yield 'word '; if (read === 2) tell(interrupt) } }
    const heard = []
    relay(socket, {
      prompt: session => session.stream(answer()).then(ended),
      interrupt: (session, what) => void heard.push(what.utteranceUntilInterrupt, session.signal.aborted),
      failed: error => heard.push(error.message),
      dtmf: () => { throw new Error('handler') },
    })
    listeners.message({ data: 'no json' })
    tell({ type: 'prompt', voicePrompt: 'before its setup', last: true })
    tell({ type: 'setup', from: '+1' })
    tell({ type: 'prompt', voicePrompt: 'x', last: true })
    await over
    tell({ type: 'dtmf', digit: '1' })
    await new Promise(resolve => setImmediate(resolve))
    process.stdout.write(JSON.stringify({ read, sent, heard }))`
  const file = join(project, 'interrupted.mjs')
  writeFileSync(file, program)
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface(child.stdout), 'line')
  const token = { type: 'text', token: 'word ', last: false }
  t.same(JSON.parse(line), { read: 3, sent: [token, token], heard: ['word', true, 'handler'] })
})
