// Makes a fresh checkout runnable. `npm start`, `npm test` and `npm run bench` call it first. Plain JavaScript without
// dependencies, because it runs before `npm ci`. scripts/setup/steps.mjs runs what is not done yet.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findingsHere } from './lock-file.mjs'
import { DRIVER_FILES, isInstalled, makeDriver } from './setup/database-driver.mjs'
import { packagesOfBuilds, packagesOfRunning } from './setup/needed-packages.mjs'
import { hasStamp, isDone, replaceFile, runSteps } from './setup/steps.mjs'
import { installing, machineAt, missingPackages } from './setup/system-packages.mjs'

process.chdir(join(dirname(fileURLToPath(import.meta.url)), '..'))
const purpose = /^--for=(start|test|bench|release)$/.exec(process.argv[2] ?? '')?.[1] ?? 'start'
/** True when the packages of a user are enough, without those of developers. */
const of_users = purpose === 'start' || purpose === 'release'
const say = text => console.error(`setup: ${text}`)
const machine = machineAt()

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

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))

/** The stamps of the packages that `start` needs, of all, and of those that a platform loads. A tree has one. */
const [START_STAMP, ALL_STAMP, RUN_STAMP] = ['-start', '', '-run'].map(name => `node_modules/.stamp-npm${name}`)
const STAMPS = [START_STAMP, ALL_STAMP, RUN_STAMP]

/** Not the whole manifest: an edit of its scripts installs nothing. */
const LOCKED = JSON.stringify(
  Object.entries(lock.packages).map(([path, { version, integrity }]) => [path, version, integrity]),
)

/** Checks the lock file before npm fetches any of its packages. */
function checkLock() {
  const found = findingsHere()
  if (found.length > 0) throw new Error(`package-lock.json cannot be trusted:\n  ${found.join('\n  ')}`)
}
const FETCHED_AGAIN = 'When the registry could not be reached, run the same command again: complete downloads are kept.'

/**
 * Installs these packages by `npm ci`; after an installation that ended well, `npm install` adds and removes only what
 * differs, so a platform that runs from this folder keeps its files while `npm test` adds the packages of the tests.
 */
