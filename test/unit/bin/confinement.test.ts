import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  confining,
  confiningPrograms,
  hindranceOfConfinement,
  LAUNCHER,
  librariesIn,
  makeWritable,
} from '../../../bin/confinement.ts'
import { bareFile } from '../../../core/runtime/bare-child.ts'
import { programsRunner } from '../../../core/runtime/program-runner.ts'
import t from '../../support/harness/index.ts'

// Programs of the tests' own user, started as the supervisor starts its processes: only the confinement keeps files
// from them. `test/flows/host.test.ts` asks the processes of a platform.

const hindrance = hindranceOfConfinement()
const PROCESSES = ['edge', 'media', 'sandbox'] as const

/** In a data folder; `run/backup-1` is what a backup copies there. */
const FILES = ['master.key', 'strowger.sqlite', 'tls/key.pem', 'run/backup-1/strowger.sqlite', 'run/supervisor.pid']

/** A data folder as a platform leaves it. It does not lie in the tree, whose build the processes may read. */
function place() {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-confinement-'))
  t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))
  for (const file of FILES) {
    mkdirSync(dirname(join(data_dir, file)), { recursive: true })
    writeFileSync(join(data_dir, file), 'secret')
  }
  const config = { data_dir, run_dir: join(data_dir, 'run'), tls: null, confinement: true }
  makeWritable(config)
  return { data_dir, config }
}

/** What a program prints that tries each of these, such as `readFileSync('…')`: 'done', or the code of the error. */
function attempts(by: readonly string[], tried: Readonly<Record<string, string>>): Record<string, string> {
  const script = `
    const [fs, { spawnSync }, { Worker }] = ['fs', 'child_process', 'worker_threads'].map(name => require(name))
    const spawned = (...words) => { const { error } = spawnSync(...words); if (error) throw error }
    const results = {}
    const attempt = (name, work) => {
      try { work(); results[name] = 'done' } catch (error) { results[name] = error.code }
    }
    ${Object.entries(tried)
      .map(([name, code]) => `attempt(${JSON.stringify(name)}, () => ${code})`)
      .join('\n')}
    new Worker('', { eval: true }).once('exit', code =>
      process.stdout.write(JSON.stringify({ ...results, thread: String(code) })),
    )`
  const [command = '', ...words] = [...by, process.execPath, '-e', script]
  return JSON.parse(execFileSync(command, words, { encoding: 'utf8' }))
}

for (const name of PROCESSES)
  t.test(`${name} reads no secret, writes to no file of others, signals nobody and starts no program`, async t => {
    if (hindrance !== null) return t.comment(`not here: ${hindrance}`)
    const { data_dir, config } = place()
    const at = (path: string): string => JSON.stringify(join(data_dir, path))
    const results = attempts(confining(name, config, {}), {
      key: `fs.readFileSync(${at('master.key')})`,
      database: `fs.openSync(${at('strowger.sqlite')}, 'r+')`,
      copy: `fs.readFileSync(${at('run/backup-1/strowger.sqlite')})`,
      pid: `fs.writeFileSync(${at('run/supervisor.pid')}, '2')`,
      listing: `fs.readdirSync(${at('.')})`,
      planted: `fs.writeFileSync(${at('planted')}, '')`,
      temporary: `fs.writeFileSync('/tmp/strowger-planted', '')`,
      program: `spawned('/bin/true')`,
      itself: `spawned(process.execPath, ['--version'])`,
      tls: `fs.readFileSync(${at('tls/key.pem')})`,
      recording: `fs.writeFileSync(${at('recordings/RE1.wav')}, '')`,
      system: `fs.readFileSync('/etc/hosts')`,
      signal: 'process.kill(process.ppid, 0)',
      journal: `fs.writeFileSync(${at('run/edge-0.journal')}, '')`,
    })
    const refused = ['key', 'database', 'copy', 'pid', 'listing', 'planted', 'temporary']
    for (const what of refused) t.equal(results[what], 'EACCES', what)
    for (const what of ['program', 'itself', 'signal']) t.equal(results[what], 'EPERM', what)
    const own = { tls: name === 'edge', journal: name === 'edge', recording: name === 'media', system: true }
    for (const [what, may] of Object.entries(own)) t.equal(results[what], may ? 'done' : 'EACCES', what)
    t.equal(results['thread'], '0', 'threads start')
    t.equal(readFileSync(join(data_dir, 'run/supervisor.pid'), 'utf8'), 'secret')
  })

