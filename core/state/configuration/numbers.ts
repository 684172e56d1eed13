import type { ExpressionBuilder, Selectable } from 'kysely'
import type { ImportedNumber } from '../../domain/numbers/import.ts'
import { newId } from '../../runtime/ids.ts'
import type { Db, NumberTable, Schema, Trx } from '../db.ts'

export type NumberRow = Selectable<NumberTable>

/** Finds the project's number with these digits, with or without the plus. */
export const findOwnedNumber = (db: Db, project_id: string, number: string): Promise<NumberRow | undefined> =>
  db
    .selectFrom('number')
    .selectAll()
    .where('e164', '=', `+${number.replace(/^\+/, '')}`)
    .where('project_id', '=', project_id)
    .where('status', '=', 'held')
    .executeTakeFirst()

export const findNumber = (db: Db, project_id: string, id: string): Promise<NumberRow | undefined> =>
  db.selectFrom('number').selectAll().where('id', '=', id).where('project_id', '=', project_id).executeTakeFirst()

interface NumberPage {
  readonly limit: number
  readonly after?: string
  /** Leading digits of the number, with or without the plus. */
  readonly prefix?: string
}

/** Lists the numbers of a project in the order of their digits. */
export const listNumbers = (db: Db, project_id: string, page: NumberPage): Promise<NumberRow[]> =>
  paged(db, page).where('project_id', '=', project_id).execute()

/**
 * Lists the numbers that a project holds now, not those that it has given back, in the order of their digits: from an
 * offset, or those after (`older_than`) or before another number.
 */
export async function listHeldNumbers(
  db: Db,
  project_id: string,
  window: { readonly offset: number } | { readonly older_than: string } | { readonly newer_than: string },
  page: Omit<NumberPage, 'after'>,
): Promise<NumberRow[]> {
  const after = 'older_than' in window ? { after: window.older_than } : {}
  const held = paged(db, { ...page, ...after })
    .where('project_id', '=', project_id)
    .where('status', '=', 'held')
  if ('offset' in window) return held.offset(window.offset).execute()
  if ('older_than' in window) return held.execute()
  const before = held.where('e164', '<', window.newer_than).clearOrderBy().orderBy('e164', 'desc')
  return (await before.execute()).reverse()
}

/** Finds a number whoever holds it. For operators. */
export const findAnyNumber = (db: Db | Trx, id: string): Promise<NumberRow | undefined> =>
  db.selectFrom('number').selectAll().where('id', '=', id).executeTakeFirst()

/** Lists numbers of the inventory and of all projects, in the order of their digits. For operators. */
export function listAllNumbers(
  db: Db,
  page: NumberPage & { readonly project_id?: string; readonly status?: NumberRow['status'] },
): Promise<NumberRow[]> {
  let query = paged(db, page)
  if (page.project_id !== undefined) query = query.where('project_id', '=', page.project_id)
  if (page.status !== undefined) query = query.where('status', '=', page.status)
  return query.execute()
}

/** Adds numbers to the inventory. Returns those that were there already, and adds none when there are some. */
export async function stockNumbers(
  trx: Trx,
  e164: readonly string[],
  monthly_minor: number,
  now: string,
): Promise<string[]> {
  const known = await trx
    .selectFrom('number')
    .select('e164')
    .where('e164', 'in', [...e164])
    .execute()
  if (known.length > 0) return known.map(row => row.e164)
  const terms = { monthly_minor, offered_to: 'all', offered_project_id: null } as const
  await insertStock(
    trx,
    e164.map(number => ({ e164: number, ...terms })),
    now,
  )
  return []
}

/** Adds numbers that the platform does not have to the inventory. */
export async function insertStock(trx: Trx, numbers: readonly ImportedNumber[], now: string): Promise<void> {
  const added = { project_id: null, status: 'available', route_kind: null, route_id: null } as const
  const written = { quarantined_until: null, revision: 1, created_at: now, updated_at: now }
  const rows = numbers.map(number => ({ id: newId.number(), ...number, ...added, ...written }))
  await trx.insertInto('number').values(rows).execute()
}

/** Lists the numbers of the operator's inventory that a project may order. */
export const listAvailableNumbers = (db: Db, project_id: string, page: NumberPage): Promise<NumberRow[]> =>
  paged(db, page)
    .where('project_id', 'is', null)
    .where('status', '=', 'available')
    .where(isOfferedTo(project_id))
    .execute()

const isOfferedTo = (project_id: string) => (eb: ExpressionBuilder<Schema, 'number'>) =>
  eb.or([
    eb('offered_to', '=', 'all'),
    eb.and([eb('offered_to', '=', 'project'), eb('offered_project_id', '=', project_id)]),
  ])

