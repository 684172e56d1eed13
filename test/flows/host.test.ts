import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { strowger, untouched } from '../support/child.ts'
import { freeBlock, freePort, UNHEARD_PORT } from '../support/ports.ts'
import { until } from '../support/wait.ts'

// What a platform shows to others on its machine: files, output, and the environment of its processes.

const MASTER_KEY = 'ab'.repeat(32)
const PROCESSES = ['edge', 'media', 'sandbox', 'signaling', 'control'] as const
/** What an operator sets for the platform, or happens to have in the shell that starts it. */
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

const data_dir = t.testdir()
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
  ...SECRETS,
}

/** Runs the platform as a shell with umask 022 would, and resolves with all that it printed. */
async function platform(whileUp: () => Promise<unknown> | unknown): Promise<string> {
  const command = ['--pdeathsig', 'TERM', 'sh', '-c', `umask 022; exec ${process.execPath} build/bin/main.js up`]
  const child = spawn(...untouched('setpriv', command), { env: settings, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
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

function filesOf(name: string): string[] {
  const folder = `/proc/${pidOf(name)}/fd`
  return readdirSync(folder).flatMap(fd => {
    try {
      return [readlinkSync(join(folder, fd))]
    } catch {
      // Closed since the folder was read.
      return []
    }
  })
}

const environments = new Map<string, string>()
const statuses = new Map<string, string>()
const files = new Map<string, string[]>()
const modes = new Map<string, number>()
const first = await platform(() => {
  for (const name of PROCESSES) {
    environments.set(name, fileOf(name, 'environ'))
    statuses.set(name, fileOf(name, 'status'))
    files.set(name, filesOf(name))
  }
  modes.set('.', statSync(data_dir).mode)
  for (const path of readdirSync(data_dir, { recursive: true, encoding: 'utf8' }))
    modes.set(path, statSync(join(data_dir, path)).mode)
})
const second = await platform(() => undefined)

t.test('no file of a platform that runs is open to others of the machine', async t => {
  t.ok(modes.has('strowger.sqlite-wal') && modes.has('run/media.sock') && modes.has('tls'))
  const open = [...modes].filter(([, mode]) => (mode & 0o077) !== 0).map(([path]) => path)
  t.same(open, [])
})

t.test('no process that meets strangers has a secret of others in its environment', async t => {
  for (const name of ['edge', 'media', 'sandbox'])
    for (const [variable, secret] of Object.entries(SECRETS).filter(([, value]) => value.includes('secret')))
      t.notOk(environments.get(name)?.includes(secret), `${name}: ${variable}`)
  const holders = PROCESSES.filter(name => environments.get(name)?.includes(MASTER_KEY))
  t.same(holders, ['signaling', 'control'])
  for (const name of PROCESSES)
    t.notOk(environments.get(name)?.includes(SECRETS.AWS_SECRET_ACCESS_KEY), `${name} inherits nothing of the shell`)
})

t.test('those that meet strangers keep no right of root but what their sockets and threads need', async t => {
  // Bits of linux/capability.h: NET_BIND_SERVICE, NET_RAW, IPC_LOCK, SYS_NICE.
  const [bind, raw, lock, nice] = [1n << 10n, 1n << 13n, 1n << 14n, 1n << 23n]
  const kept = { edge: bind, media: bind | raw | lock | nice, sandbox: 0n }
  for (const [name, most] of Object.entries(kept)) {
    const status = statuses.get(name) ?? ''
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
      t.equal(BigInt(`0x${new RegExp(`^${set}:\\s+(\\w+)$`, 'm').exec(status)?.[1]}`) & ~most, 0n, `${name} ${set}`)
    if (process.geteuid?.() === 0) t.match(status, /^NoNewPrivs:\s+1$/m, `${name} gains none by a program`)
    t.notOk(
      files.get(name)?.some(file => /master\.key|console-password/.test(file)),
      `${name} has no key open`,
    )
  }
  for (const name of ['media', 'sandbox'])
    t.notOk(
      files.get(name)?.some(file => file.includes('strowger.sqlite')),
      `${name} has no database open`,
    )
})

t.test('the first start shows what a newcomer needs, later ones and the logs show no secret', async t => {
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

t.test('a damaged database stops the start with a sentence', async t => {
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

t.test('a backup is its owner’s alone from its first byte', async t => {
  const target = join(t.testdir(), 'strowger.tar.gz')
  const { ended } = strowger(['backup', target], settings)
  const made = await until('the archive is being written', () =>
    [`${target}.new`, target].map(file => statSync(file, { throwIfNoEntry: false })).find(found => found !== undefined),
  )
  t.equal(made.mode & 0o777, 0o600)
  t.equal((await ended).code, 0)
  t.equal(statSync(target).mode & 0o777, 0o600)
})
