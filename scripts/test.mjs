// `npm test` runs the check and every test file; `npm test -- test/flows` or `npm test -- test/unit/x.test.ts` a part.
//
//   --changed     only the test files that the change of this branch and of the working tree can reach
//   --times       prints the times of every file at the end
//   --jobs=N      cores that the tests keep busy; by default those of the machine
//   --alone       gives each file a process of its own
//   --write-times writes test/times.json, the expected times of a machine that has not run the tests yet
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { LAST_TIMES, RUNS } from './test/assertions.mjs'
import { changedFiles, reachedTests } from './test/changed.mjs'
import { groupsOf, testsBelow } from './test/groups.mjs'
import { Printer } from './test/printer.mjs'
import { runGroup } from './test/process.mjs'
import { Meter, nextGroup } from './test/schedule.mjs'
import { scratchFolder } from './test/scratch.mjs'

/** The times of the machine where somebody last wrote them for all. */
const COMMITTED = 'test/times.json'
/** The expected time of a file that has never run, in ms: one that starts a platform, which waits a lot, and any other. */
const unknown_ms = file => (/^test\/(flows|cluster|adversary)\//.test(file) ? 30_000 : 5_000)
const UNKNOWN_LOAD = 0.5

const FLAGS = /^--(changed|times|alone|write-times|jobs=\d+)$/

const fail = text => {
  console.error(text)
  process.exit(2)
}

const read = path => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {})

/** Returns the test files, by their path in the tree, that an argument names. */
function named(argument) {
  const path = relative('.', argument)
  if (!existsSync(path)) fail(`test: there is no ${argument}`)
  if (statSync(path).isDirectory()) return testsBelow(path)
  return path.endsWith('.test.ts') ? [path] : fail(`test: ${argument} is no test file`)
}

function chosen(flags, paths) {
  const asked = paths.length > 0 ? [...new Set(paths.flatMap(named))] : testsBelow('test')
  if (!flags.has('--changed')) return asked
  const changed = changedFiles()
  const reached = reachedTests(changed)
  console.log(`test: ${changed.length} changed files reach ${reached.size} of ${asked.length} test files`)
  return asked.filter(file => reached.has(file))
}

/** How often the machine is measured while a group waits for room. */
const LOOK_MS = 1000

/** Runs the groups, the longest first, as many at once as keep `cores` busy and leave live calls their time. */
async function runAll(groups, cores, printer, place) {
  const waiting = [...groups].sort((a, b) => b.expected_ms - a.expected_ms)
  const running = new Map()
  const meter = new Meter()
  while (waiting.length > 0 || running.size > 0) {
    const group = nextGroup(waiting, [...running.keys()], { cores, ...meter.look() })
    if (group === undefined) {
      await Promise.race([...running.values(), setTimeout(LOOK_MS, null, { ref: false })])
      continue
    }
    waiting.splice(waiting.indexOf(group), 1)
    group.started_at = Date.now()
    running.set(
      group,
      runGroup(group, printer, place).finally(() => running.delete(group)),
    )
  }
}

const args = process.argv.slice(2)
const flags = new Set(args.filter(arg => arg.startsWith('-')))
for (const flag of flags) if (!FLAGS.test(flag)) fail(`test: unknown option ${flag}; see scripts/test.mjs`)
const paths = args.filter(arg => !arg.startsWith('-'))
const jobs = Number([...flags].find(flag => flag.startsWith('--jobs='))?.slice(7) ?? availableParallelism())

const times = { ...read(COMMITTED), ...read(LAST_TIMES) }
const expected_ms = file => times[file]?.wall_ms ?? unknown_ms(file)
const expected_cpu_ms = file => times[file]?.cpu_ms ?? UNKNOWN_LOAD * expected_ms(file)
const files = chosen(flags, paths)
const groups = groupsOf(files, expected_ms, { alone: flags.has('--alone'), expected_cpu_ms }).map(group => ({
  ...group,
  expected_cpu_ms: group.files.reduce((sum, file) => sum + expected_cpu_ms(file), 0),
}))
// The whole check is one more process. It begins first, because a fault that it finds is the cheapest to know.
const whole = paths.length === 0 && !flags.has('--changed')
if (whole) groups.push({ check: true, files: [], expected_ms: Number.POSITIVE_INFINITY })

const printer = new Printer(files.length)
const scratch = scratchFolder()
// Programs that end just now may still write.
const removed = { recursive: true, force: true, maxRetries: 10 }
if (scratch !== undefined) process.once('exit', () => rmSync(scratch, removed))
const children = new Set()
for (const [signal, number] of Object.entries({ SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }))
  process.once(signal, () => {
    // The kernel ends the platforms and servers of a process with it.
    for (const child of children) child.kill('SIGKILL')
    console.log(`test: ended by ${signal}`)
    process.exit(128 + number)
  })
await runAll(groups, jobs, printer, { scratch, children })
const ran = printer.times()
mkdirSync('build', { recursive: true })
writeFileSync(LAST_TIMES, JSON.stringify({ ...read(LAST_TIMES), ...ran }))
const load = loadavg().map(Math.round)[0]
appendFileSync(RUNS, `${JSON.stringify({ at: new Date().toISOString(), load, ...printer.summary() })}\n`)
if (flags.has('--write-times')) {
  const all = { ...read(COMMITTED), ...ran }
  const present = Object.entries(all).filter(([file]) => existsSync(join('.', file)))
  const lines = present
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, time]) => `  "${file}": { "wall_ms": ${time.wall_ms}, "cpu_ms": ${time.cpu_ms} }`)
  writeFileSync(COMMITTED, `{\n${lines.join(',\n')}\n}\n`)
}
printer.close({ all: flags.has('--times') })
