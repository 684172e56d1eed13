// Installs the Debian package of build/release in a fresh Debian without compilers, starts it as its unit does, makes a
// call, and removes it without a trace. With --twice it first builds the release of this commit in a second folder and
// compares the hashes. Needs root, debootstrap and the network; takes minutes. `npm run release:check`.
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const say = text => console.error(`release:check: ${text}`)
const run = (command, words, options = {}) =>
  execFileSync(command, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options })
const OUT = 'build/release'
const deb = readdirSync(OUT).find(name => name.endsWith('.deb'))
if (deb === undefined) throw new Error('there is no package in build/release: npm run release')
const folder = mkdtempSync(join(tmpdir(), 'strowger-release-'))
const root = join(folder, 'root')
const ENV = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
/** A command below the root. Its /proc is mounted for itself alone, so nothing is to be unmounted. */
const below = words => ['--mount', 'sh', '-c', 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root, ...words]
const inside = (...words) => run('unshare', below(words), { env: ENV })

function twice() {
  say('building the same commit in a second folder')
  const other = join(folder, 'other')
  run('git', ['clone', '-q', '--shared', '.', other])
  for (const command of ['setup', 'release']) run('npm', ['run', '-s', command], { cwd: other })
  const sums = at => readFileSync(join(at, OUT, 'SHA256SUMS'), 'utf8')
  if (sums('.') !== sums(other)) throw new Error(`two builds differ:\n${sums('.')}${sums(other)}`)
  say('both have the same hashes')
}

/** Starts the platform as the unit does: its user, its settings, no capability. Returns how to stop it. */
async function start() {
  const unit = [
    'setpriv',
    '--reuid=strowger',
    '--regid=strowger',
    '--init-groups',
    '--bounding-set=-all',
    '--no-new-privs',
  ]
  const env = ['env', '-i', 'PATH=/usr/bin:/bin', 'STROWGER_DATA=/var/lib/strowger', 'STROWGER_HTTP_PORT=18080']
  const ports = [
    'STROWGER_SIP_PORT=15060',
    'STROWGER_SIPS_PORT=15061',
    'STROWGER_WS_PORT=15066',
    'STROWGER_RTP_PORTS=41000-41199',
  ]
  const main = ['/usr/lib/strowger/node/bin/node', '/usr/lib/strowger/build/bundle/bin/main.js', 'up']
  const child = spawn('unshare', below([...unit, ...env, ...ports, ...main]), { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise(resolve => child.once('exit', resolve))
  let printed = ''
  await new Promise((resolve, reject) => {
    child.stdout.on('data', chunk => {
      printed += chunk
      if (printed.includes('Strowger is up')) resolve()
    })
    child.once('exit', code => reject(new Error(`it ended with ${code}: ${printed}`)))
  })
  return async () => {
    child.kill('SIGTERM')
    await ended
  }
}

const began = Date.now()
const since = () => `${((Date.now() - began) / 1000).toFixed(0)} s`
try {
  if (process.argv.includes('--twice')) twice()
  run('debootstrap', ['--variant=minbase', 'bookworm', root])
  for (const path of ['etc/resolv.conf', 'etc/hosts', 'etc/apt/apt.conf.d'])
    if (existsSync(`/${path}`)) cpSync(`/${path}`, join(root, path), { recursive: true, dereference: true })
  say(`Debian stands (${since()})`)
  cpSync(join(OUT, deb), join(root, deb))
  inside('apt-get', 'update', '-qq')
  const before = inside('find', '/usr', '/etc', '/var/lib', '/lib', '-xdev', '-path', '*strowger*')
  const installing = Date.now()
  inside('apt-get', 'install', '-y', '-qq', '--no-install-recommends', `/${deb}`)
  if (existsSync(join(root, 'usr/bin/gcc'))) throw new Error('a compiler was installed')
  const stop = await start()
  try {
    say(`it is up ${((Date.now() - installing) / 1000).toFixed(1)} s after apt began`)
    say(inside('strowger', 'call', '+2348030000001', '--markup', '<Response><Pause length="1"/></Response>').trim())
  } finally {
    await stop()
  }
  inside('dpkg', '--purge', 'strowger')
  const left = inside('find', '/usr', '/etc', '/var/lib', '/lib', '-xdev', '-path', '*strowger*')
  const users = readFileSync(join(root, 'etc/passwd'), 'utf8')
  if (left !== before || /^strowger:/m.test(users)) throw new Error(`purge left:\n${left}`)
  say(`installed, called, purged; nothing is left (${since()})`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
