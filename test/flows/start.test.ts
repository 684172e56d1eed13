import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAIN } from '../../bench/up.ts'
import { VARIABLES } from '../../core/runtime/config.ts'
import { type Ended, strowger as run } from '../support/child.ts'
import t from '../support/harness/index.ts'
import { freeBlock, freePort } from '../support/ports.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// Starting, refusing to start, and stopping, as an operator sees them.

const strowger = (words: readonly string[], env: Record<string, string>): Promise<Ended> => run(words, env).ended

async function settings(t: { teardown(work: () => void): void }): Promise<Record<string, string>> {
  const data = mkdtempSync(join(tmpdir(), 'strowger-start-'))
  t.teardown(() => rmSync(data, { recursive: true, force: true }))
  const rtp = await freeBlock(40)
  return {
    STROWGER_DATA: data,
    STROWGER_HTTP_PORT: String(await freePort()),
    STROWGER_SIP_PORT: String(await freePort()),
    STROWGER_SIPS_PORT: String(await freePort()),
    STROWGER_WS_PORT: String(await freePort()),
    STROWGER_RTP_PORTS: `${rtp.first}-${rtp.last}`,
  }
}

t.test('an occupied port is reported in one sentence, with exit code 1', async t => {
  for (const variable of ['STROWGER_HTTP_PORT', 'STROWGER_SIP_PORT', 'STROWGER_SIPS_PORT', 'STROWGER_WS_PORT']) {
    const env = await settings(t)
    const holder = createServer()
    await new Promise<void>(resolve => holder.listen(Number(env[variable]), '127.0.0.1', resolve))
    const { code, stderr } = await strowger(['up'], { ...env, STROWGER_LOG: 'silent' })
    holder.close()
    t.equal(code, 1, variable)
    t.match(
      stderr.split('\n').filter(line => line.startsWith('strowger:'))[0],
      new RegExp(`${env[variable]}.*${variable}`),
    )
  }
})

t.test('an invalid variable is reported, with exit code 1', async t => {
  const { code, stderr } = await strowger(['up'], { ...(await settings(t)), STROWGER_RTP_PORTS: 'many' })
  t.equal(code, 1)
  t.match(stderr, /^strowger: STROWGER_RTP_PORTS=many: .+\n$/)
})

t.test('bootstrap prints the documented fields: the same project each time, with a new key', async t => {
  const env = await settings(t)
  const [first, second] = [await strowger(['bootstrap', '--json'], env), await strowger(['bootstrap', '--json'], env)]
  const [a, b] = [JSON.parse(first.stdout), JSON.parse(second.stdout)]
  t.same(Object.keys(a).sort(), [
    'account_sid',
    'api_key',
    'auth_token',
    'base_url',
    'console',
    'numbers',
    'project_id',
    'sip',
  ])
  t.match(a, {
    base_url: `http://127.0.0.1:${env['STROWGER_HTTP_PORT']}`,
    project_id: /^prj_[0-9a-f-]{36}$/,
    api_key: /^sk_live_[A-Z2-7]{12}_[0-9a-f]{32}$/,
    account_sid: /^AC[0-9a-f]{32}$/,
    auth_token: /^sk_live_[A-Za-z0-9]{32}$/,
    console: { email: /@/, password: /.{12,}/ },
    sip: {
      host: '127.0.0.1',
      udp: Number(env['STROWGER_SIP_PORT']),
      tcp: Number(env['STROWGER_SIP_PORT']),
      tls: Number(env['STROWGER_SIPS_PORT']),
      ws: Number(env['STROWGER_WS_PORT']),
    },
  })
  t.equal(a.numbers.length, 10)
  t.notMatch(a.api_key, b.api_key)
  t.same({ ...a, api_key: '' }, { ...b, api_key: '' })
})

t.test('.env.example names every variable with its default', async t => {
  const example = readFileSync('.env.example', 'utf8')
  for (const { name, default: fallback } of Object.values(VARIABLES))
    t.match(example, new RegExp(`^${name}=${fallback.replaceAll('.', '\\.')}$`, 'm'), name)
})

t.test('doctor reports what is in order on the machine', async t => {
  const { code, stdout } = await strowger(['doctor'], await settings(t))
  t.equal(code, 0, stdout)
  t.match(stdout, /ok {4}native media plane is built/)
})

t.test('a second platform on the same data is refused', async t => {
  const w = await world(t)
  const { code, stderr } = await strowger(['up'], { ...(await settings(t)), STROWGER_DATA: w.data_dir })
  t.equal(code, 1)
  t.match(stderr, /already running on .*STROWGER_DATA/)
  const doctor = await strowger(['doctor'], { ...(await settings(t)), STROWGER_DATA: w.data_dir })
  t.match(doctor, { code: 0, stdout: /ok {4}the platform runs \(process \d+\) and holds its ports/ })
})

t.test('reports health, readiness and metrics, and SIGTERM stops every process', async t => {
  const env = await settings(t)
  const child = spawn('bin/strowger', ['up'], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = new Promise<number | null>(resolve => child.once('exit', resolve))
  t.teardown(() => child.kill('SIGKILL'))
  let printed = ''
  child.stdout.on('data', chunk => {
    printed += chunk
  })
  await until('Strowger is up', () => printed.includes('Strowger is up'))
  const base = `http://127.0.0.1:${env['STROWGER_HTTP_PORT']}`
  t.equal((await fetch(`${base}/healthz`)).status, 200)
  await until('ready', async () => (await fetch(`${base}/readyz`)).status === 200)
  await until('all processes are in the metrics', async () => {
    const metrics = await (await fetch(`${base}/metrics`)).text()
    return ['edge', 'media', 'signaling', 'control', 'sandbox'].every(name =>
      metrics.includes(`process_cpu_seconds_total{process="${name}"}`),
    )
  })
  const pids = ['edge', 'media', 'signaling', 'control', 'sandbox'].map(name =>
    Number(readFileSync(join(env['STROWGER_DATA'] ?? '', 'run', `${name}.pid`), 'utf8')),
  )
  child.kill('SIGTERM')
  t.equal(await exited, 0)
  for (const pid of pids) t.notOk(existsSync(`/proc/${pid}`), `process ${pid} is gone`)
})

t.test('a supervisor killed during its start leaves no process behind', async t => {
  const env = await settings(t)
  const pids = ['media', 'edge', 'sandbox', 'signaling'].map(name =>
    join(env['STROWGER_DATA'] ?? '', 'run', `${name}.pid`),
  )
  const child = spawn(process.execPath, [MAIN, 'up'], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: 'ignore',
  })
  const exited = new Promise(resolve => child.once('exit', resolve))
  t.teardown(() => child.kill('SIGKILL'))
  await until('signaling, the last of them, is on its way', () => pids.every(existsSync))
  const started = pids.map(file => Number(readFileSync(file, 'utf8')))
  child.kill('SIGKILL')
  await exited
  await until('all have ended', () => started.every(pid => !existsSync(`/proc/${pid}`)))
  t.pass('those that ran, and the one that started')
})
