import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DATABASE_FILE } from '../../core/state/index.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { addTrunk, ask, isAnswered, quantile, setUpsDuring } from '../set-up.ts'
import { MAIN, type Made, startIn, startUp } from '../up.ts'
import { fillWithCalls } from './fill.ts'

// Measures an export of calls by a running platform: rows a second, memory above rest, and how much longer calls take
// to set up meanwhile. Does the same while a rate list is compared and imported by the command. Before, between and
// after, calls are set up in peace.
//
//   npm run bench -- export [--rows 10000000] [--rates 150000] [--quiet 20] [--folder FOLDER] [--cold]
//
// The calls are written while the platform is down. `--folder` keeps the data folder, and a later run with it begins
// with the calls that are there. With `--cold` the system forgets its pages of the database every second, as if it had
// no memory for them; no call may be refused then.

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    // An import takes 8 MiB of text.
    rates: { type: 'string', default: '150000' },
    quiet: { type: 'string', default: '20' },
    folder: { type: 'string' },
    cold: { type: 'boolean', default: false },
  },
})
const ROWS = Number(options.rows)
const RATES = Number(options.rates)
const QUIET_MS = Number(options.quiet) * 1000
const LIMITS = { rows_a_second: 50_000, mib_above_rest: 64, set_up_p99: 1.1 } as const
const HOST = '127.0.0.61'
const LOOK_MS = 100
/** How often the job is asked for. Each request costs the control process time and memory that no export takes. */
const POLL_MS = 1000
const MIB = 1024 * 1024

/** A start examines the whole database. */
const START_LIMIT_MS = 900_000
const SETTINGS = { STROWGER_LOG: 'error' }

const { folder, made } = await filled()
const starting = performance.now()
const up = await startIn(folder, SETTINGS, { made, limit_ms: START_LIMIT_MS })
const start_seconds = (performance.now() - starting) / 1000
const forgetting = options.cold ? setInterval(forgetPages, 1000) : undefined
try {
  report(await measured())
} finally {
  clearInterval(forgetting)
  await (options.folder === undefined ? up.stop() : up.halt())
}

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

async function measured() {
  const { sip_port, pids } = up
  const agent = await UserAgent.open({ listeners: [{ protocol: 'udp', host: HOST, port: 0 }] })
  const from = { host: HOST, sip_port, caller: made.numbers[0] ?? '' }
  while (!(await isAnswered(agent, from))) await rest(LOOK_MS)
  const during = (work: Promise<unknown>) => setUpsDuring(agent, from, work)
  const control = pids['control'] ?? 0
  const in_peace = cpuOf(control)
  const [at_rest, first] = await mostMemory(control, during(rest(QUIET_MS)))
  const quiet = [first]
  // What the calls alone cost the process that exports.
  const cpu_in_peace = (cpuOf(control) - in_peace) / (QUIET_MS / 1000)

  const begun = performance.now()
  const cpu = cpuOf(control)
  let bytes = 0
  const exporting = exported(up.made).then(job => {
    bytes = job.bytes
  })
  const [most, while_exporting] = await mostMemory(control, during(exporting))
  const seconds = (performance.now() - begun) / 1000
  const cpu_seconds = cpuOf(control) - cpu
  quiet.push(await during(rest(QUIET_MS)))

  const list = join(folder, 'rates.csv')
  writeFileSync(list, rateList())
  const importing = performance.now()
  const while_importing = await during(imported(folder, list))
  const import_seconds = (performance.now() - importing) / 1000
  quiet.push(await during(rest(QUIET_MS)))
  agent.close()
  return {
    rows: ROWS,
    rates: RATES,
    start_seconds,
    export_seconds: seconds,
    export_cpu_seconds: cpu_seconds,
    cpu_us_a_row: ((cpu_seconds - cpu_in_peace * seconds) / ROWS) * 1e6,
    rows_a_second: ROWS / seconds,
    bytes,
    mib_above_rest: (most - at_rest) / MIB,
    import_seconds,
    quiet: quiet.flat().sort((a, b) => a - b),
    while_exporting,
    while_importing,
  }
}

