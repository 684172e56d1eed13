import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { admit } from '../../core/domain/admission/index.ts'
import { attribute, compileSources } from '../../core/domain/identity/index.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import { applicableRules, compileRules, decideDestination } from '../../core/domain/policies/destinations.ts'
import { compileRates, findRate } from '../../core/domain/rating/index.ts'
import { systemClock } from '../../core/runtime/clock.ts'
import { releaseAdmission, takeAdmission } from '../../core/state/calls/leases.ts'
import { admitCall } from '../../core/state/calls/running-calls.ts'
import { openState, type State } from '../../core/state/index.ts'
import type { AdmissionRequest } from '../../core/state/procedures/admission/request.ts'
import {
  callOf,
  fillState,
  hypotheticalCall,
  NOW_MS,
  requestOf,
  type Sizes,
  sidOf,
  someFacts,
  someRates,
  someRules,
  someSources,
} from './data.ts'

// Measures the cost of an admission decision, for the pure rules in memory and for the atomic step on SQLite. Runs at
// full size and at a hundredth of it.
//
//   npm run bench -- admission [--calls 3000]

const FULL: Sizes = { trunks: 10_000, sources: 100_000, rules: 100_000, rates: 200_000 }
const SMALL: Sizes = { trunks: 100, sources: 1_000, rules: 1_000, rates: 2_000 }

const LIMITS = { lookup_us: 5, admit_us: 20, state_us: 250, growth: 1.5 } as const

const calls = Number(process.argv[process.argv.indexOf('--calls') + 1]) || 3000
/** Concurrent admissions of a busy node. */
const AT_ONCE = 16

interface Measure {
  readonly identify_us: number
  readonly rules_us: number
  readonly rates_us: number
  readonly parse_us: number
  readonly admit_us: number
  readonly take_us: number
  readonly take_p95_us: number
  /** An admission that also writes the call's row and its decision, as signaling requests for a new call. */
  readonly admit_call_us: number
  /** The same after another process has written, so that cached rows must be read again. */
  readonly admit_call_after_us: number
  /**
   * CPU time of both threads for a call, including round trip and release. It does not depend on the machine's load.
   */
  readonly take_and_release_cpu_us: number
  readonly release_us: number
  /** Wall time per admission when many are requested at once, as under load. They commit together. */
  readonly take_among_us: number
  /** Reference of the same run: a round trip of a trivial statement to the state's thread. */
  readonly round_trip_us: number
}

const small = await measure(SMALL)
const full = await measure(FULL)
report()

