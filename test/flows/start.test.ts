import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
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

/** Returns the fingerprint of the certificate that a port on this machine shows. */
const certificateOf = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    })
    socket.on('error', reject)
  })

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

t.test('a folder that holds no installation is refused, and stays as it was', async t => {
  const env = await settings(t)
  const folder = env['STROWGER_DATA'] ?? ''
  for (const words of [
    ['bootstrap', '--json'],
    ['call', '+2348030000002'],
    ['backup', join(tmpdir(), 'none.tar.gz')],
  ]) {
    const { code, stdout, stderr } = await strowger(words, env)
    t.match({ code, stdout }, { code: 1, stdout: '' }, words.join(' '))
    t.match(
      stderr,
      new RegExp(`^strowger: there is no installation in ${folder} [^\\n]*--data or STROWGER_DATA[^\\n]*\\n$`),
    )
  }
  t.same(readdirSync(folder), [])
})

t.test('a mistyped variable is refused with the one that was meant', async t => {
  const { code, stderr } = await strowger(['up'], { ...(await settings(t)), STROWGER_HTTP_PROT: '8081' })
  t.equal(code, 1)
  t.equal(stderr, 'strowger: STROWGER_HTTP_PROT is no variable of ours: did you mean STROWGER_HTTP_PORT?\n')
})

