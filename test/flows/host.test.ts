import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { hindranceOfConfinement } from '../../bin/confinement.ts'
import { standing } from '../../bin/least-privilege.ts'
import { loadConfig } from '../../core/runtime/config.ts'
import { tone, wavBytes } from '../support/audio.ts'
import { strowger } from '../support/child.ts'
import t from '../support/harness/index.ts'
import { freeBlock, freePort, UNHEARD_PORT } from '../support/ports.ts'
import { TRACEABLE } from '../support/tracing.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'

// What other users of the machine can see of a platform: files, output, and the environment of its processes.

const MASTER_KEY = 'ab'.repeat(32)
const PROCESSES = ['edge', 'media', 'sandbox', 'signaling', 'control'] as const
/** Settings of the platform, and other variables of the shell that starts it. */
const SECRETS = {
  STROWGER_MASTER_KEY: MASTER_KEY,
  STROWGER_SMTP_URL: 'smtp://user:secret-of-mail@127.0.0.1:2525',
  STROWGER_SMS_TOKEN: 'secret-of-texts',
  STROWGER_S3_ENDPOINT: `http://127.0.0.1:${UNHEARD_PORT}`,
  STROWGER_S3_BUCKET: 'bucket',
  STROWGER_S3_ACCESS_KEY: 'secret-of-storage-access',
  STROWGER_S3_SECRET_KEY: 'secret-of-storage-key',
  AWS_SECRET_ACCESS_KEY: 'secret-of-somebody-else',
}

// In a folder that only our user may traverse, like /root.
const closed = t.testdir()
chmodSync(closed, 0o700)
const data_dir = join(closed, 'data')
mkdirSync(data_dir)
const tree = join(closed, 'tree')
mkdirSync(tree, { mode: 0o700 })
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  packages: Record<string, { dev?: true }>
}
const needed = Object.keys(packages).filter(
  name => /^node_modules\/(?!.*node_modules)/.test(name) && !packages[name]?.dev,
)
execFileSync('cp', [
  '-al',
  '--parents',
  'build/bundle',
  'build/console',
  'native',
  'package.json',
  ...needed.filter(name => existsSync(name)),
  tree,
])
const rtp = await freeBlock(40)
const settings = {
  PATH: process.env['PATH'] ?? '',
  HOME: data_dir,
  STROWGER_DATA: data_dir,
  STROWGER_HTTP_PORT: String(await freePort()),
  STROWGER_SIP_PORT: String(await freePort()),
  STROWGER_SIPS_PORT: String(await freePort()),
  STROWGER_WS_PORT: String(await freePort()),
  STROWGER_RTP_PORTS: `${rtp.first}-${rtp.last}`,
  // Each process takes a free port for its debugger, by which the test makes it try what it must not do.
  NODE_OPTIONS: '--inspect-port=127.0.0.1:0',
  ...SECRETS,
  ...TRACEABLE,
}

/** What the platform that runs has printed. */
let printed = ''

/** Runs the platform as a shell with umask 022 does. Resolves with its whole output. */
async function platform(whileUp: () => Promise<unknown> | unknown): Promise<string> {
  const command = [
    '--pdeathsig',
    'TERM',
    'sh',
    '-c',
    `umask 022; exec ${process.execPath} ${tree}/build/bundle/bin/main.js up`,
  ]
  const child = spawn('setpriv', command, { env: settings, stdio: ['ignore', 'pipe', 'pipe'] })
  printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', text => {
      printed += text
    })
  const ended = new Promise(resolve => child.once('close', resolve))
  try {
    await until('Strowger is up', () => {
      if (child.exitCode !== null) throw new Error(`the platform ended: ${printed}`)
      return printed.includes('Strowger is up')
    })
    await whileUp()
  } finally {
    child.kill('SIGTERM')
    await ended
  }
  return printed
}

const pidOf = (name: string): number => Number(readFileSync(join(data_dir, 'run', `${name}.pid`), 'utf8'))
const fileOf = (name: string, file: string): string => readFileSync(`/proc/${pidOf(name)}/${file}`, 'latin1')

const web = await webServer(t, { '/tone.wav': { type: 'audio/wav', body: wavBytes(8000, tone(700, 500)) } })

/**
 * Places a call that hears speech and a file, and leaves a message, so that audio is made, fetched, decoded and
 * recorded.
 */
