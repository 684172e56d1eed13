import { failure, StateError } from '../port.ts'
import type { BatchStatement } from './batch.ts'
import { COMMIT, type Link } from './link.ts'
import type { Pool } from './pool.ts'

// Writers take turns: the holder of this lock is the only one until its commit, which makes its writes visible before
// it lets go. What a transaction has read thus stays true, and positions follow the order of commits (decision 1053).
// The numbers are "Stro" and "wger".
const TURN = 'pg_advisory_xact_lock(1400140399, 2003265906)'

/** Milliseconds of the server's clock, which stands in for the store's clock (decision 0641). */
const NOW_MS = 'floor(extract(epoch from clock_timestamp()) * 1000)'
export const READ_NOW = `select ${NOW_MS} as now_ms`

/**
 * How long a turn that may run again may stand still, instead of the connection's 3 s: the other machines decide on
 * their calls within 1.5 s.
 */
const STANDS_STILL = `set_config('idle_in_transaction_session_timeout', '1000', true)`

/** Begins a transaction with the turn of writers, which it must have within `within_ms`. @throws StateError */
export async function beginTurn(link: Link, within_ms: number, runs_again = false): Promise<void> {
  // Each statement sees what was committed before it, so the first one after the lock sees the earlier turns.
  await link.run(
    `begin isolation level read committed; set local lock_timeout = ${Math.max(1, Math.floor(within_ms))};
    select ${runs_again ? `${STANDS_STILL}, ` : ''}${TURN}`,
  )
}

/**
 * Statements that begin a transaction with the turn of writers. The last one answers the server's time and
 * the version of the configuration.
 */
export const turnStatements = (within_ms: number): BatchStatement[] => [
  { sql: 'begin isolation level read committed', values: [] },
  // From left to right. A plan for each of the first values of a statement costs more than all its runs. Plans last:
  // one that was made while a table was small would read all of it when it is large. Every statement has its index.
  {
    sql: `select set_config('lock_timeout', $1, true), set_config('plan_cache_mode', 'force_generic_plan', true),
      set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), ${STANDS_STILL}, ${TURN}`,
    values: [String(Math.max(1, Math.floor(within_ms)))],
  },
  {
    sql: `select ${NOW_MS} || ' ' || coalesce((select version from configuration_change where id = 1), '')`,
    values: [],
  },
]

/** Undoes the transaction. A connection that broke has none: the server undoes it. */
export async function rollBack(link: Link): Promise<void> {
  if (link.broken) return
  await link.run('rollback').catch(() => link.destroy())
}

/**
 * Lends a connection to the writer of this process whose turn it is, within `within_ms`. It may still have to wait for
 * writers of other processes. @throws StateError
 */
export async function inOwnTurn<T>(
  pool: Pool,
  within_ms: number,
  work: (link: Link, within_ms: number) => Promise<T>,
): Promise<T> {
  const until_ms = performance.now() + within_ms
  await pool.turns.take(within_ms)
  try {
    return await pool.use(until_ms - performance.now(), link => work(link, until_ms - performance.now()))
  } finally {
    pool.turns.letGo()
  }
}

/**
 * Reports whether a transaction that failed with its connection has surely left nothing, so that it may run again: its
 * commit was not sent, or the server had ended it before, because it stood still.
 */
export const leftNothing = (error: unknown, commit_sent: boolean): boolean =>
  failure(error) === 'away' && (!commit_sent || (error instanceof StateError && error.code === STOOD_STILL))

/** SQLSTATE idle_in_transaction_session_timeout. */
const STOOD_STILL = '25P03'

/** A process that gets so little CPU would keep the turn from all others, for a second each time. */
export const MOST_LOST_TURNS = 3

/**
 * Runs `work` in a transaction with the turn of writers, begun within `within_ms`, and again when that has lost its
 * connection and left nothing. @throws StateError
 */
export async function inTurn<T>(pool: Pool, within_ms: number, work: (link: Link) => Promise<T>): Promise<T> {
  for (let lost_turns = 1; ; lost_turns++) {
    let [begun, commit_sent] = [false, false]
    try {
      return await inOwnTurn(pool, within_ms, async (link, rest_ms) => {
        try {
          await beginTurn(link, rest_ms, true)
          begun = true
          const value = await work(link)
          commit_sent = !link.broken
          await link.run(COMMIT)
          return value
        } catch (error) {
          await rollBack(link)
          throw error
        }
      })
    } catch (error) {
      if (!begun || !leftNothing(error, commit_sent) || lost_turns === MOST_LOST_TURNS) throw error
    }
  }
}
