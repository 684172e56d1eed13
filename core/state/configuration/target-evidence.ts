import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { Db, TargetEvidenceTable, Trx } from '../db.ts'

export const saveEvidence = async (
  db: Db | Trx,
  evidence: Omit<Selectable<TargetEvidenceTable>, 'checked_at'>,
  now_ms: number,
): Promise<void> => {
  const row = { ...evidence, checked_at: iso(now_ms) }
  await db
    .insertInto('target_evidence')
    .values(row)
    .onConflict(conflict => conflict.columns(['target_id', 'node_id']).doUpdateSet(row))
    .execute()
}

export const forgetEvidence = async (db: Db | Trx, node_id: string): Promise<void> => {
  await db.deleteFrom('target_evidence').where('node_id', '=', node_id).execute()
}

/** Returns the live nodes' evidence of these targets. */
export const evidenceOf = (db: Db | Trx, target_ids: readonly string[]): Promise<Selectable<TargetEvidenceTable>[]> =>
  target_ids.length === 0
    ? Promise.resolve([])
    : db.selectFrom('target_evidence').selectAll().where('target_id', 'in', target_ids).execute()