async function recordedCall(): Promise<Buffer> {
  const { url } = web
  const { stdout } = await strowger(['bootstrap', '--json'], settings).ended
  const { base_url, account_sid, auth_token, numbers } = JSON.parse(stdout)
  const account = `${base_url}/2010-04-01/Accounts/${account_sid}`
  const headers = { authorization: `Basic ${Buffer.from(`${account_sid}:${auth_token}`).toString('base64')}` }
  const record = '<Record maxLength="2" playBeep="false" timeout="0" trim="do-not-trim"/>'
  const InlineMarkup = `<Response><Say>Hello.</Say><Play>${url}/tone.wav</Play>${record}</Response>`
  const body = new URLSearchParams({ From: numbers[0], To: '+2348030001234', InlineMarkup })
  const made = await fetch(`${account}/Calls.json`, { method: 'POST', headers, body })
  const call = (await made.json()) as { sid: string }
  const sid = await until('the message is recorded', async () => {
    const { recordings } = (await (
      await fetch(`${account}/Calls/${call.sid}/Recordings.json`, { headers })
    ).json()) as {
      recordings: { sid: string; status: string }[]
    }
    return recordings.find(one => one.status === 'completed')?.sid
  })
  return Buffer.from(await (await fetch(`${account}/Recordings/${sid}.wav`, { headers })).arrayBuffer())
}

/** Returns the process that replaces a killed one, once it has switched to its user. */
async function restarted(name: string): Promise<string> {
  const pid = pidOf(name)
  const uid = (): string | undefined => /^Uid:.*$/m.exec(fileOf(name, 'status'))?.[0]
  const before = uid()
  process.kill(pid, 'SIGKILL')
  return until(`${name} is ${before} again`, () => (pidOf(name) !== pid && uid() === before ? before : undefined))
}

/** Returns the command lines of the processes that a process has started. */
const childrenOf = (name: string): string[] =>
  fileOf(name, `task/${pidOf(name)}/children`)
    .trim()
    .split(' ')
    .filter(Boolean)
    .flatMap(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
      } catch {
        // It ended after the list was read.
        return []
      }
    })

/** Returns the output of a program that runs as espeak-ng does. */
function asProgram(...command: string[]): string {
  const as = ['--reuid', '60803', '--regid', '60803', '--clear-groups']
  return at.who === 'own_users' ? spawnSync('setpriv', [...as, ...command], { encoding: 'utf8' }).stdout : ''
}

/** Has a running process evaluate JavaScript by its debugger, as one would that has taken it over. */
async function within(name: string, expression: string): Promise<unknown> {
  // Whole lines: a URL may come in parts.
  const offered = (): string[] => [...printed.matchAll(/listening on (ws:\S+)\n/g)].map(([, url]) => url ?? '')
  const before = offered().length
  process.kill(pidOf(name), 'SIGUSR1')
  const debuggers = new WebSocket(await until(`${name} has a debugger`, () => offered()[before]))
  try {
    await once(debuggers, 'open')
    const params = { expression, returnByValue: true }
    debuggers.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params }))
    const [answer] = await once(debuggers, 'message')
    return JSON.parse(String(answer)).result.result.value
  } finally {
    debuggers.terminate()
  }
}

/** Tries what a process that strangers reach must not do. Returns the code of each error. */
const TRIES = `(() => {
  const [fs, { spawnSync }] = ['fs', 'child_process'].map(name => process.getBuiltinModule(name))
  const attempt = work => { try { work(); return 'done' } catch (error) { return error.code } }
  const data = ${JSON.stringify(data_dir)}
  return {
    key: attempt(() => fs.readFileSync(data + '/master.key')),
    database: attempt(() => fs.openSync(data + '/strowger.sqlite', 'r')),
    temporary: attempt(() => fs.writeFileSync('/tmp/strowger-planted', '')),
    program: spawnSync('/bin/true').error?.code,
    itself: spawnSync(process.execPath, ['--version']).error?.code,
  }
})()`

const threadsOf = (name: string): string[] =>
  readdirSync(`/proc/${pidOf(name)}/task`).map(id => fileOf(name, `task/${id}/status`))

function filesOpen(name: string): string[] {
  return readdirSync(`/proc/${pidOf(name)}/fd`).flatMap(fd => {
    try {
      return readlinkSync(`/proc/${pidOf(name)}/fd/${fd}`)
    } catch {
      // The file was closed after the folder was read.
      return []
    }
  })
}

