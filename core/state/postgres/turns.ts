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
 * Begins a transaction with the turn of writers. Fails as busy when it cannot have it within `within_ms`. Returns the
 * server's time, epoch milliseconds. @throws StateError
 */
export async function beginTurn(link: Link, within_ms: number): Promise<number> {
  // Each statement sees what was committed before it, so the first one after the lock sees the earlier turns.
  const { rows } = await link.run(
    `begin isolation level read committed; set local lock_timeout = ${Math.max(1, Math.floor(within_ms))};
    select ${TURN}; ${READ_NOW}`,
  )
  return Number(rows[0]?.['now_ms'])
}

/** Undoes the transaction. A connection that broke has none: the server undoes it. */
export async function rollBack(link: Link): Promise<void> {
  await link.settled().catch(() => undefined)
  if (link.broken) return
  await link.run('rollback').catch(() => link.destroy())
}

/** Runs `work` in a transaction with the turn of writers, begun within `within_ms`. @throws StateError */
export async function inTurn<T>(
  pool: Pool,
  within_ms: number,
  work: (link: Link, now_ms: number) => Promise<T>,
): Promise<T> {
  const until_ms = performance.now() + within_ms
  await pool.turns.take(within_ms)
  try {
    return await pool.use(until_ms - performance.now(), async link => {
      try {
        const value = await work(link, await beginTurn(link, until_ms - performance.now()))
        // The server makes it a rollback when something that was sent has failed.
        const committed = link.run(COMMIT)
        committed.catch(() => undefined)
        await link.settled()
        await committed
        return value
      } catch (error) {
        await rollBack(link)
        throw error
      }
    })
  } finally {
    pool.turns.letGo()
  }
}
