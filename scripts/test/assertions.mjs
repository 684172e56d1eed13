// Prints how many assertions each folder of tests has, and the runs of `npm test` on this machine:
//
//   node scripts/test/assertions.mjs [--before COMMIT]
//
// "written" counts the assertions in the sources, also those of COMMIT; "passed" those of each file's last run, where a
// loop passes one assertion many times.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { testsBelow } from './groups.mjs'

/** What the runner keeps of each file's last run, and of each run, one JSON object a line. */
export const LAST_TIMES = 'build/test-times.json'
export const RUNS = 'build/test-runs.jsonl'

const ASSERTION =
  /\bt\.(?:pass|fail|ok|notOk|equal|not|same|strictSame|match|notMatch|type|throws|doesNotThrow|rejects)\(/g
const FOLDER = /^test\/(?:unit|conformance)\/[^/]+|^test\/[^/]+/

const git = (...args) => execFileSync('git', args, { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })

export const writtenIn = text => text.match(ASSERTION)?.length ?? 0

/** Sums a count of each file by folder. */
export function byFolder(files, countOf) {
  const sums = new Map()
  for (const file of files) {
    const folder = FOLDER.exec(dirname(file))?.[0] ?? dirname(file)
    sums.set(folder, (sums.get(folder) ?? 0) + countOf(file))
  }
  return sums
}

/** Prints rows in columns. The first column is text, the others are numbers. */
function table(head, rows) {
  const widths = head.map((name, at) => Math.max(...[name, ...rows.map(row => row[at])].map(cell => `${cell}`.length)))
  const lineOf = row =>
    row.map((cell, at) => (at === 0 ? `${cell}`.padEnd(widths[0]) : `${cell}`.padStart(widths[at]))).join('  ')
  console.log([head, ...rows].map(lineOf).join('\n'))
}

function printAssertions(before) {
  const files = testsBelow('test')
  const last = existsSync(LAST_TIMES) ? JSON.parse(readFileSync(LAST_TIMES, 'utf8')) : {}
  const written = byFolder(files, file => writtenIn(readFileSync(file, 'utf8')))
  const passed = byFolder(files, file => last[file]?.pass ?? 0)
  const earlier = before === undefined ? [] : git('ls-tree', '-r', '--name-only', before, 'test').split('\n')
  const then = byFolder(
    earlier.filter(file => file.endsWith('.test.ts')),
    file => writtenIn(git('show', `${before}:${file}`)),
  )
  const rows = [...new Set([...written.keys(), ...then.keys()])]
    .sort()
    .map(folder => [folder, then.get(folder) ?? 0, written.get(folder) ?? 0, passed.get(folder) ?? 0])
  const sum = at => rows.reduce((total, row) => total + row[at], 0)
  table(['folder', `written at ${before ?? '-'}`, 'written', 'passed'], [...rows, ['all', sum(1), sum(2), sum(3)]])
}

function printRuns() {
  if (!existsSync(RUNS)) return
  const runs = readFileSync(RUNS, 'utf8').trim().split('\n').map(JSON.parse)
  const cells = run => [run.at, run.files, run.passed, run.failed.length, run.wall_s, run.cpu_s, run.load]
  console.log('')
  table(['run', 'files', 'passed', 'failed files', 'wall s', 'CPU s', 'load'], runs.map(cells))
}

if (process.argv[1]?.endsWith('assertions.mjs')) {
  printAssertions(process.argv[2] === '--before' ? process.argv[3] : undefined)
  printRuns()
}