const at = standing(loadConfig(settings))
const environments = new Map<string, string>()
const statuses = new Map<string, string>()
const threads = new Map<string, string[]>()
const opened = new Map<string, string[]>()
const modes = new Map<string, number>()
const tried = new Map<string, unknown>()
let message: Buffer = Buffer.alloc(0)
let owner = -1
const children = new Map<string, string[]>()
let reached = ''
const libraries = new Map<string, string>()
const first = await platform(async () => {
  message = await recordedCall()
  const [day = ''] = readdirSync(join(data_dir, 'recordings'))
  owner = statSync(join(data_dir, 'recordings', day)).uid
  reached = asProgram('ls', join(data_dir, 'recordings')) + asProgram('ls', `/proc/${pidOf('media')}/fd`)
  for (const name of ['media', 'sandbox', 'supervisor']) children.set(name, childrenOf(name))
  for (const name of ['supervisor', 'control']) libraries.set(name, fileOf(name, 'maps'))
  for (const name of PROCESSES) {
    environments.set(name, fileOf(name, 'environ'))
    statuses.set(name, fileOf(name, 'status'))
    opened.set(name, filesOpen(name))
    threads.set(name, threadsOf(name))
  }
  for (const name of ['edge', 'media', 'sandbox']) tried.set(name, await within(name, TRIES))
  modes.set('.', statSync(data_dir).mode)
  for (const path of readdirSync(data_dir, { recursive: true, encoding: 'utf8' })) {
    // A file may be gone, such as a plain recording that has just been encrypted.
    const found = lstatSync(join(data_dir, path), { throwIfNoEntry: false })
    // A symbolic link has no mode of its own.
    if (found && !found.isSymbolicLink()) modes.set(path, found.mode)
  }
})
const second = await platform(async () => {
  for (const name of ['edge', 'media']) await restarted(name)
})

t.test('no file of a running platform is readable by other users of the machine', async t => {
  t.ok(modes.has('strowger.sqlite-wal') && modes.has('run/media.sock') && modes.has('tls'))
  const open = [...modes].filter(([, mode]) => (mode & 0o077) !== 0).map(([path]) => path)
  t.same(open, [])
})

t.test('no process exposed to strangers has another process’s secret in its environment', async t => {
  for (const name of ['edge', 'media', 'sandbox'])
    for (const [variable, secret] of Object.entries(SECRETS).filter(([, value]) => value.includes('secret')))
      t.notOk(environments.get(name)?.includes(secret), `${name}: ${variable}`)
  const holders = PROCESSES.filter(name => environments.get(name)?.includes(MASTER_KEY))
  t.same(holders, ['signaling', 'control'])
  for (const name of PROCESSES)
    t.notOk(environments.get(name)?.includes(SECRETS.AWS_SECRET_ACCESS_KEY), `${name} inherits nothing of the shell`)
})

t.test('processes exposed to strangers run as separate users without capabilities, in every thread', async t => {
  if (at.who !== 'own_users') return t.comment(`not here: ${JSON.stringify(at)}`)
  const users = Object.entries({ edge: 60_800, media: 60_801, sandbox: 60_802 })
  const none = ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'].map(set => `${set}:\t${'0'.repeat(16)}`)
  for (const [name, user] of users) {
    const ids = ['Uid', 'Gid'].map(what => `${what}:${`\t${user}`.repeat(4)}`)
    for (const status of threads.get(name) ?? [])
      t.same(
        status.split('\n').filter(line => /^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb)|NoNewPrivs):/.test(line)),
        [...ids, 'Groups:\t ', ...none, 'NoNewPrivs:\t1'],
        name,
      )
    t.ok((threads.get(name)?.length ?? 0) > 1)
  }
  t.equal(owner, 60_801, 'recordings belong to who writes them')
})

t.test(
  'a process that strangers reach, once taken over, opens no secret, plants no file and starts no program',
  async t => {
    const hindrance = hindranceOfConfinement()
    if (hindrance !== null) return t.comment(`not here: ${hindrance}`)
    const refused = { key: 'EACCES', database: 'EACCES', temporary: 'EACCES', program: 'EPERM', itself: 'EPERM' }
    for (const name of ['edge', 'media', 'sandbox']) {
      t.same(tried.get(name), refused, name)
      for (const status of threads.get(name) ?? []) t.match(status, /^Seccomp:\t2$/m, name)
    }
  },
)

