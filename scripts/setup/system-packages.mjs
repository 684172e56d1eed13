// Which Debian packages the platform, its build and its tests need, and which of them this machine lacks.
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What needs a package: the running platform, the build of its native parts, or the tests and benchmarks. */
const [RUN, BUILD, TEST] = ['run', 'build', 'test']

/**
 * The only list of system packages: what it is, Debian packages, and for each use of it the test of its presence. A
 * library has two: the file that programs load, and the one by which the build finds it.
 */
const PACKAGES = [
  ['a C++ compiler', 'g++ make', { [BUILD]: ({ command }) => command('g++') && command('make') }],
  ['python3 (node-gyp)', 'python3', { [BUILD]: ({ command }) => command('python3') }],
  ['pkg-config', 'pkg-config', { [BUILD]: ({ command }) => command('pkg-config') }],
  ['libopus', 'libopus-dev', library('libopus', 'opus')],
  ['libspandsp', 'libspandsp-dev', library('libspandsp', 'spandsp')],
  ['libsoxr', 'libsoxr-dev', library('libsoxr', 'soxr')],
  ['libssl', 'libssl-dev', library('libcrypto', 'libcrypto')],
  ['openssl', 'openssl', { [RUN]: ({ command }) => command('openssl') }],
  ['espeak-ng', 'espeak-ng', { [RUN]: ({ command }) => command('espeak-ng') }],
  ['libbcg729', 'libbcg729-0', { [TEST]: ({ shared }) => shared('libbcg729') }],
  ['libsrtp2', 'libsrtp2-dev', { [TEST]: ({ module }) => module('libsrtp2') }],
  ['ccache', 'ccache', { [TEST]: ({ command }) => command('ccache') }],
  ['sipp', 'sip-tester', { [TEST]: ({ command }) => command('sipp') }],
  ['sox', 'sox', { [TEST]: ({ command }) => command('sox') }],
  ['tshark', 'tshark', { [TEST]: ({ command }) => command('tshark') }],
  ['baresip', 'baresip-core', { [TEST]: ({ command }) => command('baresip') }],
  ['PostgreSQL', 'postgresql', { [TEST]: ({ below }) => below('usr/lib/postgresql', 'bin/initdb') }],
  ['Redis', 'redis-server', { [TEST]: ({ command }) => command('redis-server') }],
  ['systemd-analyze', 'systemd', { [TEST]: ({ command }) => command('systemd-analyze') }],
  ['nginx', 'nginx-light', { [TEST]: ({ command }) => command('nginx') }],
  ['caddy', 'caddy', { [TEST]: ({ command }) => command('caddy') }],
  ['pebble', 'pebble', { [TEST]: ({ command }) => command('pebble') }],
  [
    'chromium',
    'chromium-headless-shell',
    { [TEST]: ({ command }) => command('chromium-headless-shell') || command('chromium') },
  ],
]

function library(file, module) {
  return { [RUN]: machine => machine.shared(file), [BUILD]: machine => machine.module(module) }
}

const LIBRARIES = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib', '/usr/lib64', '/lib']

const versionsIn = folder => (existsSync(folder) ? readdirSync(folder) : [])

/** What is installed: commands on `path`, and libraries below `root`. */
export function machineAt({ root = '/', env = process.env } = {}) {
  const folders = (env.PATH ?? '')
    .split(':')
    .concat('/usr/sbin', '/sbin')
    .filter(folder => folder !== '')
  const libraries = LIBRARIES.map(folder => join(root, folder)).filter(existsSync)
  const names = new Set(libraries.flatMap(folder => readdirSync(folder)).map(name => name.replace(/\.so\..*/, '.so.')))
  return {
    env,
    command: name => folders.some(folder => existsSync(join(folder, name))),
    shared: name => names.has(`${name}.so.`),
    below: (folder, file) =>
      versionsIn(join(root, folder)).some(version => existsSync(join(root, folder, version, file))),
    module: name => libraries.some(folder => existsSync(join(folder, 'pkgconfig', `${name}.pc`))),
  }
}

/**
 * Debian's PostgreSQL makes a cluster when it is installed, and starts it. The tests start servers of their own, so
 * this file of its settings forbids it meanwhile (pg_createcluster(1)).
 */
const NO_CLUSTER = 'etc/postgresql-common/createcluster.d/strowger.conf'

/** Returns the command, for root's sh(1) and without single quotes, that installs what `missingPackages` returned. */
export function installing(packages, { apt = 'apt-get', root = '/' } = {}) {
  const names = packages.flatMap(([, debian]) => debian.split(' '))
  const install = `${apt} update && ${apt} install -y --no-install-recommends ${names.join(' ')}`
  if (!names.includes('postgresql')) return install
  const file = join(root, NO_CLUSTER)
  const folder = dirname(file)
  return (
    `mkdir -p ${folder} && echo create_main_cluster=false >${file} && { ${install}; status=$?; ` +
    `rm -f ${file}; rmdir --ignore-fail-on-non-empty ${folder}; (exit $status); }`
  )
}

/** Returns what `machine` lacks for these uses, as [what, Debian packages]. */
export const missingPackages = (uses, machine) =>
  PACKAGES.filter(([, , tests]) => uses.some(use => tests[use] && !tests[use](machine)))