function paged(db: Db, { limit, after, prefix }: NumberPage) {
  let query = db.selectFrom('number').selectAll().orderBy('e164').limit(limit)
  if (after !== undefined) query = query.where('e164', '>', after)
  if (prefix !== undefined) {
    const start = `+${prefix.replace(/^\+/, '')}`
    // Digits sort before the colon: this range holds every number with the prefix and uses the index.
    query = query.where('e164', '>=', start).where('e164', '<', `${start}:`)
  }
  return query
}

/** Saves columns of a number. Returns it at its next revision. */
export async function saveNumber(
  trx: Trx,
  number: NumberRow,
  changes: Partial<Omit<NumberRow, 'id' | 'e164' | 'revision' | 'created_at' | 'updated_at'>>,
  now: string,
): Promise<NumberRow> {
  const saved = { ...changes, revision: number.revision + 1, updated_at: now }
  await trx.updateTable('number').set(saved).where('id', '=', number.id).execute()
  return { ...number, ...saved }
}

/**
 * Takes a number out of the inventory for a project. Returns undefined when it is not there, already taken, or not
 * offered to the project.
 */
export const takeAvailableNumber = (trx: Trx, e164: string, project_id: string, now: string) =>
  trx
    .updateTable('number')
    .set(eb => ({ project_id, status: 'held' as const, revision: eb('revision', '+', 1), updated_at: now }))
    .where('e164', '=', e164)
    .where('project_id', 'is', null)
    .where('status', '=', 'available')
    .where(isOfferedTo(project_id))
    .returningAll()
    .executeTakeFirst()

/** Lists a project's numbers within a range, in order. */
export const numbersOfRange = (
  db: Db,
  project_id: string,
  range: { readonly start: string; readonly end: string },
): Promise<NumberRow[]> =>
  db
    .selectFrom('number')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('e164', '>=', range.start)
    .where('e164', '<=', range.end)
    .orderBy('e164')
    .execute()

/** Counts the numbers of a range by the target of their route. A deleted target's id stands for its name. */
export async function consumersOfRange(
  db: Db,
  project_id: string,
  range: { readonly start: string; readonly end: string },
) {
  const rows = await db
    .selectFrom('number')
    .leftJoin('trunk', 'trunk.id', 'number.route_id')
    .leftJoin('subtrunk', 'subtrunk.id', 'number.route_id')
    .leftJoin('voice_application', 'voice_application.id', 'number.route_id')
    .select(eb => [
      'number.route_kind as type',
      'number.route_id as id',
      // All rows of a group have one name.
      eb.fn.max(eb.fn.coalesce('trunk.name', 'subtrunk.name', 'voice_application.name')).as('name'),
      eb.fn.countAll<number>().as('count'),
    ])
    .where('number.project_id', '=', project_id)
    .where('number.e164', '>=', range.start)
    .where('number.e164', '<=', range.end)
    .groupBy(['number.route_kind', 'number.route_id'])
    .orderBy(eb => eb.fn.min('number.e164'))
    .execute()
  return rows.flatMap(({ type, id, name, count }) =>
    type === null || id === null ? [] : [{ type, id, name: name ?? id, count: Number(count) }],
  )
}

/** Returns those of the given numbers that the project holds, in order. */
export const numbersNamed = (db: Db, project_id: string, e164: readonly string[]): Promise<NumberRow[]> =>
  e164.length === 0
    ? Promise.resolve([])
    : db
        .selectFrom('number')
        .selectAll()
        .where('project_id', '=', project_id)
        .where('e164', 'in', [...e164])
        .orderBy('e164')
        .execute()

/** Moves numbers whose quarantine is over to the inventory. Returns their count. */
export async function endQuarantines(db: Db, now: string): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('number')
    .set(eb => ({
      status: 'available' as const,
      project_id: null,
      quarantined_until: null,
      last_trunk_id: null,
      revision: eb('revision', '+', 1),
      updated_at: now,
    }))
    .where('status', '=', 'quarantined')
    .where('quarantined_until', '<=', now)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/**
 * Counts the numbers that a project holds, and those that it has given back and that nobody else can have yet: orders
 * and releases in turn would otherwise put the whole inventory into quarantine.
 */
export async function countTaken(db: Db | Trx, project_id: string): Promise<number> {
  const { count } = await db
    .selectFrom('number')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('project_id', '=', project_id)
    .where('status', 'in', ['held', 'quarantined'])
    .executeTakeFirstOrThrow()
  return Number(count)
}
