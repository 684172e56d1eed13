// Installs the Debian package of build/release in a fresh Debian without compilers, starts it as its unit does, makes a
// call, and removes it without a trace. So with the tarball, which it also upgrades while a call runs. Then unpacks the
// container image, and starts it as its configuration says. With --twice it first builds the release of this commit in
// a second folder and compares the hashes. Needs root, the tools that docs/operations.md names and the network; takes
// minutes. At its end, also by an error or a signal, nothing of it runs or lies anywhere.
// `npm run release:check`.
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ARCHITECTURES, folderOf, hasCommand } from './architecture.mjs'
import { checkTarball } from './check-tarball.mjs'

const say = text => console.error(`release:check: ${text}`)
const run = (command, words, options = {}) =>
  execFileSync(command, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options })
const OUT = 'build/release'
const readJson = path => JSON.parse(readFileSync(path, 'utf8'))
const deb = readdirSync(OUT).find(name => name.endsWith('.deb'))
if (deb === undefined) throw new Error('there is no package in build/release: npm run release')
const TOOLS = { debootstrap: 'debootstrap', skopeo: 'skopeo', umoci: 'umoci', readelf: 'binutils' }
const lacking = Object.keys(TOOLS).filter(name => !hasCommand(name))
if (lacking.length > 0) throw new Error(`apt-get install ${lacking.map(name => TOOLS[name]).join(' ')}`)
const folder = mkdtempSync(join(tmpdir(), 'strowger-release-'))
const debian = join(folder, 'root')
const ENV = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
/** A command below a root. Its /proc is mounted for itself alone, so nothing is to be unmounted. */
const below = (root, words) => [
  ...['--mount', 'sh', '-c', 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root],
  ...words,
]
const inside = (...words) => run('unshare', below(debian, words), { env: ENV })

function twice() {
  say('building the same commit in a second folder')
  const other = join(folder, 'other')
  run('git', ['clone', '-q', '--shared', '.', other])
  for (const command of ['setup', 'release']) run('npm', ['run', '-s', command], { cwd: other })
  const sums = at => readFileSync(join(at, OUT, 'SHA256SUMS'), 'utf8')
  if (sums('.') !== sums(other)) throw new Error(`two builds differ:\n${sums('.')}${sums(other)}`)
  say('both have the same hashes')
}

const PORTS = [
  ...['STROWGER_HTTP_PORT=18080', 'STROWGER_SIP_PORT=15060', 'STROWGER_SIPS_PORT=15061', 'STROWGER_WS_PORT=15066'],
  'STROWGER_RTP_PORTS=41000-41199',
]
const CALL = ['call', '+2348030000001', '--markup', '<Response><Pause length="1"/></Response>']

/** How much of the log an error tells. */
const LOGGED = 4000

