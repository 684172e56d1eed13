// Makes a fresh checkout runnable. `npm start`, `npm test` and `npm run bench` call it first. Plain JavaScript without
// dependencies, because it runs before `npm ci`. A step is skipped if its inputs have not changed since it last
// succeeded.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findingsHere } from './lock-file.mjs'

process.chdir(join(dirname(fileURLToPath(import.meta.url)), '..'))
const purpose = /^--for=(start|test|bench)$/.exec(process.argv[2] ?? '')?.[1] ?? 'start'
const say = text => console.error(`setup: ${text}`)
const fail = text => {
  say(text)
  process.exit(1)
}

const onPath = (process.env.PATH ?? '').split(':').concat('/usr/sbin', '/sbin')
const hasCommand = name => onPath.some(folder => folder !== '' && existsSync(join(folder, name)))
const libraryFolders = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib', '/usr/lib64', '/lib']
const hasFile = name => libraryFolders.some(folder => existsSync(join(folder, name)))
const hasModule = name => hasFile(`pkgconfig/${name}.pc`)

/** The only list of system packages: name, test for its presence, Debian packages, and the purpose that needs it. */
const PACKAGES = [
  ['a C++ compiler', () => hasCommand('g++') && hasCommand('make'), 'g++ make', 'start'],
  ['python3 (node-gyp)', () => hasCommand('python3'), 'python3', 'start'],
  ['pkg-config', () => hasCommand('pkg-config'), 'pkg-config', 'start'],
  ['libopus', () => hasModule('opus'), 'libopus-dev', 'start'],
  ['libspandsp', () => hasModule('spandsp'), 'libspandsp-dev', 'start'],
  ['libsrtp2', () => hasModule('libsrtp2'), 'libsrtp2-dev', 'start'],
  ['libspeexdsp', () => hasModule('speexdsp'), 'libspeexdsp-dev', 'start'],
  ['libsoxr', () => hasModule('soxr'), 'libsoxr-dev', 'start'],
  ['openssl', () => hasModule('libcrypto') && hasCommand('openssl'), 'libssl-dev openssl', 'start'],
  ['espeak-ng', () => hasCommand('espeak-ng'), 'espeak-ng', 'start'],
  ['ccache', () => hasCommand('ccache'), 'ccache', 'test'],
  ['sipp', () => hasCommand('sipp'), 'sip-tester', 'test'],
  ['sox', () => hasCommand('sox'), 'sox', 'test'],
  ['tshark', () => hasCommand('tshark'), 'tshark', 'test'],
  ['baresip', () => hasCommand('baresip'), 'baresip-core', 'test'],
  ['chromium', () => hasCommand('chromium'), 'chromium', 'test'],
]
if (process.env.STROWGER_G729 !== 'off')
  PACKAGES.push(['libbcg729', () => hasFile('libbcg729.so.0'), 'libbcg729-0', 'start'])

installPackages(PACKAGES.filter(([, present, , need]) => (purpose !== 'start' || need === 'start') && !present()))

function installPackages(missing) {
  if (missing.length === 0) return
  const names = missing.flatMap(([, , packages]) => packages.split(' '))
  const install = `apt-get install -y --no-install-recommends ${names.join(' ')}`
  const byHand = `sudo sh -c "apt-get update && ${install}"`
  say(`missing: ${missing.map(([what]) => what).join(', ')}`)
  const isRoot = process.getuid?.() === 0
  const sudo = !isRoot && hasCommand('sudo') && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0
  if (!hasCommand('apt-get') || !(isRoot || sudo) || process.env.SKIP_APT === '1')
    fail(`they cannot be installed from here. Run this once, then the same command again:\n\n  ${byHand}\n`)
  say(`installing ${names.join(' ')}`)
  const apt = (...args) => {
    const command = ['apt-get', '-o', 'DPkg::Lock::Timeout=120', '-qq', ...args]
    const whole = isRoot ? command : ['sudo', '-n', 'DEBIAN_FRONTEND=noninteractive', ...command]
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    return spawnSync(whole[0], whole.slice(1), { stdio: ['ignore', 'ignore', 'inherit'], env }).status === 0
  }
  if (!apt('update') || !apt('install', '-y', '--no-install-recommends', ...names))
    fail(`apt-get failed. Run this by hand, then the same command again:\n\n  ${byHand}\n`)
}

const filesBelow = folder =>
  !existsSync(folder)
    ? []
    : readdirSync(folder, { withFileTypes: true })
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .flatMap(entry => {
          if (['node_modules', 'build', '.git', 'results'].includes(entry.name)) return []
          const path = join(folder, entry.name)
          return entry.isDirectory() ? filesBelow(path) : [path]
        })

