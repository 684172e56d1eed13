import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DATABASE_FILE } from '../../core/state/index.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { addTrunk, isAnswered, setUps } from '../set-up.ts'
import { MAIN, type Made, startIn, startUp } from '../up.ts'
import { fillWithCalls } from './fill.ts'
import { beginJob, type Job } from './job.ts'
import { slowdown, type Turn } from './turns.ts'

// Measures an export of calls by a running platform: rows a second, memory above rest, and how much longer calls take
// to set up meanwhile. Does the same while rate lists are compared and imported by the command. Work and peace take
// turns, each with as many calls, and each second pair begins with the peace: a machine that gets slower, or a platform
// that still gets faster, does so for both. The job of the export is interrupted after each turn, and each list is one.
//
//   npm run bench -- export [--rows 10000000] [--rates 150000] [--lists 7] [--turn 20] [--folder FOLDER] [--cold]
//
// The calls are written while the platform is down, and the system has the database in memory when it starts.
// `--folder` keeps the data folder, and a later run with it begins with the calls that are there. With `--cold` the
// system forgets its pages of the database every second, as if it had no memory for them; no call may be refused then.

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    // An import takes 8 MiB of text.
    rates: { type: 'string', default: '150000' },
    lists: { type: 'string', default: '7' },
    /** Seconds of a turn of the export. */
    turn: { type: 'string', default: '20' },
    folder: { type: 'string' },
    cold: { type: 'boolean', default: false },
  },
})
const ROWS = Number(options.rows)
const RATES = Number(options.rates)
const LISTS = Number(options.lists)
const TURN_MS = Number(options.turn) * 1000
const LIMITS = { rows_a_second: 50_000, mib_above_rest: 64, set_up_p99: 1.1 } as const
const HOST = '127.0.0.61'
const LOOK_MS = 100
/** Calls before the first one that is measured: processes that have just started compile what they run. */
const WARM_UP_CALLS = 3000
/** Longer than a slice of an export takes. */
const STILL_MS = 4000
const MIB = 1024 * 1024

/** A start examines the whole database. */
const START_LIMIT_MS = 900_000
const SETTINGS = { STROWGER_LOG: 'error' }

const { folder, made } = await filled()
if (!options.cold) await remember()
const starting = performance.now()
const up = await startIn(folder, SETTINGS, { made, limit_ms: START_LIMIT_MS })
const start_seconds = (performance.now() - starting) / 1000
const forgetting = options.cold ? setInterval(forgetPages, 1000) : undefined
const control = up.pids['control'] ?? 0
try {
  const agent = await UserAgent.open({ listeners: [{ protocol: 'udp', host: HOST, port: 0 }] })
  const from = { host: HOST, sip_port: up.sip_port, caller: up.made.numbers[0] ?? '' }
  while (!(await isAnswered(agent, from))) await rest(LOOK_MS)
  const calls = (goesOn: (calls: number) => boolean) => setUps(agent, from, goesOn)
  await calls(count => count < WARM_UP_CALLS)
  report({ exporting: await whileExporting(calls), importing: await whileImporting(calls) })
  agent.close()
} finally {
  clearInterval(forgetting)
  await (options.folder === undefined ? up.stop() : up.halt())
}

type Calls = (goesOn: (calls: number) => boolean) => Promise<number[]>

/** Returns a data folder with ROWS calls, and what the first start of its platform has printed. */
async function filled(): Promise<{ readonly folder: string; readonly made: Made }> {
  const note = options.folder === undefined ? null : join(options.folder, 'bench.json')
  if (note !== null && existsSync(note)) {
    const kept = JSON.parse(readFileSync(note, 'utf8'))
    if (kept.rows !== ROWS) throw new Error(`${note} is of ${kept.rows} calls`)
    return { folder: options.folder ?? '', made: kept.made }
  }
  if (options.folder !== undefined) mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  const first = await (options.folder === undefined ? startUp('export', SETTINGS) : startIn(options.folder, SETTINGS))
  await addTrunk(first.made, `${HOST}/32`)
  await first.halt()
  const begun = performance.now()
  fillWithCalls(first.folder, first.made.project_id, ROWS)
  console.log(`fill         ${ROWS} calls written in ${((performance.now() - begun) / 1000).toFixed(0)} s`)
  if (note !== null) writeFileSync(note, JSON.stringify({ rows: ROWS, made: first.made }), { mode: 0o600 })
  return { folder: first.folder, made: first.made }
}