/** Starts a program on a kernel that has no Landlock, as far as the program can tell. */
const WITHOUT_LANDLOCK = `
import ctypes, os, struct, sys
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_char_p)]
# landlock_create_ruleset (444) is answered with ENOSYS, and all else passes (linux/filter.h, linux/seccomp.h).
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7fff0000)]
packed = b''.join(struct.pack('HBBI', *one) for one in code)
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Filter(len(code), packed))):
    raise OSError(ctypes.get_errno(), 'no filter')
os.execv(sys.argv[1], [*sys.argv[1:-1], sys.executable, '-c', sys.argv[-1]])
`
/** Tries all ways to signal the process that started this one, and to limit it. Prints the code of each error. */
const SIGNALS = `
import errno, fcntl, json, os, resource, signal, socket
other, [one, _] = os.getppid(), socket.socketpair()
def attempt(work):
    try:
        work()
        return 'done'
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps({
    'other': attempt(lambda: os.kill(other, 0)),
    'group': attempt(lambda: os.kill(0, 0)),
    'all': attempt(lambda: os.kill(-1, 0)),
    'by_descriptor': attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(other), 0)),
    'by_socket': attempt(lambda: fcntl.fcntl(one, fcntl.F_SETOWN, other)),
    'which': attempt(lambda: fcntl.fcntl(one, 10, signal.SIGUSR1)),
    'limits': attempt(lambda: resource.prlimit(other, resource.RLIMIT_CORE)),
    'itself': attempt(lambda: os.kill(os.getpid(), 0)),
    'own_limits': attempt(lambda: resource.prlimit(0, resource.RLIMIT_CORE)),
}))
`

t.test('without Landlock too they signal no process of their user, whose debugger SIGUSR1 would open', async t => {
  const { seccomp } = JSON.parse(execFileSync(LAUNCHER, ['--check'], { encoding: 'utf8' }))
  if (!seccomp) return t.comment('not here: the kernel filters no system calls')
  const { config } = place()
  for (const name of PROCESSES) {
    const words = ['-c', WITHOUT_LANDLOCK, ...confining(name, config, {}), SIGNALS]
    const found = JSON.parse(execFileSync('python3', words, { encoding: 'utf8' }))
    const ways = ['other', 'group', 'all', 'by_descriptor', 'by_socket', 'which', 'limits']
    const refused = Object.fromEntries(ways.map(way => [way, 'EPERM']))
    t.same(found, { ...refused, itself: 'done', own_limits: 'done' }, name)
  }
})

t.test('the configured certificate is the edge’s alone, wherever it lies', async t => {
  if (hindrance !== null) return t.comment(`not here: ${hindrance}`)
  const { config } = place()
  // The folder `run/backup-1` stands for one elsewhere.
  const [cert_file, key_file] = ['tls/key.pem', 'run/backup-1/strowger.sqlite'].map(path => join(config.data_dir, path))
  const tls = { cert_file: cert_file ?? '', key_file: key_file ?? '' }
  const key = `fs.readFileSync(${JSON.stringify(tls.key_file)})`
  const found = PROCESSES.map(name => attempts(confining(name, { ...config, tls }, {}), { key })['key'])
  t.same(found, ['done', 'EACCES', 'EACCES'])
})

t.test('the programs that the supervisor runs read what they get, and nothing of the platform', async t => {
  if (hindrance !== null) return t.comment(`not here: ${hindrance}`)
  const { data_dir, config } = place()
  const { run } = programsRunner(confiningPrograms(config))
  const said = (file: string, files: string[] = []) =>
    run({
      id: 1,
      program: 'espeak-ng',
      args: ['-f', file, '--stdout'],
      run: { limit_ms: 60_000, max_bytes: 1 << 20, files },
    })
  const spoken = await said(bareFile(0), [Buffer.from('Hello').toString('base64')])
  t.ok(spoken.end.ok && Buffer.from(spoken.end.stdout, 'base64').length > 10_000, 'it speaks its file')
  const key = await said(join(data_dir, 'master.key'))
  t.equal(key.end.ok, false, 'it cannot read the master key aloud')
})

t.test('STROWGER_CONFINEMENT=off leaves the processes as they are', async t => {
  const { config } = place()
  const off = { ...config, confinement: false }
  t.same([confining('edge', off, {}), confiningPrograms(off)], [[], []])
})

t.test('libraries that Node.js has loaded from elsewhere may be read', async t => {
  const brew = '/home/linuxbrew/.linuxbrew/Cellar/icu4c/74.2/lib/libicui18n.so.74'
  const maps = [
    `7f0a00000000-7f0a00100000 r--p 00000000 fe:00 1111                       ${brew}.2`,
    `7f0a00100000-7f0a00200000 r-xp 00100000 fe:00 1111                       ${brew}.2`,
    '7f0a10000000-7f0a10100000 r-xp 00000000 fe:00 2222                       /usr/lib/x86_64-linux-gnu/libc.so.6',
    '7f0a20000000-7f0a20100000 r-xp 00000000 00:00 0',
    '7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]',
  ]
  t.same(librariesIn(`${maps.join('\n')}\n`), [`${brew}.2`])
})
