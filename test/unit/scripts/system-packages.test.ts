import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from '../../support/harness/index.ts'

// Tests which Debian packages the set-up asks for, on machines that are folders.

type Machine = object
type Missing = [what: string, packages: string]
const { installing, machineAt, missingPackages } = (await import(
  pathToFileURL(resolve('scripts/setup/system-packages.mjs')).href
)) as {
  machineAt: (where: { root: string; env: Record<string, string> }) => Machine
  missingPackages: (uses: string[], machine: Machine) => Missing[]
  installing: (packages: Missing[], how: { apt: string; root: string }) => string
}

const LIBRARIES = 'usr/lib/x86_64-linux-gnu'
const RUN_TIME = ['libopus.so.0', 'libspandsp.so.2', 'libsoxr.so.0', 'libcrypto.so.3']
const MODULES = ['opus.pc', 'spandsp.pc', 'soxr.pc', 'libcrypto.pc']

/** Returns a folder with these libraries, modules of pkg-config and commands. */
function machine(root: string, libraries: string[], modules: string[], commands: string[]): Machine {
  for (const folder of ['bin', join(LIBRARIES, 'pkgconfig')]) mkdirSync(join(root, folder), { recursive: true })
  for (const name of libraries) writeFileSync(join(root, LIBRARIES, name), '')
  for (const name of modules) writeFileSync(join(root, LIBRARIES, 'pkgconfig', name), '')
  for (const name of commands) writeFileSync(join(root, 'bin', name), '')
  return machineAt({ root, env: { PATH: join(root, 'bin') } })
}
const missing = (uses: string[], on: Machine): string[] => missingPackages(uses, on).flatMap(([, names]) => names)

t.test(
  'a finished tree needs the libraries that run, and a tree to be built compilers and headers as well',
  async t => {
    const bare = machine(t.testdir(), RUN_TIME, [], ['openssl', 'espeak-ng'])
    t.same(missing(['run'], bare), [])
    t.same(missing(['run', 'build'], bare), [
      'g++ make',
      'python3',
      'pkg-config',
      'libopus-dev',
      'libspandsp-dev',
      'libsoxr-dev',
      'libssl-dev',
    ])
  },
)

t.test('a machine with headers of a library that programs cannot load lacks that library', async t => {
  const without = RUN_TIME.filter(name => !name.startsWith('libsoxr'))
  const tools = ['openssl', 'espeak-ng', 'g++', 'make', 'python3', 'pkg-config']
  t.same(missing(['run', 'build'], machine(t.testdir(), without, MODULES, tools)), ['libsoxr-dev'])
})

t.test('only the tests want the GPL library for G.729', async t => {
  const tools = ['openssl', 'espeak-ng', 'g++', 'make', 'python3', 'pkg-config']
  const libraries = machine(t.testdir(), RUN_TIME, MODULES, tools)
  t.same(missing(['run', 'build'], libraries), [])
  t.ok(missing(['test'], libraries).includes('libbcg729-0'))
})

t.test('a tree on a machine without a compiler, and without root, says what to install, and does nothing', async t => {
  const root = t.testdir()
  for (const name of ['scripts', 'package.json', 'package-lock.json'])
    cpSync(name, join(root, 'tree', name), { recursive: true })
  mkdirSync(join(root, 'bin'))
  symlinkSync(process.execPath, join(root, 'bin/node'))
  writeFileSync(join(root, 'bin/npm'), '#!/bin/sh\ntouch installed\n')
  chmodSync(join(root, 'bin/npm'), 0o755)
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'tree/scripts/setup.mjs'), '--for=start'], {
    env: { PATH: join(root, 'bin') },
    encoding: 'utf8',
  })
  t.equal(status, 1)
  t.match(stderr, /^setup: missing: a C\+\+ compiler, python3/)
  t.match(stderr, /sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends g\+\+ make python3 /)
  t.notMatch(stderr, /npm packages/)
})

t.test('the tests take the small Chromium, and on a machine with the whole one that', async t => {
  const browsers = (commands: string[]) =>
    missing(['test'], machine(t.testdir(), [], [], commands)).filter(name => name.startsWith('chromium'))
  t.same(browsers([]), ['chromium-headless-shell'])
  t.same(browsers(['chromium']), [])
  t.same(browsers(['chromium-headless-shell']), [])
})

t.test('PostgreSQL is installed without a cluster of its own, and nothing of that stays on the machine', async t => {
  const root = t.testdir()
  // Prints its words, and the settings of clusters as an installation finds them.
  writeFileSync(join(root, 'apt'), `#!/bin/sh\necho "$@"\ncat ${root}/etc/*/*/* 2>/dev/null\nexit $CODE\n`, {
    mode: 0o755,
  })
  const run = (names: string, code: number) =>
    spawnSync('sh', ['-c', installing([['it', names]], { apt: join(root, 'apt'), root })], {
      env: { PATH: process.env['PATH'], CODE: String(code) },
      encoding: 'utf8',
    })
  const words = 'install -y --no-install-recommends'
  const plain = run('sipp sox', 0)
  t.match(plain, { status: 0, stdout: `update\n${words} sipp sox\n` })
  const settings = 'create_main_cluster=false\n'
  const server = run('postgresql sox', 0)
  t.match(server, { status: 0, stdout: `update\n${settings}${words} postgresql sox\n${settings}` })
  t.equal(run('postgresql', 100).status, 100, 'a failure stays one')
  t.same(readdirSync(join(root, 'etc/postgresql-common')), [])
})