async function whileExporting(calls: Calls) {
  const job = await beginJob(folder, up.made)
  await stands(job)
  const turns: Turn[] = []
  const sums = { rows: 0, seconds: 0, cpu_busy: 0, seconds_busy: 0, cpu_peace: 0, seconds_peace: 0 }
  const most = { busy: 0, peace: 0 }
  const inPeace = (wanted: number) => measured(() => calls(count => count < wanted))
  while (job.progress().state !== 'completed') {
    const peace_before = await peaceBefore(turns, inPeace)
    const before = job.progress().rows
    job.goOn()
    await until(() => job.progress().rows > before)
    const begun = performance.now()
    const first = job.progress()
    let latest = { rows: first.rows, at: begun }
    const busy = await measured(() =>
      calls(() => {
        const { rows, state } = job.progress()
        if (rows > latest.rows) latest = { rows, at: performance.now() }
        return state !== 'completed' && performance.now() - begun < TURN_MS
      }),
    )
    job.pause()
    sums.rows += latest.rows - first.rows
    sums.seconds += (latest.at - begun) / 1000
    await stands(job)
    const peace = peace_before ?? (await inPeace(busy.result.length))
    sums.cpu_busy += busy.cpu
    sums.seconds_busy += busy.seconds
    sums.cpu_peace += peace.cpu
    sums.seconds_peace += peace.seconds
    most.busy = Math.max(most.busy, busy.most)
    most.peace = Math.max(most.peace, peace.most)
    turns.push({ busy: busy.result, peace: peace.result })
  }
  const { bytes } = job.progress()
  job.close()
  const rows_a_second = sums.rows / sums.seconds
  const share = sums.cpu_busy / sums.seconds_busy - sums.cpu_peace / sums.seconds_peace
  return {
    turns,
    bytes,
    rows_a_second,
    cpu_us_a_row: (share / rows_a_second) * 1e6,
    mib_above_rest: (most.busy - most.peace) / MIB,
  }
}

async function whileImporting(calls: Calls) {
  const turns: Turn[] = []
  const inPeace = (wanted: number) => calls(count => count < wanted)
  let seconds = 0
  for (let at = 0; at < LISTS; at++) {
    const list = join(folder, 'rates.csv')
    writeFileSync(list, rateList())
    const peace_before = await peaceBefore(turns, inPeace)
    let over = false
    const begun = performance.now()
    const importing = imported(list).finally(() => {
      over = true
      seconds += (performance.now() - begun) / 1000
    })
    // The error comes out below.
    importing.catch(() => undefined)
    const busy = await calls(() => !over)
    await importing
    turns.push({ busy, peace: peace_before ?? (await inPeace(busy.length)) })
  }
  return { turns, seconds, rates: LISTS * RATES }
}

/** The peace of a turn that begins with it, with as many calls as the turn before had; null for the others. */
async function peaceBefore<T>(turns: readonly Turn[], inPeace: (calls: number) => Promise<T>): Promise<T | null> {
  return turns.length % 2 === 1 ? await inPeace(turns.at(-1)?.busy.length ?? 0) : null
}

function rest(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await rest(LOOK_MS)
}

/** Waits until a job that was interrupted has written its last slice. */
async function stands(job: Job): Promise<void> {
  let latest = { rows: job.progress().rows, at: performance.now() }
  await until(() => {
    const { rows } = job.progress()
    if (rows !== latest.rows) latest = { rows, at: performance.now() }
    return performance.now() - latest.at > STILL_MS
  })
}

/** Reads the database once: a machine that has run for a while has the pages in memory that calls change. */
async function remember(): Promise<void> {
  for await (const _ of createReadStream(join(folder, DATABASE_FILE), { highWaterMark: MIB }));
}

/** Makes the system forget its pages of the database (POSIX_FADV_DONTNEED, which dd(1) asks for). */
function forgetPages(): void {
  const file = join(folder, DATABASE_FILE)
  spawn('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc', 'count=0'], { stdio: 'ignore' })
}

/** The resident memory of a process, in bytes. */
function rssOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
}

/**
 * Runs `work`. Returns the CPU time and the most resident memory of the control process meanwhile. At rest, too, memory
 * rises and falls by 10 MiB between two collections, so peaks are compared with peaks.
 */