async function measure(sizes: Sizes): Promise<Measure> {
  const pure = measurePure(sizes)
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-admission-'))
  const state = await openState({ data_dir: folder, inline_here: systemClock })
  try {
    await fillState(state, sizes)
    return { ...pure, ...(await measureState(state, sizes, folder)) }
  } finally {
    await state.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function measurePure(sizes: Sizes) {
  const carriers = compileSources<{ readonly id: string }>([])
  const known = { carriers, trunks: compileSources(someSources(sizes)), named: new Map() }
  const addresses = [...someSources(sizes)].filter((_, i) => i % 97 === 0).map(({ cidr }) => cidr.split('/')[0] ?? '')
  const rules = compileRules(someRules(sizes))
  const rates = compileRates(someRates(sizes))
  const numbers = Array.from({ length: 1000 }, (_, i) => hypotheticalCall(i))
  const facts = numbers.map(digits => someFacts(digits, applicableRules(rules, digits), findRate(rates, digits)))
  const at = <T>(list: readonly T[], i: number): T => list[i % list.length] as T
  return {
    identify_us: perCall(50_000, i =>
      attribute(known, { address: at(addresses, i), hosts: [], has_credentials: false }),
    ),
    rules_us: perCall(50_000, i => {
      const digits = at(numbers, i)
      return decideDestination(digits, applicableRules(rules, digits))
    }),
    rates_us: perCall(50_000, i => findRate(rates, at(numbers, i))),
    parse_us: perCall(20_000, i => parseNumber(`+${at(numbers, i)}`, 'NG')),
    admit_us: perCall(20_000, i => admit(at(facts, i))),
  }
}

/**
 * Returns the CPU time of one call of `run`, the median of nine rounds. A pure rule waits for nothing, and CPU time
 * leaves out the machine's other work.
 */
function perCall(times: number, run: (i: number) => unknown): number {
  const rounds: number[] = []
  for (let round = 0; round < 9; round++) {
    const begin = process.cpuUsage()
    for (let i = 0; i < times / 9; i++) run(i)
    const { user, system } = process.cpuUsage(begin)
    rounds.push((user + system) / (times / 9))
  }
  return percentile(rounds, 0.5)
}

async function measureState(state: State, sizes: Sizes, folder: string) {
  const trip: number[] = []
  const take: number[] = []
  const release: number[] = []
  let cpu = process.cpuUsage()
  // Ten calls per second fill the trunks' sliding windows without reaching a limit.
  const admission = (i: number) => async (): Promise<void> => {
    const outcome = await takeAdmission(state.db, requestOf(i, sizes))
    if (!outcome.admitted) throw new Error(`call ${i} was refused: ${outcome.sentence}`)
  }
  const roundTrip = () => state.db.selectFrom('configuration').select('id').execute()
  const settlement = (i: number) => () =>
    releaseAdmission(state.db, { call_sid: sidOf(i), answered: true, duration_seconds: 30, now_ms: NOW_MS + i })
  for (let i = 0; i < calls; i++) {
    if (i === Math.floor(calls / 4)) cpu = process.cpuUsage()
    // Measure round trips rarely: each wakes two threads, which would slow down the next admission.
    if (i % 100 === 0) for (let k = 0; k < 25; k++) trip.push(await timed(roundTrip))
    readNumbers(requestOf(i, sizes))
    take.push(await timed(admission(i)))
    if (i >= 100) release.push(await timed(settlement(i - 100)))
  }
  const { user, system } = process.cpuUsage(cpu)
  const among: number[] = []
  // Run twice as many and ignore the first half, which warms up the state's thread.
  for (let first = calls; first < 3 * calls; first += AT_ONCE) {
    const batch = Array.from({ length: AT_ONCE }, (_, k) => first + k)
    among.push((await timed(() => Promise.all(batch.map(i => admission(i)())))) / AT_ONCE)
    await Promise.all(batch.map(i => settlement(i)()))
  }
  const { admit, admit_after } = await measureCalls(state, sizes, folder)
  const warm = (list: readonly number[]): number[] => list.slice(Math.floor(list.length / 4))
  return {
    round_trip_us: percentile(warm(trip), 0.5),
    take_us: percentile(warm(take), 0.5),
    take_p95_us: percentile(warm(take), 0.95),
    admit_call_us: percentile(warm(admit), 0.5),
    admit_call_after_us: percentile(warm(admit_after), 0.5),
    take_and_release_cpu_us: (user + system) / (calls - Math.floor(calls / 4)),
    release_us: percentile(warm(release), 0.5),
    take_among_us: percentile(among.slice(Math.floor(among.length / 2)), 0.5),
  }
}

async function measureCalls(state: State, sizes: Sizes, data_dir: string) {
  const other = await openState({ data_dir })
  const admit: number[] = []
  const admit_after: number[] = []
  for (let i = 4 * calls; i < 5 * calls; i++) {
    const request = requestOf(i, sizes)
    readNumbers(request)
    const input = { call: callOf(request), requests: [request], verstat: null, now_ms: request.now_ms }
    const after = i % 2 === 0
    if (after) await other.probe()
    const admitted = async (): Promise<void> => {
      const { decided } = await admitCall(state.db, input)
      if (!decided.admitted) throw new Error(`call ${i} was refused: ${decided.sentence}`)
    }
    ;(after ? admit_after : admit).push(await timed(admitted))
    await releaseAdmission(state.db, { call_sid: sidOf(i), answered: true, duration_seconds: 30, now_ms: NOW_MS + i })
  }
  await other.close()
  return { admit, admit_after }
}

/**
 * Parses the numbers of an INVITE on this thread, as signaling does before admission (signaling/admission/receive.ts).
 */
function readNumbers({ called, caller }: AdmissionRequest): void {
  for (const given of [called, caller]) parseNumber(given, 'NG')
}

function perSecond(us: number): number {
  return Math.round(1_000_000 / us)
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const begin = process.hrtime.bigint()
  await run()
  return Number(process.hrtime.bigint() - begin) / 1000
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * part)] ?? 0
}

function report(): void {
  const lines: readonly [name: string, key: keyof Measure, limit: number | null, flat?: true][] = [
    ['identification by source', 'identify_us', LIMITS.lookup_us],
    ['destination rules', 'rules_us', LIMITS.lookup_us],
    ['rate by prefix', 'rates_us', LIMITS.lookup_us],
    ['number parsing', 'parse_us', null],
    ['admit, pure', 'admit_us', LIMITS.admit_us, true],
    ['round trip to the state (reference)', 'round_trip_us', null],
    ['admission with state, alone', 'take_us', LIMITS.state_us, true],
    [`admission with state, ${AT_ONCE} at once`, 'take_among_us', LIMITS.state_us, true],
    ['the same with the row of the call', 'admit_call_us', null],
    ['... after another process has written', 'admit_call_after_us', null],
    ['release and settlement', 'release_us', null],
    ['CPU of all three', 'take_and_release_cpu_us', null],
  ]
  let bad = false
  console.log(
    `${FULL.trunks} trunks, ${FULL.sources} sources, ${FULL.rules} rules, ${FULL.rates} rates; against 1 % of it`,
  )
  for (const [name, key, limit, flat] of lines) {
    const growth = full[key] / small[key]
    const over = limit !== null && full[key] > limit
    const steep = flat === true && growth > LIMITS.growth
    bad ||= over || steep
    const wanted = limit === null ? '' : ` (limit ${limit})`
    const growing = `x ${growth.toFixed(2)} against 1 %${flat ? ` (limit ${LIMITS.growth})` : ''}`
    console.log(
      `${name.padEnd(36)} ${full[key].toFixed(2).padStart(8)} us${wanted}, ${growing}${over || steep ? ' OVER' : ''}`,
    )
  }
  console.log(
    `${perSecond(full.take_us)} admissions a second one after the other, 95 % within ${full.take_p95_us.toFixed(0)} us; ` +
      `${perSecond(full.take_among_us)} a second when ${AT_ONCE} are asked for at once`,
  )
  console.log(`admission with state is ${(full.take_us / full.round_trip_us).toFixed(2)} round trips`)
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), sizes: FULL, limits: LIMITS, full, small, within_limits: !bad }
  writeFileSync('bench/results/admission.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = bad ? 1 : 0
}
