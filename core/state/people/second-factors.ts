import type { Selectable } from 'kysely'
import type { Db, MemberSecurityTable, Trx } from '../db.ts'

export type MemberSecurityRow = Selectable<MemberSecurityTable>

const FRESH = { totp_sealed: null, totp_enabled: 0, totp_last_step: 0 } as const

export async function securityOf(db: Db, member_id: string): Promise<MemberSecurityRow> {
  const row = await db.selectFrom('member_security').selectAll().where('member_id', '=', member_id).executeTakeFirst()
  return row ?? { member_id, ...FRESH }
}

export async function saveSecurity(
  db: Db,
  member_id: string,
  changes: Partial<Omit<MemberSecurityRow, 'member_id'>>,
): Promise<void> {
  await db
    .insertInto('member_security')
    .values({ member_id, ...FRESH, ...changes })
    .onConflict(conflict => conflict.column('member_id').doUpdateSet(changes))
    .execute()
}

/**
 * Consumes a one-time code's time step. Returns false when another request has already consumed it (RFC 6238 §5.2).
 */
export async function takeTotpStep(db: Db, member_id: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('member_security')
    .set({ totp_last_step: step })
    .where('member_id', '=', member_id)
    .where('totp_last_step', '<', step)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Takes the second factor away, with the recovery codes. */
export async function endSecondFactor(trx: Trx, member_id: string): Promise<void> {
  await saveSecurity(trx, member_id, { totp_enabled: 0, totp_sealed: null })
  await replaceRecoveryCodes(trx, member_id, [], '')
}

/** Replaces the recovery codes of a member. Earlier ones work no more. */
export async function replaceRecoveryCodes(
  trx: Trx,
  member_id: string,
  hashes: readonly string[],
  created_at: string,
): Promise<void> {
  await trx.deleteFrom('member_recovery_code').where('member_id', '=', member_id).execute()
  if (hashes.length === 0) return
  const rows = hashes.map(code_hash => ({ member_id, code_hash, created_at }))
  await trx.insertInto('member_recovery_code').values(rows).execute()
}

export async function countRecoveryCodes(db: Db, member_id: string): Promise<number> {
  const { codes } = await db
    .selectFrom('member_recovery_code')
    .select(eb => eb.fn.countAll<number>().as('codes'))
    .where('member_id', '=', member_id)
    .executeTakeFirstOrThrow()
  return Number(codes)
}

export async function hasRecoveryCode(db: Db, member_id: string, code_hash: string): Promise<boolean> {
  const row = await db
    .selectFrom('member_recovery_code')
    .select('member_id')
    .where('member_id', '=', member_id)
    .where('code_hash', '=', code_hash)
    .executeTakeFirst()
  return row !== undefined
}

/** Consumes a recovery code. Returns false when the member has none with that hash any more. */
export async function takeRecoveryCode(trx: Trx, member_id: string, code_hash: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('member_recovery_code')
    .where('member_id', '=', member_id)
    .where('code_hash', '=', code_hash)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