async function measured<T>(work: () => Promise<T>) {
  let most = rssOf(control)
  const looking = setInterval(() => {
    most = Math.max(most, rssOf(control))
  }, LOOK_MS)
  const [begun, cpu] = [performance.now(), cpuOf(control)]
  try {
    const result = await work()
    return { result, most, cpu: cpuOf(control) - cpu, seconds: (performance.now() - begun) / 1000 }
  } finally {
    clearInterval(looking)
  }
}

/** The CPU time that a process has used, in seconds (proc(5): clock ticks of 10 ms). */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function imported(list: string): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, STROWGER_DATA: folder }
  const child = spawn(process.execPath, [MAIN, 'rates', 'import', list, '--yes', '--confirm'], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`the import ended with ${code}`)
}

/** A list of RATES prefixes, most of them with new prices. Those of the called numbers stay as they are. */
function rateList(): string {
  const shift = Math.floor(Math.random() * 90)
  const lines = ['prefix,label,rate,unit,initial,additional', '234,Nigeria,14,minute,60,60']
  for (let at = 0; at < RATES; at++)
    lines.push(`49${1_000_000 + at},Germany ${at},${10 + ((at + shift) % 90)},minute,60,60`)
  return `${lines.join('\n')}\n`
}

function report({
  exporting: { turns: export_turns, ...exporting },
  importing: { turns: import_turns, ...importing },
}: {
  readonly exporting: Awaited<ReturnType<typeof whileExporting>>
  readonly importing: Awaited<ReturnType<typeof whileImporting>>
}): void {
  const p99 = { exporting: slowdown(export_turns, 0.99), importing: slowdown(import_turns, 0.99) }
  const medians = { exporting: slowdown(export_turns, 0.5), importing: slowdown(import_turns, 0.5) }
  const all = [...export_turns, ...import_turns].flatMap(({ busy, peace }) => [...busy, ...peace])
  const refused = all.filter(ms => !Number.isFinite(ms)).length
  const met = {
    rows_a_second: exporting.rows_a_second >= LIMITS.rows_a_second,
    mib_above_rest: exporting.mib_above_rest <= LIMITS.mib_above_rest,
    exporting: p99.exporting.ratio <= LIMITS.set_up_p99,
    importing: p99.importing.ratio <= LIMITS.set_up_p99,
    refused: refused === 0,
  }
  const word = (name: keyof typeof met): string => (met[name] ? 'met' : 'MISSED')
  console.log(`start        ${start_seconds.toFixed(1)} s with ${ROWS} calls`)
  console.log(
    `export       ${ROWS} calls, ${exporting.rows_a_second.toFixed(0)} a second, ` +
      `at least ${LIMITS.rows_a_second}: ${word('rows_a_second')}; ${(exporting.bytes / MIB).toFixed(0)} MiB; ` +
      `${exporting.cpu_us_a_row.toFixed(1)} µs a row above what the calls take`,
  )
  console.log(
    `memory       ${exporting.mib_above_rest.toFixed(0)} MiB above rest, at most ${LIMITS.mib_above_rest}: ` +
      word('mib_above_rest'),
  )
  console.log(`import       ${importing.rates} rates compared and imported in ${importing.seconds.toFixed(1)} s`)
  for (const name of ['exporting', 'importing'] as const) {
    const { calls, busy_ms, peace_ms, ratio, error } = p99[name]
    console.log(
      `set-up       while ${name}: p99 of ${calls} calls ${busy_ms.toFixed(1)} ms, of as many in peace ` +
        `${peace_ms.toFixed(1)} ms: x ${ratio.toFixed(2)} ± ${error.toFixed(2)}, at most ${LIMITS.set_up_p99}: ` +
        `${word(name)}; median x ${medians[name].ratio.toFixed(2)}`,
    )
  }
  console.log(`refused      ${refused} calls, at most 0: ${word('refused')}`)
  mkdirSync('bench/results', { recursive: true })
  const settings = { rows: ROWS, rates: RATES, lists: LISTS, turn_ms: TURN_MS }
  const figures = { settings, start_seconds, exporting, importing, refused, p99, medians }
  const results = { at: new Date().toISOString(), limits: LIMITS, ...figures, met }
  writeFileSync('bench/results/export.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = Object.values(met).every(Boolean) ? 0 : 1
}
