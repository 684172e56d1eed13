import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { Db, RegistrationTable, Trx } from '../db.ts'

export type RegistrationRow = Selectable<RegistrationTable>

export const saveRegistration = async (db: Db | Trx, row: RegistrationRow): Promise<void> => {
  await db
    .insertInto('registration')
    .values(row)
    .onConflict(conflict => conflict.columns(['credential_id', 'contact']).doUpdateSet(row))
    .execute()
}

/** Removes one contact of a credential, or all of them when `contact` is null. */
export const removeRegistrations = async (
  db: Db | Trx,
  credential_id: string,
  contact: string | null,
): Promise<void> => {
  const query = db.deleteFrom('registration').where('credential_id', '=', credential_id)
  await (contact === null ? query : query.where('contact', '=', contact)).execute()
}

export const liveRegistrations = (db: Db | Trx, now_ms: number): Promise<RegistrationRow[]> =>
  db.selectFrom('registration').selectAll().where('expires_at', '>', iso(now_ms)).execute()

/** Returns the rows that changed since then, expired ones among them. */
export const registrationsSince = (db: Db | Trx, since_ms: number): Promise<RegistrationRow[]> =>
  db.selectFrom('registration').selectAll().where('registered_at', '>=', iso(since_ms)).execute()

export const countRegistrations = async (db: Db | Trx, now_ms: number): Promise<number> => {
  const { count } = await db
    .selectFrom('registration')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('expires_at', '>', iso(now_ms))
    .executeTakeFirstOrThrow()
  return Number(count)
}

export const pruneRegistrations = async (db: Db | Trx, now_ms: number): Promise<void> => {
  await db.deleteFrom('registration').where('expires_at', '<=', iso(now_ms)).execute()
}