const npmPackages = ({ stamp, needed, options }) => ({
  name: 'npm packages',
  inputs: () => [LOCKED, ...Object.keys(needed)],
  outputs: Object.keys(needed).map(name => `node_modules/${name}/package.json`),
  stamp,
  work: async (run, finished) => {
    checkLock()
    const command = finished || STAMPS.some(existsSync) ? ['install', '--no-save'] : ['ci']
    for (const other of STAMPS) rmSync(other, { force: true })
    // No package may run a script (decision 0710).
    await run('npm', [...command, ...options, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'])
  },
  remedy: FETCHED_AGAIN,
})
const start_packages = npmPackages({
  stamp: START_STAMP,
  needed: manifest.dependencies,
  options: ['--omit=dev'],
})
const all_packages = npmPackages({
  stamp: ALL_STAMP,
  needed: { ...manifest.dependencies, ...manifest.devDependencies },
  options: [],
})

const compilers = machine.command('ccache') ? { CC: 'ccache gcc', CXX: 'ccache g++' } : {}
const prefix = dirname(dirname(process.execPath))
const headers = existsSync(join(prefix, 'include/node/node.h')) ? { npm_config_nodedir: prefix } : {}
/** The node-gyp of npm, which names it to its scripts. A global prefix of the user holds no npm. */
const gypOfNpm = () => {
  const { npm_config_node_gyp: named } = process.env
  if (named && existsSync(named)) return named
  const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }
  return join(execFileSync('npm', ['root', '-g'], options).trim(), 'npm/node_modules/node-gyp/bin/node-gyp.js')
}
const compile = (run, folder, jobs = 'max') =>
  run(process.execPath, [gypOfNpm(), 'rebuild', '-C', folder, '-j', jobs, '--silent'], { ...compilers, ...headers })

const MEMORY = 'A compiler that ends without a message mostly lacks memory: two run beside each other, of 500 MB each.'

/** The C and C++ parts. They are not compiled again when npm replaces node_modules. */
const SQLITE = 'native/sqlite/build/Release/better_sqlite3.node'
const DRIVER = 'node_modules/better-sqlite3'
const PLACE = `${DRIVER}/build/Release/better_sqlite3.node`
/** Asked once, at the start: npm writes there meanwhile. */
const driver_installed = isInstalled(DRIVER, lock.packages[DRIVER])
const database_driver = {
  name: 'database driver',
  // npm could replace an installed package while it is compiled. Otherwise the longest step waits for no other package.
  needs: [...(driver_installed ? ['npm packages'] : []), 'system packages'],
  inputs: () => [...DRIVER_FILES, lock.packages[DRIVER].integrity],
  outputs: [SQLITE],
  stamp: 'native/sqlite/build/.stamp',
  work: async run => {
    checkLock()
    rmSync('native/sqlite/build', { recursive: true, force: true })
    mkdirSync(dirname(SQLITE), { recursive: true })
    await makeDriver({
      run,
      path: DRIVER,
      entry: lock.packages[DRIVER],
      installed: driver_installed,
      work: 'build/database-driver',
      compile: folder => compile(run, folder),
      take: made => replaceFile(made, SQLITE),
    })
  },
  remedy: `${FETCHED_AGAIN} ${MEMORY}`,
}
/** SQLite is one file, and takes a core as long as all else takes the other. So the rest leaves it that core. */
const gives_way = !isDone(database_driver)
const native = [
  database_driver,
  {
    name: 'native media plane',
    gives_way,
    needs: ['npm packages', 'system packages'],
    inputs: () => [
      'native/binding.gyp',
      ...['native/src'].flatMap(filesBelow),
      lock.packages['node_modules/node-addon-api'].integrity,
    ],
    outputs: ['native/build/Release/media.node', 'native/build/Release/confine'],
    stamp: 'native/build/.stamp',
    work: run => compile(run, 'native', gives_way ? '1' : 'max'),
    remedy: MEMORY,
  },
]
const driver_in_place = {
  name: 'database driver in its package',
  needs: ['database driver', 'npm packages'],
  inputs: () => ['native/sqlite/build/.stamp'],
  outputs: [PLACE],
  stamp: `${dirname(PLACE)}/.stamp`,
  work: async () => {
    mkdirSync(dirname(PLACE), { recursive: true })
    replaceFile(SQLITE, PLACE)
  },
}

/** Compilers are needed only where something is to be compiled: a finished tree may be copied to a machine without. */
const missing = () => {
  const uses = ['run', ...(native.every(isDone) ? [] : ['build']), ...(of_users ? [] : ['build', 'test'])]
  return missingPackages(uses, machineAt())
}
const is_root = process.getuid?.() === 0
const mayInstall = () =>
  machine.command('apt-get') &&
  process.env.SKIP_APT !== '1' &&
  (is_root || (machine.command('sudo') && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0))
const byHand = packages => `sudo sh -c '${installing(packages)}'`
const QUIET = 'DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 -qq'
const system_packages = {
  name: 'system packages',
  isDone: () => missing().length === 0,
  work: async run => {
    const command = ['sh', '-c', installing(missing(), { apt: QUIET })]
    say(
      `installing ${missing()
        .flatMap(([, names]) => names)
        .join(' ')}`,
    )
    await run.whole(...(is_root ? [command[0], command.slice(1)] : ['sudo', ['-n', ...command]]))
  },
  get remedy() {
    return `Run this by hand, then the same command again:\n\n  ${byHand(missing())}\n`
  },
}

/**
 * The promtool of Debian's package prometheus, alone: to install the package would start its server. Where it cannot be
 * had, the test that needs it is skipped, and it is not asked for again.
 */
const PROMTOOL_FOLDER = 'build/promtool'
const promtool = {
  name: 'promtool',
  needs: ['system packages'],
  inputs: () => ['prometheus'],
  outputs: [],
  stamp: `${PROMTOOL_FOLDER}/.stamp`,
  work: async run => {
    if (machineAt().command('promtool') || !mayInstall()) return
    mkdirSync(PROMTOOL_FOLDER, { recursive: true })
    const commands = [
      'apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 download prometheus',
      'dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool',
    ]
    await run('bash', ['-o', 'pipefail', '-c', `cd ${PROMTOOL_FOLDER} && ${commands.join(' && ')}`]).catch(
      ({ message }) => say(`promtool cannot be had, and its test is skipped (${message})`),
    )
    for (const name of readdirSync(PROMTOOL_FOLDER)) if (name.endsWith('.deb')) rmSync(join(PROMTOOL_FOLDER, name))
  },
}

const web_console = {
  name: 'console',
  gives_way,
  needs: ['npm packages'],
  inputs: () => [
    ...filesBelow('control/console'),
    ...['console', 'icon-paths', 'world-shapes'].map(name => `scripts/${name}.mjs`),
    'package-lock.json',
  ],
  outputs: ['build/console/index.html'],
  stamp: 'build/.stamp-console',
  work: run => run(process.execPath, ['scripts/console.mjs']),
}

const SHIPPED = ['core', 'signaling', 'media', 'control', 'markup', 'native', 'bin']
const sourcesOf = folders => folders.flatMap(filesBelow).filter(file => /\.(ts|json)$/.test(file))
const bundle = {
  name: 'bundle',
  gives_way,
  needs: ['npm packages'],
  inputs: () => ['scripts/bundle.mjs', ...filesBelow('scripts/bundle'), 'package-lock.json', ...sourcesOf(SHIPPED)],
  outputs: ['build/bundle/bin/main.js'],
  stamp: 'build/bundle/.stamp',
  work: run => run(process.execPath, ['scripts/bundle.mjs']),
}

/** The output of tsc loads these; the bundle of users does not. */
const libraries_of_tests = {
  name: 'libraries of the tests',
  gives_way,
  needs: ['npm packages'],
  inputs: () => ['scripts/test-libraries.mjs', 'package-lock.json'],
  outputs: ['build/node_modules/kysely/package.json'],
  stamp: 'build/node_modules/.stamp',
  work: run => run(process.execPath, ['scripts/test-libraries.mjs']),
}

const typescript = {
  name: 'TypeScript',
  gives_way,
  needs: ['npm packages'],
  inputs: () => ['tsconfig.json', ...sourcesOf([...SHIPPED, 'bench', 'test'])],
  outputs: ['build/bin/main.js'],
  stamp: 'build/.stamp-tsc',
  // One checker takes half the CPU of four, because each checker resolves the shared types again.
  work: run => run('node_modules/.bin/tsc', ['-p', '.', '--singleThreaded']),
}

const lacking = missing()
if (lacking.length > 0) say(`missing: ${lacking.map(([what]) => what).join(', ')}`)
if (lacking.length > 0 && !mayInstall()) {
  say(`they cannot be installed from here. Run this once, then the same command again:\n\n  ${byHand(lacking)}\n`)
  process.exit(1)
}
const builders = [...native, driver_in_place, web_console, bundle]
/**
 * Removes the packages that only the steps before needed: a third of the folder. The first set-up of a tree alone does
 * this. Whoever builds again has edited or updated it, and gets them back for good.
 */
const kept = packagesOfRunning(manifest, lock)
const without_builders = {
  name: 'packages of the build, which go',
  needs: builders.map(({ name }) => name),
  inputs: () => [LOCKED],
  // npm leaves out optional packages that are for other machines.
  outputs: kept.filter(path => !lock.packages[path].optional).map(path => `${path}/package.json`),
  stamp: RUN_STAMP,
  work: async () => {
    rmSync(START_STAMP, { force: true })
    // npm believes this file, unless it is gone.
    rmSync('node_modules/.package-lock.json', { force: true })
    for (const path of packagesOfBuilds(manifest, lock)) rmSync(path, { recursive: true, force: true })
  },
}
const first_set_up = purpose === 'start' && !STAMPS.some(existsSync)
// A tree that has the packages of the tests keeps them.
const few = of_users && !existsSync(ALL_STAMP)
const enough = () => purpose === 'start' && isDone(without_builders) && builders.every(isDone)
const packages = few ? { ...start_packages, isDone: () => hasStamp(start_packages) || enough() } : all_packages
const steps = [
  packages,
  system_packages,
  ...builders,
  ...(first_set_up ? [without_builders] : []),
  ...(of_users ? [] : [libraries_of_tests, typescript, promtool]),
]
if (!(await runSteps(steps, say))) process.exitCode = 1
