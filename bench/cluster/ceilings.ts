import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { fillState, type Sizes } from '../admission/data.ts'
import type { Done, Order } from './admitter.ts'
import { onServer } from './server.ts'

// Three processes admit 200 calls at the same moment, of two trunks that share a policy. Each trunk may have 60 calls,
// the policy 100: so each round ends with exactly 100 calls, unless a ceiling was passed or a slot was lost. In every
// fifth round the policy allows 40 calls a second instead. In every tenth one of the processes stands still for 5 s.

export const CEILING_SIZES: Sizes = { trunks: 2, sources: 2, rules: 10, rates: 10 }
const PROCESSES = 3
const CALLS = 200
const OF_TRUNK = 60
const OF_POLICY = 100
const A_SECOND = 40
const UNLIMITED = 1000
const STANDS_STILL_MS = 5000
const WINDOW_MS = 1000
const TIME_DIGITS = 13

interface Found {
  over: number
  under: number
  /** Calls that failed in a process that ran all the time. */
  failed: number
  /** Calls that failed in one that stood still. */
  failed_still: number
  admitted: number
  refused: number
  slowest_ms: number
}

/** Runs the rounds and says how often a ceiling was passed, or not reached. */
export async function ceilings(rounds: number) {
  const found: Found = { over: 0, under: 0, failed: 0, failed_still: 0, admitted: 0, refused: 0, slowest_ms: 0 }
  const broken = await onServer(async ({ open, database_url }) => {
    const state = await open()
    await fillState(state, CEILING_SIZES)
    const program = new URL('./admitter.js', import.meta.url)
    const processes = Array.from({ length: PROCESSES }, () => fork(program, [database_url]))
    try {
      await Promise.all(processes.map(one => once(one, 'message')))
      for (let round = 0; round < rounds; round++) await run(state, processes, round, found)
      return await brokenInvariants(state.db)
    } finally {
      for (const one of processes) one.kill('SIGKILL')
      await state.close()
    }
  })
  console.log(
    `${rounds} rounds of ${CALLS} calls from ${PROCESSES} processes at two ceilings: ${found.over} over, ${found.under} under, ` +
      `${found.admitted} admitted, ${found.refused} refused, ${found.failed} failed, ` +
      `${found.failed_still} failed in a process that stood still; slowest round ${found.slowest_ms.toFixed(0)} ms; ` +
      `${broken.length} broken invariants`,
  )
  const within_limits = found.over + found.under + found.failed + broken.length === 0
  return { rounds, ...found, broken, within_limits }
}

async function run(state: State, processes: readonly ChildProcess[], round: number, found: Found): Promise<void> {
  const by_second = round % 5 === 4
  const still = round % 10 === 3 ? round % PROCESSES : null
  await limit(state, by_second)
  const first = round * CALLS
  const began = performance.now()
  const answers = processes.map((one, at) =>
    ask(one, { admit: Array.from({ length: CALLS }, (_, i) => first + i).filter(i => i % PROCESSES === at) }),
  )
  if (still !== null) {
    const stopped = processes[still]
    // Somewhere among its turns.
    await pause(5 + Math.random() * 60)
    stopped?.kill('SIGSTOP')
    await pause(STANDS_STILL_MS)
    stopped?.kill('SIGCONT')
  }
  const done = await Promise.all(answers)
  if (still === null) found.slowest_ms = Math.max(found.slowest_ms, performance.now() - began)
  for (const [at, { admitted, refused, failed }] of done.entries()) {
    found.admitted += admitted
    found.refused += Object.values(refused).reduce((sum, one) => sum + one, 0)
    if (at === still) found.failed_still += failed.length
    else found.failed += failed.length
    for (const message of new Set(failed)) console.log(`round ${round}, process ${at}: ${message}`)
  }
  await judge(state, by_second, found)
  await Promise.all(processes.map(one => ask(one, { end: true })))
  const left = await state.db.selectFrom('level_use').select('live').where('live', '!=', 0).execute()
  if (left.length > 0) {
    console.log(`round ${round}: ${left.length} levels keep slots of calls that have ended`)
    found.under++
  }
}

async function limit(state: State, by_second: boolean): Promise<void> {
  await state.transaction(async trx => {
    await trx
      .updateTable('trunk')
      .set({ concurrency: by_second ? UNLIMITED : OF_TRUNK, cps: UNLIMITED })
      .execute()
    const policy = by_second ? { concurrency: UNLIMITED, cps: A_SECOND } : { concurrency: OF_POLICY, cps: null }
    await trx.updateTable('outbound_policy').set(policy).execute()
    // A time of an earlier round is none of this one.
    await trx.updateTable('level_use').set({ takes: '' }).execute()
  })
}

/** Compares what is held now with the ceilings. */
async function judge(state: State, by_second: boolean, found: Found): Promise<void> {
  const levels = await state.db.selectFrom('level_use').select(['level', 'live', 'takes']).execute()
  const leases = await state.db.selectFrom('lease').select('id').where('ended_at', 'is', null).execute()
  const policy = levels.find(({ level }) => level === 'policy')
  if (policy?.live !== leases.length) found.over++
  if (by_second) {
    const most = mostWithinASecond(policy?.takes ?? '')
    if (most > A_SECOND) found.over++
    if (leases.length < A_SECOND) found.under++
    return
  }
  const trunks = levels.filter(({ level }) => level === 'trunk')
  if (leases.length > OF_POLICY || trunks.some(({ live }) => live > OF_TRUNK)) found.over++
  if (leases.length < OF_POLICY) found.under++
}

/** The most times of a list, newest first, that lie within one second. */
export function mostWithinASecond(takes: string): number {
  const times = (takes.match(new RegExp(`\\d{${TIME_DIGITS}}`, 'g')) ?? []).map(Number)
  return Math.max(0, ...times.map(last => times.filter(time => time <= last && time > last - WINDOW_MS).length))
}

async function ask(one: ChildProcess, order: Order): Promise<Done> {
  one.send(order)
  const [done] = await once(one, 'message')
  return done as Done
}
