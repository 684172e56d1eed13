import { iso } from '../../runtime/clock.ts'
import type { Db } from '../db.ts'
import type { State } from '../index.ts'

/** A task that one process does for all. Its holder renews the lease; when that stops, another process takes it. */

/** How long a lease is valid without renewal. */
export const TASK_LEASE_MS = 15_000

interface TaskAsked {
  readonly name: string
  /** Name of the asking process (core/runtime/machine.ts). */
  readonly holder: string
  readonly now_ms: number
  /** Reports whether a holder is known to be gone. Its lease may then be taken before it expires. */
  readonly isGone: (holder: string) => boolean
}

/** Takes or renews the lease. Returns false while another process holds it. */
export const holdTask = (state: State, { name, holder, now_ms, isGone }: TaskAsked): Promise<boolean> =>
  state.shortTransaction(async trx => {
    const held = await trx.selectFrom('task_lease').selectAll().where('name', '=', name).executeTakeFirst()
    const until = Date.parse(held?.until ?? '')
    // A lease that ends later than now plus TASK_LEASE_MS is invalid: the clock was set back.
    const good = until > now_ms && until <= now_ms + TASK_LEASE_MS
    if (held && held.holder !== holder && good && !isGone(held.holder)) return false
    const row = { name, holder, until: iso(now_ms + TASK_LEASE_MS) }
    await trx
      .insertInto('task_lease')
      .values(row)
      .onConflict(conflict => conflict.column('name').doUpdateSet(row))
      .execute()
    return true
  })

export async function releaseTask(db: Db, name: string, holder: string): Promise<void> {
  await db.deleteFrom('task_lease').where('name', '=', name).where('holder', '=', holder).execute()
}
