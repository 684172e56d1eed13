import type { Selectable } from 'kysely'
import { newId } from '../../runtime/ids.ts'
import {
  ascendingFromNull,
  type Db,
  type ProjectCeilingTable,
  type ShortCodeTable,
  type TrunkSettingTable,
  type Trx,
} from '../db.ts'

/**
 * Settings that the operator makes outside the management API: a project's ceilings, the number formats of a trunk,
 * short codes.
 */

type ProjectCeilingRow = Selectable<ProjectCeilingTable>
type TrunkSettingRow = Selectable<TrunkSettingTable>
type ShortCodeRow = Selectable<ShortCodeTable>

export type Ceilings = Omit<ProjectCeilingRow, 'project_id' | 'revision' | 'updated_at'>

const NO_CEILINGS: Ceilings = {
  concurrency: null,
  cps: null,
  daily_spend_cap_minor: null,
  velocity_cap_minor: null,
  max_call_duration_seconds: null,
  max_destination_rate_minor: null,
}

export const findCeilings = (db: Db | Trx, project_id: string): Promise<ProjectCeilingRow | undefined> =>
  db.selectFrom('project_ceiling').selectAll().where('project_id', '=', project_id).executeTakeFirst()

/** Changes ceilings of a project from the next call on. Null means no ceiling; 0 admits nothing. */
export async function putCeilings(
  trx: Trx,
  project_id: string,
  changes: Partial<Ceilings>,
  now: string,
): Promise<ProjectCeilingRow> {
  const known = await findCeilings(trx, project_id)
  const row: ProjectCeilingRow = {
    ...NO_CEILINGS,
    ...known,
    ...changes,
    project_id,
    revision: (known?.revision ?? 0) + 1,
    updated_at: now,
  }
  await trx
    .insertInto('project_ceiling')
    .values(row)
    .onConflict(conflict => conflict.column('project_id').doUpdateSet(row))
    .execute()
  return row
}

export const findTrunkSetting = (db: Db | Trx, trunk_id: string): Promise<TrunkSettingRow | undefined> =>
  db.selectFrom('trunk_setting').selectAll().where('trunk_id', '=', trunk_id).executeTakeFirst()

export async function putTrunkSetting(trx: Trx, row: TrunkSettingRow): Promise<void> {
  await trx
    .insertInto('trunk_setting')
    .values(row)
    .onConflict(conflict => conflict.column('trunk_id').doUpdateSet(row))
    .execute()
}

export const listShortCodes = (db: Db | Trx): Promise<ShortCodeRow[]> =>
  db.selectFrom('short_code').selectAll().orderBy('code').orderBy('project_id', ascendingFromNull).execute()

/** Routes an emergency or short code to a number, replacing its previous route. Null removes the route. */
export async function putShortCode(
  trx: Trx,
  { project_id, code, sends_to }: { project_id: string | null; code: string; sends_to: string | null },
): Promise<void> {
  await trx
    .deleteFrom('short_code')
    .where('code', '=', code)
    .where('project_id', project_id === null ? 'is' : '=', project_id)
    .execute()
  if (sends_to !== null)
    await trx
      .insertInto('short_code')
      .values({ id: `sho_${newId.uuid()}`, project_id, code, sends_to })
      .execute()
}
