import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { MAIN } from '../../../bench/up.ts'
import { openState } from '../../../core/state/index.ts'
import { strowger } from '../../support/child.ts'
import t from '../../support/harness/index.ts'

// The bundle that users run (scripts/bundle.mjs).

t.test('the stack trace of an unexpected error names lines of the TypeScript sources', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bundle-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  // A key that is a folder. Nothing expects this error, so it ends the command with its trace.
  writeFileSync(join(folder, 'strowger.sqlite'), '')
  mkdirSync(join(folder, 'master.key'))
  const { code, stderr } = await strowger(['project', 'list'], { STROWGER_DATA: folder }).ended
  t.equal(code, 1)
  const frames = [
    ...stderr.matchAll(/ at (?:Object\.)?(\w+) \((?:[^():]+\/)?((?:core|bin)\/[\w/-]+\.ts):(\d+):(\d+)\)/g),
  ]
  t.match(
    frames.map(([, , file]) => file),
    ['core/runtime/private-files.ts', 'core/runtime/config.ts', 'core/runtime/config.ts', 'bin/installation.ts'],
  )
  const [, , file = '', line, column] = frames[0] ?? []
  t.match(
    readFileSync(file, 'utf8')
      .split('\n')
      [Number(line) - 1]?.slice(Number(column) - 1),
    /^readFileSync\(/,
  )
  t.notMatch(stderr, 'build/bundle')
})

const HOOKS = `
  import { writeSync } from 'node:fs'
  export function load(url, context, next) {
    writeSync(3, url + ' ')
    return next(url, context)
  }`
/** A module that writes the URL of each module that the process loads to descriptor 3. */
const REPORTER = `
import { register } from 'node:module'
register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOOKS)}`)})
`

/**
 * Runs commands of the bundle one after the other, each by the module that `bin/strowger` starts and with a loader of
 * chunks that has none. All are in one process, because one that reports its modules takes half a second to start. A
 * command has ended when the process has nothing left to do.
 */
const RUNNER = `
import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
class Left extends Error {}
process.exit = () => {
  throw new Left()
}
process.on('unhandledRejection', error => {
  if (!(error instanceof Left)) throw error
})
const [node, , main, ...commands] = process.argv
const require = createRequire(main)
const loader = require.resolve('../load.cjs')
const chunks = () => [...require(loader).loaded.keys()].map(path => join(dirname(loader), path))
let begun = 0
process.on('beforeExit', () => {
  if (begun > 0) {
    const files = [...chunks(), ...Object.keys(require.cache)]
    writeSync(3, files.map(file => pathToFileURL(file) + ' ').join(''))
  }
  if (begun === commands.length) return
  writeSync(1, '\\0')
  writeSync(3, '\\0')
  process.argv = [node, main, ...commands[begun].split(' ')]
  for (const path of [loader, main]) delete require.cache[path]
  // What is loaded already keeps no process of Node.js 24 alive.
  setImmediate(() => void import(main + '?' + begun++))
})`

interface Ran {
  readonly stdout: string
  /** The packages whose code it has loaded, beside those of the commands before it. */
  readonly packages: Set<string>
}

/** Runs commands of the bundle. Returns what each did. */
async function loadedBy(folder: string, commands: readonly string[]): Promise<Ran[]> {
  const list = join(folder, 'loaded')
  writeFileSync(list, '')
  writeFileSync(join(folder, 'reporter.mjs'), REPORTER)
  writeFileSync(join(folder, 'runner.mjs'), RUNNER)
  const script = 'reporter=$1; list=$2; shift 2; exec node --import "$reporter" "$@" 3>"$list"'
  const { stdout } = await promisify(execFile)(
    'sh',
    ['-c', script, 'sh', join(folder, 'reporter.mjs'), list, join(folder, 'runner.mjs'), MAIN, ...commands],
    { env: { PATH: process.env['PATH'] ?? '', STROWGER_DATA: join(folder, 'data') } },
  )
  const [, ...printed] = stdout.split('\0')
  const [, ...loaded] = readFileSync(list, 'utf8').split('\0')
  return printed.map((text, index) => ({ stdout: text, packages: packagesOf(loaded[index] ?? '') }))
}

/** The packages that modules are of, by the source maps of bundled ones. */
function packagesOf(urls: string): Set<string> {
  const files = urls
    .split(' ')
    .filter(url => url.startsWith('file:'))
    .map(url => fileURLToPath(url))
  const sources = files.flatMap(file => {
    const map = `${file}.map`
    return existsSync(map) ? (JSON.parse(readFileSync(map, 'utf8')) as { sources: string[] }).sources : [file]
  })
  return new Set(sources.flatMap(source => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? []))
}

/** Libraries that take tens of milliseconds or megabytes to load, and that no command needs. */
const HEAVY = [
  'koa',
  'koa-body',
  'zod',
  'undici',
  'werift',
  'pdfkit',
  'nodemailer',
  'drachtio-srf',
  'swagger-ui-dist',
  'prom-client',
  'ws',
]

t.test('every command explains itself, and loads neither other commands nor a heavy library to do so', async t => {
  const folder = t.testdir()
  const [list] = await loadedBy(folder, ['--help'])
  const { stdout = '', packages = [] } = list ?? {}
  t.same([...packages], ['commander'], 'the list of commands loads none of them')
  const commands = [...stdout.matchAll(/^ {2}([a-z]+) .*/gm)]
    .map(([, name = '']) => name)
    .filter(name => name !== 'help')
  t.ok(commands.length > 20)
  const helps = await loadedBy(
    folder,
    commands.map(name => `${name} --help`),
  )
  t.ok(
    helps.some(help => help.packages.has('kysely')),
    'some load what they run with',
  )
  for (const [index, name] of commands.entries()) {
    const help = helps[index]
    t.match(help?.stdout, new RegExp(`^Usage: strowger ${name}`), name)
    t.same(
      HEAVY.filter(library => help?.packages.has(library)),
      [],
      name,
    )
  }
  t.notOk(existsSync(join(folder, 'data')), 'help touches no data folder')
})

t.test('a command that reads the database loads no heavy library either', async t => {
  const folder = t.testdir()
  const data_dir = join(folder, 'data')
  mkdirSync(data_dir)
  await (await openState({ data_dir })).close()
  writeFileSync(join(data_dir, 'master.key'), '07'.repeat(32), { mode: 0o600 })
  const [list] = await loadedBy(folder, ['project list'])
  t.equal(list?.stdout, 'none\n')
  t.ok(list?.packages.has('kysely'))
  // What admits calls reads numbers.
  t.notOk(list?.packages.has('libphonenumber-js'), 'nor the procedures of calls')
  t.same(
    HEAVY.filter(library => list?.packages.has(library)),
    [],
  )
})