/** Starts the platform by this command. Resolves when it is up, with how to stop it. */
async function start(root, words) {
  const child = spawn('unshare', below(root, words), { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise(resolve => child.once('exit', resolve))
  let printed = ''
  let logged = ''
  // An exception that nobody expects prints the whole line of the bundle that it comes from.
  child.stderr.setEncoding('utf8').on('data', text => {
    logged = (logged + text).slice(-LOGGED)
  })
  await new Promise((resolve, reject) => {
    child.stdout.on('data', chunk => {
      printed += chunk
      if (printed.includes('Strowger is up')) resolve()
    })
    child.once('close', code => reject(new Error(`it ended with ${code}: ${printed}${logged}`)))
  })
  return async () => {
    child.kill('SIGTERM')
    await ended
  }
}

/** As the unit does: its user, its settings, no capability. */
const startUnit = () => {
  const user = ['--reuid=strowger', '--regid=strowger', '--init-groups', '--bounding-set=-all', '--no-new-privs']
  const env = ['env', '-i', 'PATH=/usr/bin:/bin', 'STROWGER_DATA=/var/lib/strowger', ...PORTS]
  const main = ['/usr/lib/strowger/node/bin/node', '/usr/lib/strowger/build/bundle/bin/main.js', 'up']
  return start(debian, ['setpriv', ...user, ...env, ...main])
}

/** Reads what the kernel says of each process below a root, and refuses rights that it must not have. */
function examineProcesses(root, confined) {
  for (const name of ['edge', 'media', 'sandbox', 'signaling', 'control']) {
    const pid = readFileSync(join(root, 'var/lib/strowger/run', `${name}.pid`), 'utf8').trim()
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const line = field => new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? ''
    const [user] = line('Uid').split('\t')
    const [rights, filter] = [line('CapEff'), line('Seccomp')]
    say(`${name}: user ${user}, capabilities ${rights}, seccomp ${filter}, no_new_privs ${line('NoNewPrivs')}`)
    if (user === '0' || !/^0*$/.test(rights)) throw new Error(`${name} has too many rights`)
    if (confined.includes(name) && filter !== '2') throw new Error(`${name} has no filter of system calls`)
  }
}
const EXPOSED = ['edge', 'media', 'sandbox']

/** The settings may hold secrets: systemd reads them, and nobody else. Other users find no data. */
function refuseOpenFiles() {
  const modes = inside('stat', '-c', '%U:%G %a %n', '/etc/strowger', '/etc/strowger/strowger.env', '/var/lib/strowger')
  const wanted = ['root:strowger 750 /etc/strowger', 'root:root 600 /etc/strowger/strowger.env']
  if (modes !== `${[...wanted, 'strowger:strowger 700 /var/lib/strowger'].join('\n')}\n`) throw new Error(modes)
  const open = inside('find', '/var/lib/strowger', '-perm', '/077', '!', '-type', 'l')
  if (open !== '') throw new Error(`others can open:\n${open}`)
}

function refuseCompilers(root) {
  for (const name of ['gcc', 'g++', 'cc', 'make', 'python3'])
    if (existsSync(join(root, 'usr/bin', name))) throw new Error(`it has ${name}`)
}

/** Unpacks the image by umoci, and starts it by its configuration. skopeo reads it first. */
async function checkImage(archive) {
  const layout = join(folder, 'layout')
  run('mkdir', [layout])
  run('tar', ['-xf', archive, '-C', layout])
  run('skopeo', ['inspect', `oci-archive:${archive}`])
  const blob = ({ digest }) => readJson(join(layout, 'blobs', digest.replace(':', '/')))
  const [described] = readJson(join(layout, 'index.json')).manifests
  // skopeo leaves out what OCI does not define, such as the health check.
  const { config } = blob(blob(described).config)
  const tag = described.annotations['org.opencontainers.image.ref.name']
  run('umoci', ['unpack', '--image', `${layout}:${tag}`, join(folder, 'bundle')])
  const root = join(folder, 'bundle/rootfs')
  refuseCompilers(root)
  const [user, group] = config.User.split(':')
  const as = [`--reuid=${user}`, `--regid=${group}`, '--clear-groups', '--bounding-set=-all', '--no-new-privs']
  const words = command => ['setpriv', ...as, 'env', '-i', ...config.Env, ...PORTS, ...command]
  const within = command => run('unshare', below(root, words(command)))
  const starting = Date.now()
  const stop = await start(root, words(config.Cmd))
  try {
    say(`image: it is up ${((Date.now() - starting) / 1000).toFixed(1)} s after its start`)
    within(config.Healthcheck.Test.slice(1))
    say('image: its health check passes')
    say(within(['strowger', ...CALL]).trim())
    examineProcesses(root, EXPOSED)
  } finally {
    await stop()
  }
}

/** Examines what was cross-compiled: every program and library is of its processor, and runs where qemu-user is. */
function checkCross(arch) {
  const out = folderOf(arch)
  const found = existsSync(out) && readdirSync(out).find(name => name.endsWith('.deb'))
  if (!found) return say(`there is no release for ${arch}: npm run release -- --arch=${arch}`)
  const tree = join(folder, arch)
  run('dpkg-deb', ['-x', join(out, found), tree])
  const { debian: architecture, machine } = ARCHITECTURES[arch]
  if (run('dpkg-deb', ['-f', join(out, found), 'Architecture']).trim() !== architecture) throw new Error(found)
  const own = join(tree, 'usr/lib/strowger')
  const files = ['node/bin/node', 'native/build/Release/media.node', 'native/build/Release/confine']
  for (const file of [...files, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node']) {
    const header = run('readelf', ['-h', join(own, file)], { env: ENV })
    if (!header.includes(`Machine:                           ${machine}`)) throw new Error(`${file}:\n${header}`)
  }
  say(`${found}: every native part is of ${machine}`)
}

/** The processes whose root folder lies in ours: all that was started below it, by whomever. */
const left = () =>
  readdirSync('/proc').filter(pid => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readlinkSync(`/proc/${pid}/root`).startsWith(`${folder}/`)
    } catch {
      // It has ended meanwhile.
      return false
    }
  })

/** Ends what still runs, such as a service that a failed check has not stopped, and removes the folder. */
function clearAway() {
  for (let pids = left(); pids.length > 0; pids = left()) {
    for (const pid of pids)
      try {
        process.kill(Number(pid), 'SIGKILL')
      } catch (error) {
        if (error.code !== 'ESRCH') throw error
      }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  }
  rmSync(folder, { recursive: true, force: true })
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, () => {
    clearAway()
    process.exit(1)
  })

const began = Date.now()
const since = () => `${((Date.now() - began) / 1000).toFixed(0)} s`
try {
  if (process.argv.includes('--twice')) twice()
  for (const arch of Object.keys(ARCHITECTURES)) if (arch !== process.arch) checkCross(arch)
  const image = readdirSync(OUT).find(name => name.endsWith('.oci.tar'))
  if (image === undefined) say('there is no image to check: apt-get install mmdebstrap, then npm run release')
  else await checkImage(join(OUT, image))
  // What it mounts is gone with it.
  run('unshare', ['--mount', 'debootstrap', '--variant=minbase', 'bookworm', debian])
  for (const path of ['etc/resolv.conf', 'etc/hosts', 'etc/apt/apt.conf.d'])
    if (existsSync(`/${path}`)) cpSync(`/${path}`, join(debian, path), { recursive: true, dereference: true })
  say(`Debian stands (${since()})`)
  cpSync(join(OUT, deb), join(debian, deb))
  inside('apt-get', 'update', '-qq')
  const before = inside('find', '/usr', '/etc', '/var/lib', '/lib', '-xdev', '-path', '*strowger*')
  const installing = Date.now()
  const passed = () => `${((Date.now() - installing) / 1000).toFixed(1)} s after apt began`
  const apt = ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', `/${deb}`]
  inside(...apt, '--download-only')
  say(`the packages are here ${passed()}`)
  inside(...apt)
  say(`they are installed ${passed()}`)
  refuseCompilers(debian)
  const stop = await startUnit()
  try {
    say(`it is up ${passed()}`)
    say(inside('strowger', ...CALL).trim())
    say(`first call ${passed()}`)
    examineProcesses(debian, EXPOSED)
    refuseOpenFiles()
  } finally {
    await stop()
  }
  // What `restore --replace` leaves beside the data, and a removal in which the package adduser is gone first.
  inside('cp', '-a', '/var/lib/strowger', '/var/lib/strowger.before-2030')
  inside('dpkg', '--remove', 'strowger')
  inside('dpkg', '--remove', '--force-depends', 'adduser')
  inside('dpkg', '--purge', 'strowger')
  inside('apt-get', 'install', '-y', '-qq', 'adduser')
  const traces = inside('find', '/usr', '/etc', '/var/lib', '/lib', '-xdev', '-path', '*strowger*')
  const users = readFileSync(join(debian, 'etc/passwd'), 'utf8')
  if (traces !== before || /^strowger:/m.test(users)) throw new Error(`purge left:\n${traces}`)
  say(`installed, called, purged; nothing is left (${since()})`)
  const tarball = join(
    OUT,
    readdirSync(OUT).find(name => name.endsWith('.tar.gz')),
  )
  await checkTarball({ debian, tarball, settings: PORTS, inside, below, env: ENV, say })
  if (left().length > 0) throw new Error('processes of the release still run')
} finally {
  clearAway()
}