t.test('the user of programs such as espeak-ng can access nothing, and no process is kept for them', async t => {
  if (at.who !== 'own_users') return t.comment(`not here: ${JSON.stringify(at)}`)
  for (const name of ['media', 'sandbox']) t.same(children.get(name), [], name)
  t.equal(reached, '', 'it comes neither to recordings nor into the process that has them made')
})

t.test('calls are heard and recorded in a folder that only root can access', async t => {
  t.same(
    web.requests.map(({ path }) => path),
    ['/tone.wav'],
  )
  t.equal(message.subarray(0, 4).toString(), 'RIFF')
  const sound = message.subarray(44)
  t.ok(sound.length > 16_000 && sound.some(byte => byte !== sound[0]), `${sound.length} bytes`)
})

t.test('no process exposed to strangers can read a key, a foreign recording or the database', async t => {
  for (const name of ['edge', 'media', 'sandbox'])
    t.same(
      (opened.get(name) ?? ['?']).filter(file => /master\.key|console-password|key\.pem|\.wav/.test(file)),
      [],
      name,
    )
  for (const name of ['edge', 'media', 'sandbox'])
    t.notOk(
      (opened.get(name) ?? ['strowger.sqlite']).some(file => file.includes('strowger.sqlite')),
      `${name} has no database open`,
    )
})

t.test('the supervisor holds no database, and what has prepared the state is gone', async t => {
  t.match(libraries.get('control'), 'better_sqlite3.node')
  t.notMatch(libraries.get('supervisor'), 'better_sqlite3.node')
  const kept = children.get('supervisor') ?? []
  for (const name of PROCESSES)
    t.ok(
      kept.some(line => line.includes(`/${name}/process.js`)),
      name,
    )
  t.notOk(kept.some(line => line.includes('prepare.js')))
})

t.test('the first start prints the credentials; later starts and logs print no secret', async t => {
  const made = JSON.parse(await strowger(['bootstrap', '--json'], settings).ended.then(({ stdout }) => stdout))
  const link = /STROWGER_DRACHTIO_SECRET=([^\0]+)/.exec(environments.get('signaling') ?? '')?.[1] ?? ''
  t.not(link, '')
  t.ok(first.includes(made.auth_token) && first.includes(made.console.password))
  t.match(first, /API key {4}sk_live_/)
  const api_keys = [...first.matchAll(/sk_live_[A-Z2-7]{12}_[0-9a-f]{32}/g)].map(([key]) => key)
  for (const secret of [made.auth_token, made.console.password, ...api_keys])
    t.notOk(second.includes(secret), 'the second start keeps it to itself')
  for (const secret of [link, ...Object.values(SECRETS)].filter(value => value.includes('secret') || value.length > 31))
    t.notOk(first.includes(secret) || second.includes(secret), 'never printed')
  const logged = first.split('\n').filter(line => line.startsWith('{'))
  for (const secret of [made.auth_token, made.console.password, ...api_keys])
    t.notOk(logged.some(line => line.includes(secret)))
})

t.test('a damaged database stops the start with an explanation', async t => {
  for (const [how, damage] of [
    ['a page in its middle', (bytes: Buffer) => bytes.fill(0xa5, 8 * 4096, 40 * 4096)],
    ['its header', (bytes: Buffer) => bytes.fill(0xa5, 0, 100)],
  ] as const) {
    const folder = t.testdir()
    const sound = readFileSync(join(data_dir, 'strowger.sqlite'))
    writeFileSync(join(folder, 'strowger.sqlite'), damage(sound))
    const { code, stderr } = await strowger(['up'], { ...settings, STROWGER_DATA: folder }).ended
    t.equal(code, 1, how)
    t.match(stderr, /^strowger: the database .+strowger\.sqlite is damaged \(.+\): put a backup in its place/)
  }
})

t.test('a backup is readable only by its owner from its first byte', async t => {
  const target = join(t.testdir(), 'strowger.tar.gz')
  const { ended } = strowger(['backup', target], settings)
  const made = await until('the archive is being written', () =>
    [`${target}.new`, target].map(file => statSync(file, { throwIfNoEntry: false })).find(found => found !== undefined),
  )
  t.equal(made.mode & 0o777, 0o600)
  t.equal((await ended).code, 0)
  t.equal(statSync(target).mode & 0o777, 0o600)
})
