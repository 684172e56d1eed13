import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { resolve } from 'node:path'
import { WebSocket } from 'ws'
import { CONSOLE_PASSWORD, type ControlPlane, controlPlane } from '../../support/control-plane.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { operatorKey } from '../../support/operators.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/wait.ts'

// Runs the examples of docs/operations.md in Debian's nginx and Caddy. #own-process

/** The client's address: on this machine, but not the one from which the proxies connect to us. */
const CLIENT = '127.0.0.9'
const NAME = 'app.example.test'
const [cert, key] = ['good.pem', 'leaf.key'].map(name => resolve('fixtures/tls', name))
const ca = readFileSync('fixtures/tls/root.pem')

/** Returns an example with the parts replaced that differ on each machine. */
function example(language: string, changes: Readonly<Record<string, string>>): string {
  const [, text = ''] =
    new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(readFileSync('docs/operations.md', 'utf8')) ?? []
  return Object.entries(changes).reduce((made, [from, to]) => {
    if (!made.includes(from)) throw new Error(`the example for ${language} has no ${from}`)
    return made.replaceAll(from, to)
  }, text)
}

interface Ask {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: object
}

const ask = (port: number, path: string, { method = 'GET', headers = {}, body }: Ask = {}) =>
  new Promise<{ readonly status: number | undefined; readonly body: string }>((answered, failed) => {
    const at = { host: '127.0.0.1', port, path, method, localAddress: CLIENT, servername: NAME, ca, agent: false }
    const typed = { Host: NAME, ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers }
    const sent = request({ ...at, headers: typed }, answer => {
      let text = ''
      answer.on('data', chunk => {
        text += chunk
      })
      answer.on('end', () => answered({ status: answer.statusCode, body: text }))
    })
    sent.on('error', failed).end(body && JSON.stringify(body))
  })

async function through(t: Test, w: ControlPlane, child: ChildProcess, port: number): Promise<void> {
  let said = ''
  child.stderr?.on('data', chunk => {
    said += chunk
  })
  const ended = new Promise(resolve => child.once('exit', resolve))
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  await until('the proxy answers', async () => {
    if (child.exitCode !== null) throw new Error(said)
    return ask(port, '/healthz').then(
      ({ status }) => status === 200,
      () => false,
    )
  })
  const forged = { 'X-Forwarded-For': '127.0.0.1', 'X-Forwarded-Host': 'evil.example', 'X-Real-IP': '127.0.0.1' }
  const body = { email: w.demo.email, password: CONSOLE_PASSWORD }
  const { status } = await ask(port, '/console/api/session', { method: 'POST', body, headers: forged })
  t.equal(status, 200)
  const [session] = await w.state.db.selectFrom('console_session').select('address').execute()
  t.equal(session?.address, CLIENT, 'the session is of the client, whatever it claims')
  t.equal((await ask(port, '/metrics', { headers: forged })).status, 401, 'the metrics are not read as from here')
  const operator = { Authorization: `Bearer ${await operatorKey(w)}` }
  t.equal((await ask(port, '/operator/v1/organizations', { headers: { ...forged, ...operator } })).status, 403)
  t.equal((await w.ask('GET', '/operator/v1/organizations', { key: operator.Authorization.slice(7) })).status, 200)

  const listen = (headers: Record<string, string>, path: string) =>
    new Promise<string>((heard, failed) => {
      const options = { headers: { Host: NAME, ...headers }, ca, servername: NAME }
      const socket = new WebSocket(`wss://127.0.0.1:${port}${path}`, [], options)
      t.teardown(() => socket.terminate())
      socket.once('message', data => heard(JSON.parse(String(data)).type))
      socket.once('unexpected-response', (_request, answer) => heard(String(answer.statusCode)))
      socket.once('error', failed)
    })
  t.equal(await listen({ Authorization: `Bearer ${w.key}` }, '/v1/events'), 'hello', 'live events pass')
  const console_events = '/console/api/v1/events'
  t.equal(await listen({ Origin: `https://${NAME}` }, console_events), '401', 'our own page, not signed in')
  t.equal(await listen({ Origin: 'https://evil.example', ...forged }, console_events), '403', 'another site')
}

const plane = (t: Test) => controlPlane(t, { trusted_proxies: ['127.0.0.1'], operator_sources: ['loopback'] })

t.test('behind nginx as the guide configures it, clients are known by their addresses', async t => {
  const w = await plane(t)
  const port = await freePort()
  const server = example('nginx', {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    'voice.example.com': NAME,
    '/etc/ssl/strowger/fullchain.pem': cert ?? '',
    '/etc/ssl/strowger/privkey.pem': key ?? '',
    '127.0.0.1:8080': new URL(w.base_url).host,
  })
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${name};`)
  const folder = t.testdir({
    'nginx.conf': `events {}\nhttp {\naccess_log off;\n${temporary.join('\n')}\n${server}}\n`,
  })
  const alone = 'daemon off; master_process off; pid nginx.pid; error_log stderr;'
  const words = ['-p', folder, '-e', 'stderr', '-c', 'nginx.conf', '-g', alone]
  const path = `${process.env['PATH']}:/usr/sbin`
  await through(t, w, spawn('nginx', words, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: path } }), port)
})

t.test('behind Caddy as the guide configures it, clients are known by their addresses', async t => {
  const w = await plane(t)
  const port = await freePort()
  const site = example('caddy', {
    'voice.example.com {': `${NAME}:${port} {\n  bind 127.0.0.1\n  tls ${cert} ${key}`,
    '127.0.0.1:8080': new URL(w.base_url).host,
  })
  const folder = t.testdir({ Caddyfile: `{\n  admin off\n  auto_https off\n}\n${site}` })
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const words = ['run', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile']
  await through(t, w, spawn('caddy', words, { stdio: ['ignore', 'ignore', 'pipe'], env }), port)
})
