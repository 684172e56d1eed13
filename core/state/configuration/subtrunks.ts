import { type Selectable, sql } from 'kysely'
import { newId } from '../../runtime/ids.ts'
import type { Db, DelegationTable, NumberBlockTable, SubtrunkTable, Trx } from '../db.ts'
import { readTogether, statement } from '../port.ts'
import { nextConfiguration } from './bump.ts'
import { RELEASING } from './trunks.ts'

export type SubtrunkRow = Selectable<SubtrunkTable>
export type DelegationRow = Selectable<DelegationTable>
export type NumberBlockRow = Selectable<NumberBlockTable>

/** Finds a subtrunk. Released ones stay for call records but are not found. */
export const findSubtrunk = (db: Db | Trx, project_id: string, id: string): Promise<SubtrunkRow | undefined> =>
  db
    .selectFrom('subtrunk')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .where('status', '!=', 'released')
    .executeTakeFirst()

export const listSubtrunks = (db: Db | Trx, trunk_id: string): Promise<SubtrunkRow[]> =>
  db
    .selectFrom('subtrunk')
    .selectAll()
    .where('trunk_id', '=', trunk_id)
    .where('status', '!=', 'released')
    .orderBy('name')
    .orderBy('id')
    .execute()

/** Counts the subtrunks of a project that are not released, by its trunks, as the indexes go. */
export const countSubtrunks = async (trx: Trx, project_id: string): Promise<number> => {
  const { count } = await trx
    .selectFrom('trunk')
    .innerJoin('subtrunk', 'subtrunk.trunk_id', 'trunk.id')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('trunk.project_id', '=', project_id)
    .where('subtrunk.status', '!=', 'released')
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Returns subtrunks that are being released. */
export async function releasingSubtrunks(db: Db): Promise<readonly SubtrunkRow[]> {
  const [rows] = await readTogether(db, RELEASED_NEXT({}))
  return rows
}

const RELEASED_NEXT = statement(db => db.selectFrom('subtrunk').selectAll().where('status', '=', RELEASING).limit(500))

export const newSubtrunkId = (): string => `stk_${newId.uuid()}`

export async function insertSubtrunk(trx: Trx, row: SubtrunkRow): Promise<void> {
  await trx.insertInto('subtrunk').values(row).execute()
}

/** Saves columns of a subtrunk. Returns it at its next revision. */
export async function saveSubtrunk(
  trx: Trx,
  subtrunk: SubtrunkRow,
  changes: Partial<Omit<SubtrunkRow, 'id' | 'project_id' | 'trunk_id' | 'revision' | 'updated_at'>>,
  now: string,
): Promise<SubtrunkRow> {
  const saved = { ...changes, revision: subtrunk.revision + 1, updated_at: now }
  await trx.updateTable('subtrunk').set(saved).where('id', '=', subtrunk.id).execute()
  return { ...subtrunk, ...saved }
}

export const listBlocks = (db: Db | Trx, project_id: string): Promise<NumberBlockRow[]> =>
  db.selectFrom('number_block').selectAll().where('project_id', '=', project_id).orderBy('start').execute()

export const findBlock = (db: Db | Trx, project_id: string, id: string): Promise<NumberBlockRow | undefined> =>
  db.selectFrom('number_block').selectAll().where('id', '=', id).where('project_id', '=', project_id).executeTakeFirst()

/**
 * Counts the numbers of a block from `start` to `end`. Returns null for an invalid block: different lengths, or `end`
 * before `start`.
 */
export function blockSize(start: string, end: string): number | null {
  if (start.length !== end.length || !/^\+[1-9][0-9]{6,14}$/.test(start) || !/^\+[1-9][0-9]{6,14}$/.test(end))
    return null
  const size = Number(end.slice(1)) - Number(start.slice(1)) + 1
  return size >= 1 && size <= 1_000_000 ? size : null
}

export async function insertBlock(trx: Trx, block: Omit<NumberBlockRow, 'id'>): Promise<NumberBlockRow> {
  const row = { ...block, id: `blk_${newId.uuid()}` }
  await trx.insertInto('number_block').values(row).execute()
  return row
}

/** Deletes a block. Its numbers stay with the project, routed as they are. */
export async function deleteBlock(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('number_block').where('id', '=', id).execute()
}

export const listDelegations = (db: Db | Trx, subtrunk_id: string): Promise<DelegationRow[]> =>
  db.selectFrom('delegation').selectAll().where('subtrunk_id', '=', subtrunk_id).orderBy('start').execute()

/** Returns the delegations of these blocks or of parts of them. */
export const delegationsOfBlocks = (db: Db | Trx, block_ids: readonly string[]): Promise<DelegationRow[]> =>
  block_ids.length === 0
    ? Promise.resolve([])
    : db
        .selectFrom('delegation')
        .selectAll()
        .where('block_id', 'in', [...block_ids])
        .orderBy('start')
        .execute()

export const newDelegationId = (): string => `del_${newId.uuid()}`

/** Delegates a range of a block to a subtrunk. Returns undefined when a part of it is already delegated. */
export async function delegate(
  trx: Trx,
  delegation: Omit<DelegationRow, 'id' | 'status' | 'size' | 'revision'>,
): Promise<DelegationRow | undefined> {
  const size = blockSize(delegation.start, delegation.end)
  if (size === null) throw new Error(`${delegation.start} to ${delegation.end} is no block`)
  const taken = await trx
    .selectFrom('delegation')
    .select('id')
    .where('block_id', '=', delegation.block_id)
    .where('start', '<=', delegation.end)
    .where('end', '>=', delegation.start)
    .executeTakeFirst()
  if (taken) return undefined
  const revision = await nextConfiguration(trx)
  const row: DelegationRow = { ...delegation, id: newDelegationId(), size, status: 'pending', revision }
  await trx.insertInto('delegation').values(row).execute()
  return row
}

/**
 * Takes a delegation back. From the next call on, the subtrunk may not present its numbers; the row goes when every
 * node routes the numbers elsewhere.
 */
export async function detachDelegation(trx: Trx, id: string): Promise<void> {
  const revision = await nextConfiguration(trx)
  await trx.updateTable('delegation').set({ status: 'detaching', revision }).where('id', '=', id).execute()
}

/** Returns delegations that have not reached their goal, with their trunks. */
export async function movingDelegations(
  db: Db | Trx,
  limit: number,
): Promise<readonly (DelegationRow & { trunk_id: string })[]> {
  const [rows] = await readTogether(db, MOVING({ limit }))
  return rows
}

const MOVING = statement((db, { limit }: { readonly limit: number }) =>
  db
    .selectFrom('delegation')
    .innerJoin('subtrunk', 'subtrunk.id', 'delegation.subtrunk_id')
    .selectAll('delegation')
    .select('subtrunk.trunk_id')
    .where('delegation.status', '!=', sql.lit('applied'))
    .limit(limit),
)

/** Moves a delegation on, unless it has changed since it was read. Null deletes it. */
export async function moveDelegation(
  trx: Trx | Db,
  { id, revision }: DelegationRow,
  status: DelegationRow['status'] | null,
): Promise<void> {
  if (status === null)
    await trx.deleteFrom('delegation').where('id', '=', id).where('revision', '=', revision).execute()
  else
    await trx.updateTable('delegation').set({ status }).where('id', '=', id).where('revision', '=', revision).execute()
}