function rest(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
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
 * Returns the most resident memory of a process while `work` lasts, and its result. At rest, too, memory rises and
 * falls by 10 MiB between two collections, so peaks are compared with peaks.
 */
async function mostMemory<T>(pid: number, work: Promise<T>): Promise<readonly [number, T]> {
  let most = rssOf(pid)
  const looking = setInterval(() => {
    most = Math.max(most, rssOf(pid))
  }, LOOK_MS)
  try {
    const result = await work
    return [most, result]
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

async function exported(by: Made): Promise<{ readonly bytes: number }> {
  const { id } = await ask(by, '/exports', { format: 'csv' }, { 'idempotency-key': randomUUID() })
  for (;;) {
    const job = await ask(by, `/exports/${id}`)
    if (job.state === 'completed') return job
    if (job.state === 'failed') throw new Error(job.error)
    await rest(POLL_MS)
  }
}

async function imported(folder: string, list: string): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, STROWGER_DATA: folder }
  const child = spawn(process.execPath, [MAIN, 'rates', 'import', list, '--yes', '--confirm'], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`the import ended with ${code}`)
}

/** A list of RATES prefixes. Those of the called numbers stay as they are. */
function rateList(): string {
  const lines = ['prefix,label,rate,unit,initial,additional', '234,Nigeria,14,minute,60,60']
  for (let at = 0; at < RATES; at++) lines.push(`49${1_000_000 + at},Germany ${at},${10 + (at % 90)},minute,60,60`)
  return `${lines.join('\n')}\n`
}

function report(figures: Awaited<ReturnType<typeof measured>>): void {
  const { quiet, while_exporting, while_importing, ...rest } = figures
  const p99 = {
    quiet: quantile(quiet, 0.99),
    while_exporting: quantile(while_exporting, 0.99),
    while_importing: quantile(while_importing, 0.99),
  }
  const ratios = {
    while_exporting: p99.while_exporting / p99.quiet,
    while_importing: p99.while_importing / p99.quiet,
  }
  const refused = [...quiet, ...while_exporting, ...while_importing].filter(ms => !Number.isFinite(ms)).length
  const met = {
    rows_a_second: rest.rows_a_second >= LIMITS.rows_a_second,
    mib_above_rest: rest.mib_above_rest <= LIMITS.mib_above_rest,
    while_exporting: ratios.while_exporting <= LIMITS.set_up_p99,
    while_importing: ratios.while_importing <= LIMITS.set_up_p99,
    refused: refused === 0,
  }
  const word = (name: keyof typeof met): string => (met[name] ? 'met' : 'MISSED')
  console.log(`start        ${start_seconds.toFixed(1)} s with ${rest.rows} calls`)
  console.log(
    `export       ${rest.rows} calls in ${rest.export_seconds.toFixed(1)} s: ${rest.rows_a_second.toFixed(0)} a second, ` +
      `at least ${LIMITS.rows_a_second}: ${word('rows_a_second')}; ${(rest.bytes / MIB).toFixed(0)} MiB; ` +
      `${rest.export_cpu_seconds.toFixed(1)} s of CPU in the control process, ` +
      `${rest.cpu_us_a_row.toFixed(1)} µs a row above what the calls take`,
  )
  console.log(
    `memory       ${rest.mib_above_rest.toFixed(0)} MiB above rest, at most ${LIMITS.mib_above_rest}: ${word('mib_above_rest')}`,
  )
  for (const [name, ratio] of Object.entries(ratios) as [keyof typeof ratios, number][])
    console.log(
      `set-up       p99 ${p99[name].toFixed(1)} ms ${name.replace('_', ' ')} (${figures[name].length} calls), ` +
        `${p99.quiet.toFixed(1)} ms in peace (${quiet.length}): x ${ratio.toFixed(2)}, at most ${LIMITS.set_up_p99}: ${word(name)}`,
    )
  console.log(`refused      ${refused} calls, at most 0: ${word('refused')}`)
  console.log(`import       ${rest.rates} rates compared and imported in ${rest.import_seconds.toFixed(1)} s`)
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), limits: LIMITS, ...rest, refused, p99, ratios, met }
  writeFileSync('bench/results/export.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = Object.values(met).every(Boolean) ? 0 : 1
}
