import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isPassing, openState } from '../../core/state/index.ts'
import { queueWrite } from '../../core/state/port.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { addTrunk, ask, isAnswered, quantile, setUpsDuring } from '../set-up.ts'
import { MAIN, startUp } from '../up.ts'

// Measures an export of calls by a running platform: rows a second, memory above rest, and how much longer calls take
// to set up meanwhile. Does the same while a rate list is compared and imported by the command. Before, between and
// after, calls are set up in peace.
//
//   npm run bench -- export [--rows 10000000] [--rates 1000000] [--quiet 20]

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    rates: { type: 'string', default: '1000000' },
    quiet: { type: 'string', default: '20' },
  },
})
const ROWS = Number(options.rows)
const RATES = Number(options.rates)
const QUIET_MS = Number(options.quiet) * 1000
const LIMITS = { rows_a_second: 50_000, mib_above_rest: 64, set_up_p99: 1.1 } as const
/** Rows of one insert. The platform waits for it. */
const CHUNK = 20_000
const HOST = '127.0.0.61'
const LOOK_MS = 100
const MIB = 1024 * 1024

const up = await startUp('export', { STROWGER_LOG: 'error' })
try {
  report(await measured())
} finally {
  await up.stop()
}

async function measured() {
  const { made, folder, sip_port, pids } = up
  await fill()
  await addTrunk(made, `${HOST}/32`)
  const agent = await UserAgent.open({ listeners: [{ protocol: 'udp', host: HOST, port: 0 }] })
  const from = { host: HOST, sip_port, caller: made.numbers[0] ?? '' }
  while (!(await isAnswered(agent, from))) await rest(LOOK_MS)
  await caughtUp()
  const during = (work: Promise<unknown>) => setUpsDuring(agent, from, work)
  const quiet = [await during(rest(QUIET_MS))]

  const control = pids['control'] ?? 0
  const at_rest = rssOf(control)
  let most = at_rest
  const looking = setInterval(() => {
    most = Math.max(most, rssOf(control))
  }, LOOK_MS)
  const begun = performance.now()
  const cpu = cpuOf(control)
  let bytes = 0
  const while_exporting = await during(
    exported(made).then(job => {
      bytes = job.bytes
    }),
  )
  const seconds = (performance.now() - begun) / 1000
  const cpu_seconds = cpuOf(control) - cpu
  clearInterval(looking)
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
    export_seconds: seconds,
    export_cpu_seconds: cpu_seconds,
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

/** Waits until the platform has read the calls that it found: no platform gets so many at once. */
async function caughtUp(): Promise<void> {
  const state = await openState({ data_dir: up.folder })
  const behind = async (): Promise<boolean> => {
    const last = await state.db
      .selectFrom('call')
      .select(eb => eb.fn.max('position').as('position'))
      .executeTakeFirst()
    const readers = await state.db.selectFrom('alert_cursor').select('position').execute()
    return readers.some(({ position }) => position < Math.min(ROWS, Number(last?.position)))
  }
  try {
    while (await behind()) await rest(LOOK_MS)
  } finally {
    await state.close()
  }
}

/** The resident memory of a process, in bytes. */
function rssOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
}