t.test('an address that this machine does not have leads to STROWGER_BIND', async t => {
  // RFC 5737 §3: no machine has an address of TEST-NET-3.
  const env = { ...(await settings(t)), STROWGER_HOST: '203.0.113.9', STROWGER_LOG: 'silent' }
  const { code, stderr } = await strowger(['up'], env)
  t.equal(code, 1)
  t.match(
    stderr,
    /^strowger: STROWGER_HOST=203\.0\.113\.9 is not an address of this machine .*set STROWGER_BIND to .*\n$/,
  )
  const doctor = await strowger(['doctor'], { ...env, STROWGER_BIND: '0.0.0.0' })
  t.equal(doctor.code, 0, doctor.stdout)
  t.match(doctor.stdout, /^WARN {2}http:\/\/203\.0\.113\.9:\d+ sends keys and passwords in clear/m)
  t.match(doctor.stdout, /^STROWGER_HOST +203\.0\.113\.9 +environment /m)
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

t.test('two platforms side by side: each is found by its folder, renews its certificates, and stops alone', async t => {
  const w = await world(t)
  await t.test('a second one on the same data is refused', async t => {
    const { code, stderr } = await strowger(['up'], { ...(await settings(t)), STROWGER_DATA: w.data_dir })
    t.equal(code, 1)
    t.match(stderr, /already running on .*STROWGER_DATA/)
    const doctor = await strowger(['doctor'], { ...(await settings(t)), STROWGER_DATA: w.data_dir })
    t.match(doctor, { code: 0, stdout: /ok {4}the platform runs \(process \d+\) and holds its ports/ })
    t.match(doctor.stdout, new RegExp(`^STROWGER_HTTP_PORT +${new URL(w.base_url).port} +running platform `, 'm'))
    t.match(doctor.stdout, new RegExp(`^WARN {2}STROWGER_HTTP_PORT is ${new URL(w.base_url).port} in the running`, 'm'))
  })
  const given = await settings(t)
  const env: Record<string, string> = {
    ...given,
    STROWGER_BASE_URL: `http://127.0.0.1:${given['STROWGER_HTTP_PORT']}`,
    STROWGER_HTTPS_PORT: String(await freePort()),
  }
  const data_dir = env['STROWGER_DATA'] ?? ''
  // The disk of its log is full all the while.
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const child = spawn('bin/strowger', ['up'], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', full],
  })
  const exited = new Promise<number | null>(resolve => child.once('exit', resolve))
  t.teardown(() => child.kill('SIGKILL'))
  let printed = ''
  child.stdout?.on('data', chunk => {
    printed += chunk
  })
  // A renewal tool may come at any moment.
  await until('it starts', () => existsSync(join(data_dir, 'run/supervisor.pid')))
  child.kill('SIGHUP')
  await until('Strowger is up', () => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`it ended: ${printed}`)
    return printed.includes('Strowger is up')
  })
  t.notOk(existsSync(join(data_dir, 'run', 'sandbox.pid')), 'the sandbox carrier sleeps until its first call')
  const base = `http://127.0.0.1:${env['STROWGER_HTTP_PORT']}`
  t.equal((await fetch(`${base}/healthz`)).status, 200)
  await until('ready', async () => (await fetch(`${base}/readyz`)).status === 200)
  await until('all processes are in the metrics', async () => {
    const metrics = await (await fetch(`${base}/metrics`)).text()
    return ['edge', 'media', 'signaling', 'control'].every(name =>
      metrics.includes(`process_cpu_seconds_total{process="${name}"}`),
    )
  })

  await t.test('bootstrap prints the documented fields: the same project each time, with a key for a day', async t => {
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
    const keys = await w.state.db.selectFrom('api_key').select(['name', 'created_at', 'expires_at']).execute()
    t.equal(keys.length, 2, 'of the first start and of bootstrap')
    for (const { name, created_at, expires_at } of keys) {
      t.match(name, /^bootstrap /)
      t.equal(Date.parse(expires_at ?? '') - Date.parse(created_at), 24 * 3600 * 1000)
    }
  })

  await t.test('a command finds the platform of its folder, whatever the shell says of ports', async t => {
    const ports_of_the_other = { STROWGER_HTTP_PORT: new URL(w.base_url).port, STROWGER_SIP_PORT: String(w.sip.port) }
    const told = await strowger(['bootstrap', '--json', '--data', data_dir], ports_of_the_other)
    t.match(JSON.parse(told.stdout), { base_url: base, sip: { udp: Number(env['STROWGER_SIP_PORT']) } })
    const placed = await strowger(['call', '+2348030000002', '--data', data_dir], ports_of_the_other)
    const [sid = 'none'] = /^CA[0-9a-f]{32}/m.exec(placed.stdout) ?? []
    t.match(placed, { code: 1, stdout: /busy/ }, placed.stderr)
    t.match(await strowger(['ladder', sid], { STROWGER_DATA: data_dir }), { code: 0 })
    t.match(await strowger(['ladder', sid], { STROWGER_DATA: w.data_dir }), { code: 1, stderr: /there is no call/ })
  })

  await t.test(
    'the sandbox carrier runs from its first call on, sleeps without work, and takes the next call',
    async t => {
      const file = join(data_dir, 'run', 'sandbox.pid')
      const slept = Number(readFileSync(file, 'utf8'))
      // The supervisor ends it so, when it says that it has had no call for a while.
      process.kill(slept, 'SIGTERM')
      await until('it sleeps', () => !existsSync(file))
      t.match(await strowger(['call', '+2348030000002'], env), { code: 1, stdout: /busy/ })
      t.not(Number(readFileSync(file, 'utf8')), slept)
      process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL')
      await until('it sleeps again', () => !existsSync(file))
      t.match(await strowger(['call', '+2348030000002'], env), { code: 1, stdout: /busy/ }, 'after a crash')
    },
  )

  await t.test('a command sends no token to a platform of another folder, which has taken the port', async t => {
    const file = join(data_dir, 'run', 'platform.json')
    const own = readFileSync(file, 'utf8')
    writeFileSync(file, own.replace(`"http": "${base}"`, `"http": "${w.base_url}"`))
    const { code, stdout, stderr } = await strowger(['call', '+2348030000002'], env)
    writeFileSync(file, own)
    t.match({ code, stdout }, { code: 1, stdout: '' })
    t.match(
      stderr,
      new RegExp(`^strowger: what answers at ${w.base_url} is not the platform of ${data_dir}: nothing was sent`),
    )
    const { body } = await w.voice('GET', '/Calls.json')
    t.same(body.calls, [])
  })

  const pids = ['edge', 'media', 'signaling', 'control', 'sandbox'].map(name =>
    Number(readFileSync(join(data_dir, 'run', `${name}.pid`), 'utf8')),
  )
  const shown = async () => {
    const ports = ['STROWGER_HTTPS_PORT', 'STROWGER_SIPS_PORT', 'STROWGER_WS_PORT'].map(name => Number(env[name]))
    return Promise.all(ports.map(certificateOf))
  }
  const good = new X509Certificate(readFileSync('fixtures/tls/good.pem')).fingerprint256
  t.notOk((await shown()).includes(good))
  const tls = join(env['STROWGER_DATA'] ?? '', 'tls')
  copyFileSync('fixtures/tls/leaf.key', join(tls, 'key.pem'))
  copyFileSync('fixtures/tls/good.pem', join(tls, 'cert.pem'))
  child.kill('SIGHUP')
  await until('API, SIP and WSS show the renewed certificate', async () => (await shown()).every(one => one === good))
  t.ok(
    pids.every(pid => existsSync(`/proc/${pid}`)),
    'no process was started again',
  )
  const edge_pid = (): number => Number(readFileSync(join(data_dir, 'run', 'edge.pid'), 'utf8'))
  process.kill(edge_pid(), 'SIGKILL')
  await until('the edge runs again, although nobody can be told', () => !pids.includes(edge_pid()))
  child.kill('SIGTERM')
  t.equal(await exited, 0)
  for (const pid of pids) t.notOk(existsSync(`/proc/${pid}`), `process ${pid} is gone`)
  t.equal((await fetch(`${w.base_url}/healthz`)).status, 200, 'the other runs on')
  t.notOk(existsSync(join(data_dir, 'run', 'platform.json')))
  t.match(await strowger(['call', '+2348030000002'], env), { code: 1, stderr: /no platform runs on/ })
})

t.test('a supervisor killed during its start leaves no process behind', async t => {
  const env = await settings(t)
  const pids = ['media', 'edge', 'signaling'].map(name => join(env['STROWGER_DATA'] ?? '', 'run', `${name}.pid`))
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
