import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HOUR_MS, metricsOf } from '../../core/domain/metrics/index.ts'
import { failuresOfWindow, figuresOfWindow } from '../../core/state/calls/call-steps.ts'
import { openState, type State } from '../../core/state/index.ts'
import { queueWrite } from '../../core/state/port.ts'

// Measures the time to read a trunk's metrics with ten million call records against a hundred thousand in the same run.
// For comparison, also measures the time to count the records themselves.
//
//   npm run bench -- metrics [--records 10000000]

const at = process.argv.indexOf('--records')
const FULL = at < 0 ? 10_000_000 : Number(process.argv[at + 1])
const SMALL = 100_000
const LIMITS = { growth: 1.5, query_ms: 20 } as const
const TRUNKS = 4
const DAYS = 30
const NOW_MS = Date.parse('2026-03-11T12:00:00.000Z')
const SPAN_MS = DAYS * 24 * HOUR_MS
const CHUNK = 500_000
const ROUNDS = 200

interface Measure {
  readonly records: number
  readonly filled_seconds: number
  readonly query_ms: number
  readonly query_p95_ms: number
  readonly scan_ms: number
}

const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-metrics-'))
try {
  const small = await filled('small', SMALL)
  const full = await filled('full', FULL)
  // Measure in turns, so that the machine's other work affects both.
  for (let round = 0; round < ROUNDS; round++) {
    await time(small, round)
    await time(full, round)
  }
  report(await measured(small), await measured(full))
  await small.state.close()
  await full.state.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

interface Filled {
  readonly state: State
  readonly records: number
  readonly filled_seconds: number
  readonly times_ms: number[]
}

async function filled(name: string, records: number): Promise<Filled> {
  const state = await openState({ data_dir: join(folder, name) })
  const begun = performance.now()
  await fill(state, records)
  return { state, records, filled_seconds: (performance.now() - begun) / 1000, times_ms: [] }
}

async function time({ state, records, times_ms }: Filled, round: number): Promise<void> {
  const from = performance.now()
  const metrics = await read(state, `trk_${round % TRUNKS}`)
  times_ms.push(performance.now() - from)
  if (metrics.attempts < records / TRUNKS / 2) throw new Error(`${metrics.attempts} attempts of ${records} records`)
}

async function measured({ state, records, filled_seconds, times_ms }: Filled): Promise<Measure> {
  const sorted = times_ms.sort((one, other) => one - other)
  const quantile = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN
  const scan_ms = await scan(state)
  return { records, filled_seconds, query_ms: quantile(0.5), query_p95_ms: quantile(0.95), scan_ms }
}

/** Reads what GET /v1/trunks/{trunk_id}/metrics?window=30d reads. */
async function read({ db }: State, trunk_id: string) {
  const window = await figuresOfWindow(db, trunk_id, '30d', NOW_MS)
  const week = await figuresOfWindow(db, trunk_id, '7d', NOW_MS)
  return metricsOf(window, week, await failuresOfWindow(db, trunk_id, '30d', NOW_MS))
}

async function scan({ db }: State): Promise<number> {
  const from = performance.now()
  await db
    .selectFrom('cdr')
    .select(eb => [eb.fn.countAll().as('attempts'), eb.fn.sum('duration_seconds').as('seconds')])
    .where('trunk_id', '=', 'trk_0')
    .where('ended_at', '>=', new Date(NOW_MS - SPAN_MS).toISOString())
    .execute()
  return performance.now() - from
}

/**
 * Returns SQL for the records `first` to `last` of `records`, spread over the trunks and, in order, over the 30 days.
 * Arithmetic makes them the same in each run.
 */
function calls(first: number, last: number, records: number): string {
  return `
  with recursive n(i) as (select ${first} union all select i + 1 from n where i < ${last - 1}),
  made as (
    select i, 'trk_' || (i % ${TRUNKS}) as trunk_id, (i * 7919) % 100 < 62 as answered, (i * 104729) % 600 as seconds,
      (i * 1299709) % 7 as kind, 200 + (i * 15485863) % 5000 as pdd_ms,
      ${NOW_MS - SPAN_MS} + i * ${SPAN_MS} / ${records} as ended_ms
    from n)`
}

async function fill({ db }: State, records: number): Promise<void> {
  const run = (text: string): Promise<void> => queueWrite(db, { sql: text, parameters: [] })
  for (let first = 0; first < records; first += CHUNK) {
    const made = calls(first, Math.min(records, first + CHUNK), records)
    await run(`insert into cdr (call_sid, project_id, trunk_id, origin, direction, from_number, to_number, status,
        sip_code, reason, started_at, answered_at, ended_at, duration_seconds, pdd_ms)
      ${made} select 'CA' || printf('%032x', i), 'prj_bench', trunk_id, 'trunk', 'outbound', '+2342010000001',
        '+23480' || printf('%08d', i), iif(answered, 'completed', 'failed'), iif(answered, 200, 480 + kind),
        iif(answered, null, 'reason_' || kind), at, iif(answered, at, null), at, iif(answered, seconds, 0), pdd_ms
      from (select *, strftime('%Y-%m-%dT%H:%M:%fZ', ended_ms / 1000.0, 'unixepoch') as at from made)`)
    await run(`insert into call_step (subject_id, step_ms, begin_ms, attempts, answered, answered_seconds, pdd_calls,
        pdd_ms, measured_calls, no_media_calls, one_way_calls, transcoded_calls, packets_received, packets_lost,
        jitter_legs, jitter_us, mos_legs, mos_thousandths)
      ${made} select trunk_id, ${HOUR_MS}, ended_ms / ${HOUR_MS} * ${HOUR_MS}, count(*), sum(answered),
        sum(answered * seconds), count(*), sum(pdd_ms), sum(answered), 0, 0, 0, sum(answered * seconds * 50), 0, 0, 0,
        0, 0 from made where true group by 1, 3
      on conflict (subject_id, step_ms, begin_ms) do update set attempts = attempts + excluded.attempts,
        answered = answered + excluded.answered, answered_seconds = answered_seconds + excluded.answered_seconds,
        pdd_calls = pdd_calls + excluded.pdd_calls, pdd_ms = pdd_ms + excluded.pdd_ms`)
    await run(`insert into call_step_failure (subject_id, step_ms, begin_ms, platform_reason, sip_code, calls)
      ${made} select trunk_id, ${HOUR_MS}, ended_ms / ${HOUR_MS} * ${HOUR_MS}, 'reason_' || kind, 480 + kind, count(*)
        from made where not answered group by 1, 3, 4, 5
      on conflict (subject_id, step_ms, begin_ms, platform_reason, sip_code) do update
        set calls = calls + excluded.calls`)
    // Checkpoint, as the running platform does, so that reads use the database file and not a WAL of gigabytes.
    await run('pragma wal_checkpoint(truncate)')
  }
}

function report(small: Measure, full: Measure): void {
  const growth = full.query_ms / small.query_ms
  const bad = growth > LIMITS.growth || full.query_ms > LIMITS.query_ms
  for (const one of [small, full])
    console.log(
      `${String(one.records).padStart(9)} records: metrics of 30 days in ${one.query_ms.toFixed(2)} ms ` +
        `(95 % within ${one.query_p95_ms.toFixed(2)} ms); counting the records takes ${one.scan_ms.toFixed(0)} ms; ` +
        `filled in ${one.filled_seconds.toFixed(0)} s`,
    )
  console.log(
    `x ${growth.toFixed(2)} for ${(FULL / SMALL).toFixed(0)} times the records (limit ${LIMITS.growth}), ` +
      `limit ${LIMITS.query_ms} ms${bad ? ' OVER' : ''}`,
  )
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), limits: LIMITS, small, full, growth, within_limits: !bad }
  writeFileSync('bench/results/metrics.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = bad ? 1 : 0
}