/** The CPU time that a process has used, in seconds (proc(5): clock ticks of 10 ms). */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function exported(made: typeof up.made): Promise<{ readonly bytes: number }> {
  const { id } = await ask(made, '/exports', { format: 'csv' }, { 'idempotency-key': 'export' })
  for (;;) {
    const job = await ask(made, `/exports/${id}`)
    if (job.state === 'completed') return job
    if (job.state === 'failed') throw new Error(job.error)
    await rest(LOOK_MS)
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

/** Inserts ROWS ended calls of the project with their records; every second one has a price. */
async function fill(): Promise<void> {
  const { folder, made } = up
  const state = await openState({ data_dir: folder })
  const run = async (sql: string): Promise<void> => {
    // The platform writes too, and on a busy machine the lock may be its own for longer than a statement waits.
    for (;;)
      try {
        return await queueWrite(state.db, { sql, parameters: [] })
      } catch (error) {
        if (!isPassing(error)) throw error
      }
  }
  try {
    for (let first = 0; first < ROWS; first += CHUNK) {
      const calls = `with recursive n(i) as (select ${first} union all select i + 1 from n
          where i < ${Math.min(ROWS, first + CHUNK) - 1}),
        made as (select i, 'CA' || printf('%016x%016x', (i * 7919) % 1000003, i) as sid, i % 600 as seconds from n)`
      const at = `'2026-01-01T00:00:00.000Z'`
      const ends = `'+2342010000001', '+23480' || printf('%08d', i), 'completed'`
      await run(`insert into call (sid, project_id, origin, direction, from_number, to_number, status, queued_at,
          updated_at, answered_at, ended_at, ended_by, duration_seconds, sip_code, request, decision_trace)
        ${calls} select sid, '${made.project_id}', 'trunk', 'outbound', ${ends}, ${at}, ${at}, ${at}, ${at}, 'caller',
          seconds, 200, '{}', '{"admitted":true}' from made`)
      await run(`insert into cdr (call_sid, project_id, origin, direction, from_number, to_number, status, started_at,
          answered_at, ended_at, duration_seconds, sip_code, pdd_ms)
        ${calls} select sid, '${made.project_id}', 'trunk', 'outbound', ${ends}, ${at}, ${at}, ${at}, seconds, 200,
          200 + i % 900 from made`)
      await run(`insert into reservation (call_sid, project_id, billing_account_id, billing, direction, destination,
          rate_label, rate_micro, rate_unit, increment_initial_seconds, increment_additional_seconds, currency, day,
          held_minute, caps, held_minor, begun_at, settled_at, duration_seconds, billed_seconds, charge_minor)
        ${calls} select sid, '${made.project_id}', 'bil_bench', 'rated', 'outbound', '+234', 'Nigeria', 14000000,
          'minute', 60, 60, 'NGN', '2026-01-01', 0, '[]', 0, ${at}, ${at}, seconds, seconds, seconds from made
        where i % 2 = 0`)
      await run('pragma wal_checkpoint(truncate)')
    }
  } finally {
    await state.close()
  }
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
  const met = {
    rows_a_second: rest.rows_a_second >= LIMITS.rows_a_second,
    mib_above_rest: rest.mib_above_rest <= LIMITS.mib_above_rest,
    while_exporting: ratios.while_exporting <= LIMITS.set_up_p99,
    while_importing: ratios.while_importing <= LIMITS.set_up_p99,
  }
  const word = (name: keyof typeof met): string => (met[name] ? 'met' : 'MISSED')
  console.log(
    `export       ${rest.rows} calls in ${rest.export_seconds.toFixed(1)} s: ${rest.rows_a_second.toFixed(0)} a second, ` +
      `at least ${LIMITS.rows_a_second}: ${word('rows_a_second')}; ${(rest.bytes / MIB).toFixed(0)} MiB; ` +
      `${rest.export_cpu_seconds.toFixed(1)} s of CPU in the control process`,
  )
  console.log(
    `memory       ${rest.mib_above_rest.toFixed(0)} MiB above rest, at most ${LIMITS.mib_above_rest}: ${word('mib_above_rest')}`,
  )
  for (const [name, ratio] of Object.entries(ratios) as [keyof typeof ratios, number][])
    console.log(
      `set-up       p99 ${p99[name].toFixed(1)} ms ${name.replace('_', ' ')} (${figures[name].length} calls), ` +
        `${p99.quiet.toFixed(1)} ms in peace (${quiet.length}): x ${ratio.toFixed(2)}, at most ${LIMITS.set_up_p99}: ${word(name)}`,
    )
  console.log(`import       ${rest.rates} rates compared and imported in ${rest.import_seconds.toFixed(1)} s`)
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), limits: LIMITS, ...rest, p99, ratios, met }
  writeFileSync('bench/results/export.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = Object.values(met).every(Boolean) ? 0 : 1
}
