import { iso } from '../../runtime/clock.ts'
import type { Db, Trx } from '../db.ts'
import type { State } from '../index.ts'

/** A task that one process does for all. Its holder renews the lease; when that stops, another process takes it. */

/** The lease of the tasks that run in one process of the installation. */
export const TASKS = 'reconcilers'
const OF_MACHINE = `${TASKS} `

/** How long a lease is valid without renewal. */
export const TASK_LEASE_MS = 15_000

interface TaskAsked {
  readonly name: string
  /** Name of the asking process (core/runtime/machine.ts). */
  readonly holder: string
  /** Read within the transaction: the request may have been on its way for long. */
  readonly now: () => number
  /** Reports whether a holder is known to be gone. Its lease may then be taken before it expires. */
  readonly isGone: (holder: string) => boolean
}

/** What a holder has: the lease of a task, in one of its terms. */
export interface TaskTerm {
  readonly name: string
  readonly holder: string
  /** Rises each time that another process takes the lease. */
  readonly term: number
}

/** Takes or renews the lease. Returns the term; null while another process holds it. */
export const holdTask = (state: State, { name, holder, now, isGone }: TaskAsked): Promise<TaskTerm | null> =>
  state.shortTransaction(async trx => {
    const held = await trx.selectFrom('task_lease').selectAll().where('name', '=', name).executeTakeFirst()
    const now_ms = now()
    const until = Date.parse(held?.until ?? '')
    // A lease that ends later than now plus TASK_LEASE_MS is invalid: the clock was set back.
    const good = until > now_ms && until <= now_ms + TASK_LEASE_MS
    if (held && held.holder !== holder && good && !isGone(held.holder)) return null
    const term = held === undefined ? 1 : held.term + (held.holder === holder ? 0 : 1)
    const row = { name, holder, until: iso(now_ms + TASK_LEASE_MS), term }
    await trx
      .insertInto('task_lease')
      .values(row)
      .onConflict(conflict => conflict.column('name').doUpdateSet(row))
      .execute()
    return { name, holder, term }
  })

/** The lease of the tasks that run in one process of each machine, which is its control process. */
export const tasksOf = ({ machine_id }: { readonly machine_id: string }): string => `${OF_MACHINE}${machine_id}`

/** Returns the machines whose control process has given a sign of life: it holds its lease. */
export async function machinesWithControl(db: Db, now_ms: number): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('task_lease')
    .select('name')
    .where('name', 'like', `${OF_MACHINE}%`)
    .where('until', '>', iso(now_ms))
    .execute()
  return new Set(rows.map(({ name }) => name.slice(OF_MACHINE.length)))
}

/** Gives a lease back. Its row stays, because terms only rise. */
export async function releaseTask(db: Db, name: string, holder: string): Promise<void> {
  await db
    .updateTable('task_lease')
    .set({ holder: '', until: '' })
    .where('name', '=', name)
    .where('holder', '=', holder)
    .execute()
}

/** Reports whether a term lasts. In a transaction it then lasts until the commit, because writers take turns. */
export const termLasts = async (trx: Trx, { name, holder, term }: TaskTerm): Promise<boolean> =>
  (await trx
    .selectFrom('task_lease')
    .select('term')
    .where('name', '=', name)
    .where('holder', '=', holder)
    .where('term', '=', term)
    .executeTakeFirst()) !== undefined
