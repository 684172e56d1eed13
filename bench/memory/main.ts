import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startPlatform } from '../platform/platform.ts'
import { tellUnderCalls, underCalls } from './under-calls.ts'
import { type Memory, memoryOf, slopeOf } from './watched.ts'

// Measures the memory of each process of a platform: at once after the start, after a rest, and after calls, with the
// slope of each rest. The reference is a process of Node.js that does nothing: its pages of the program itself count in
// every process, though the machine holds them once. `own` leaves them out, `pss` has their share. The sandbox carrier
// is on, and sleeps.
//
//   npm run bench -- memory [--rest 60] [--calls 1000] [--rate 20]     --calls 0: the first rest alone
//
// With --minutes it says instead whether each process levels off while calls talk and others come and go:
//
//   npm run bench -- memory --minutes 7 [--relayed 300] [--rate 20]

/** The most that all processes may take together at rest, in processes of Node.js that do nothing. */
const MOST_RATIO = 2.2
const SETTLE_MS = 5000
const LOOK_MS = 1000
/** How often a long rest prints the memory of each process. */
const LINE_S = 600

const { values: given } = parseArgs({
  options: {
    /** Seconds of each rest. */
    rest: { type: 'string', default: '60' },
    calls: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '20' },
    /** Minutes under calls, in place of the rests. */
    minutes: { type: 'string', default: '0' },
    relayed: { type: 'string', default: '300' },
  },
})
const [rest_s = 0, calls = 0, rate = 0] = [given.rest, given.calls, given.rate].map(Number)
const [minutes = 0, relayed = 0] = [given.minutes, given.relayed].map(Number)

interface Rest {
  readonly first: Memory
  readonly last: Memory
  /** MiB a minute of `own`. */
  readonly slope: number
}

if (minutes > 0) {
  const all = await underCalls({ minutes, relayed, rate })
  tellUnderCalls(all)
  keep({ minutes, relayed, rate, processes: all })
  process.exit(all.every(({ level }) => level) ? 0 : 1)
}
const bare = await memoryOfNode()
const platform = await startPlatform({ STROWGER_RTP_PORTS: '20000-29999', STROWGER_SANDBOX: 'on' })
try {
  await pause(SETTLE_MS)
  const before = await rested()
  const { failed } = calls > 0 ? await platform.calls(rate, calls, 0) : { failed: 0 }
  const after = calls > 0 ? await rested() : before
  if (failed > 0) console.log(`${failed} of ${calls} calls failed`)
  process.exitCode = report(before, after) && failed === 0 ? 0 : 1
} finally {
  await platform.stop()
}

/** Watches every process for the length of a rest. */
async function rested(): Promise<Map<string, Rest>> {
  const looks = new Map<string, Memory[]>(Object.keys(platform.pids).map(name => [name, []]))
  for (let look = 0; look < rest_s; look++) {
    for (const [name, list] of looks) list.push(memoryOf(platform.pids[name] ?? 0))
    if (rest_s > LINE_S && look % LINE_S === 0) tellLast(look, looks)
    await pause(LOOK_MS)
  }
  if (rest_s > LINE_S) tellLast(rest_s, looks)
  return new Map(
    [...looks].map(([name, list]) => {
      const [first, last] = [list[0], list.at(-1)]
      if (!first || !last) throw new Error('--rest must be at least 1')
      return [name, { first, last, slope: slopeOf(list.map(({ own }) => own)) * (60_000 / LOOK_MS) }]
    }),
  )
}

/** Prints the newest memory of each process, so that a slope is seen before the end. */
function tellLast(second: number, looks: ReadonlyMap<string, readonly Memory[]>): void {
  const last = [...looks].map(([name, list]) => ({ name, rss: list.at(-1)?.rss ?? 0, own: list.at(-1)?.own ?? 0 }))
  const sum = (of: 'rss' | 'own'): string => last.reduce((all, one) => all + one[of], 0).toFixed(1)
  const each = last.map(({ name, rss, own }) => `${name} ${rss.toFixed(1)}/${own.toFixed(1)}`).join(', ')
  console.log(`after ${(second / 60).toFixed(0)} min, rss/own in MiB: all ${sum('rss')}/${sum('own')}; ${each}`)
}

async function memoryOfNode(): Promise<Memory> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' })
  await pause(2000)
  const memory = memoryOf(child.pid ?? 0)
  child.kill('SIGKILL')
  return memory
}

/** Prints a line for each process. Returns whether they keep the limit. */
function report(before: ReadonlyMap<string, Rest>, after: ReadonlyMap<string, Rest>): boolean {
  const cells = (values: readonly (string | number)[]): string =>
    values
      .map((one, at) => (typeof one === 'number' ? one.toFixed(1) : one)[at === 0 ? 'padEnd' : 'padStart'](13))
      .join('')
  console.log(`MiB; rests of ${rest_s} s; ${calls} calls at ${rate}/s between them`)
  console.log(
    cells([
      'process',
      'rss at once',
      'rested',
      'after calls',
      'pss rested',
      'own at once',
      'rested',
      'after calls',
      'MiB/min',
      'after calls',
    ]),
  )
  const rows = [...before].map(([name, { first, last, slope }]) => {
    const { last: called, slope: slope_after } = after.get(name) ?? { last, slope }
    const { rss, pss, own } = last
    return { name, figures: [first.rss, rss, called.rss, pss, first.own, own, called.own, slope, slope_after] }
  })
  for (const { name, figures } of rows) console.log(cells([name, ...figures]))
  const sums = (rows[0]?.figures ?? []).map((_, at) => rows.reduce((sum, { figures }) => sum + (figures[at] ?? 0), 0))
  console.log(cells(['all', ...sums]))
  console.log(cells(['node alone', bare.rss, '', '', bare.pss, bare.own]))
  const ratio = (sums[1] ?? 0) / (bare.rss * rows.length)
  const bad = ratio > MOST_RATIO
  console.log(
    `at rest ${ratio.toFixed(2)} x as much as processes that do nothing (limit ${MOST_RATIO})${bad ? ' ABOVE' : ''}`,
  )
  keep({ rest_s, calls, rate, bare, ratio, processes: rows, sums })
  return !bad
}

function keep(results: object): void {
  mkdirSync('bench/results', { recursive: true })
  const text = JSON.stringify({ at: new Date().toISOString(), ...results }, null, 2)
  writeFileSync('bench/results/memory.json', `${text}\n`)
}