/** Runs `work` unless the stamp shows that it has succeeded on the same inputs and its outputs still exist. */
function step(name, { inputs, outputs, stamp }, work) {
  const hash = createHash('sha256').update(process.version)
  for (const input of inputs) hash.update(existsSync(input) ? `${input}\0${readFileSync(input, 'utf8')}` : input)
  const digest = hash.digest('hex')
  const done = existsSync(stamp) && readFileSync(stamp, 'utf8') === digest && outputs.every(existsSync)
  if (done) return
  say(`${name} ...`)
  const started = Date.now()
  work()
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(stamp, digest)
  say(`${name} done in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

function run(command, args, env = {}) {
  const result = spawnSync(command, args, { stdio: ['ignore', 2, 2], env: { ...process.env, ...env } })
  if (result.status !== 0) fail(`failed: ${command} ${args.join(' ')}`)
}

const compilers = hasCommand('ccache') ? { CC: 'ccache gcc', CXX: 'ccache g++' } : {}
const prefix = dirname(dirname(process.execPath))
const headers = existsSync(join(prefix, 'include/node/node.h')) ? { npm_config_nodedir: prefix } : {}
const manifest = JSON.parse(readFileSync('package.json', 'utf8'))

step(
  'packages (npm ci)',
  {
    // Only parts of the manifest: an edit of its scripts must not cost a minute.
    inputs: [
      JSON.stringify([manifest.dependencies, manifest.devDependencies, manifest.allowScripts]),
      'package-lock.json',
      '.taprc',
    ],
    outputs: ['node_modules/.bin/tsc', 'node_modules/.bin/tap'],
    stamp: 'node_modules/.stamp-npm',
  },
  () => {
    // Checks the lock file before npm installs any of its packages.
    const found = findingsHere()
    if (found.length > 0) fail(`package-lock.json cannot be trusted:\n${found.map(one => `  ${one}\n`).join('')}`)
    // Some versions of npm ignore allowScripts. So `npm ci` runs no scripts, and `npm rebuild` runs the allowed ones.
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'])
    const allowed = Object.entries(manifest.allowScripts).flatMap(([name, yes]) => (yes ? [name] : []))
    // Without names npm would run the scripts of all packages.
    if (allowed.length > 0) run('npm', ['rebuild', '--loglevel=error', ...allowed], { ...compilers, ...headers })
    // tap rebuilds itself for its plugins, but a run that triggers this rebuild still uses the old ones.
    run('node_modules/.bin/tap', ['build'])
  },
)

step(
  'native data plane',
  {
    inputs: filesBelow('native').filter(file => /\.(cc|h|cpp|hpp|gyp|gypi)$/.test(file)),
    outputs: ['native/build/Release/media.node'],
    stamp: 'native/build/.stamp',
  },
  () => {
    const npm = join(
      execFileSync('npm', ['root', '-g'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim(),
      'npm',
    )
    const gyp = join(npm, 'node_modules/node-gyp/bin/node-gyp.js')
    run(process.execPath, [gyp, 'rebuild', '-C', 'native', '-j', 'max', '--silent'], { ...compilers, ...headers })
  },
)

// Precedes TypeScript, because tests of the compiled tree need the built pages.
step(
  'console',
  {
    inputs: [...filesBelow('control/console'), 'scripts/console.mjs', 'package-lock.json'],
    outputs: ['build/console/index.html'],
    stamp: 'build/.stamp-console',
  },
  () => run(process.execPath, ['scripts/console.mjs']),
)

const SOURCES = ['core', 'signaling', 'media', 'control', 'markup', 'native', 'bin', 'bench', 'test']
step(
  'TypeScript',
  {
    inputs: ['tsconfig.json', ...SOURCES.flatMap(filesBelow).filter(file => /\.(ts|json)$/.test(file))],
    outputs: ['build/bin/main.js'],
    stamp: 'build/.stamp-tsc',
  },
  () => run('node_modules/.bin/tsc', ['-p', '.']),
)

const SHIPPED = SOURCES.filter(folder => folder !== 'bench' && folder !== 'test')
step(
  'bundle',
  {
    inputs: [
      'scripts/bundle.mjs',
      'package-lock.json',
      ...SHIPPED.flatMap(filesBelow).filter(file => /\.(ts|json)$/.test(file)),
    ],
    outputs: ['build/bundle/bin/main.js'],
    stamp: 'build/bundle/.stamp',
  },
  () => run(process.execPath, ['scripts/bundle.mjs']),
)
