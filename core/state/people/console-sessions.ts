import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { ConsoleSessionTable, Db, Trx } from '../db.ts'
import type { MemberRow } from './organizations.ts'

type SessionRow = Selectable<ConsoleSessionTable>

/** Finds a session with its member; undefined when it does not exist or has expired. */
export async function findSession(
  db: Db,
  id_hash: string,
  limits: { readonly now_ms: number; readonly idle_ms: number },
): Promise<{ readonly session: SessionRow; readonly member: MemberRow } | undefined> {
  const session = await db
    .selectFrom('console_session')
    .selectAll()
    .where('id_hash', '=', id_hash)
    .where('expires_at', '>', iso(limits.now_ms))
    .where('last_seen_at', '>', iso(limits.now_ms - limits.idle_ms))
    .executeTakeFirst()
  const member =
    session && (await db.selectFrom('member').selectAll().where('id', '=', session.member_id).executeTakeFirst())
  return session && member?.locked_at === null ? { session, member } : undefined
}

export async function insertSession(trx: Trx, row: SessionRow): Promise<void> {
  await trx.insertInto('console_session').values(row).execute()
}

export async function touchSession(db: Db, id_hash: string, last_seen_at: string): Promise<void> {
  await db.updateTable('console_session').set({ last_seen_at }).where('id_hash', '=', id_hash).execute()
}

export async function deleteSession(trx: Trx, id_hash: string): Promise<void> {
  await trx.deleteFrom('console_session').where('id_hash', '=', id_hash).execute()
}

/** Ends every session of a member except one. */
export async function deleteOtherSessions(trx: Trx, member_id: string, kept_id_hash: string | null): Promise<void> {
  let query = trx.deleteFrom('console_session').where('member_id', '=', member_id)
  if (kept_id_hash !== null) query = query.where('id_hash', '!=', kept_id_hash)
  await query.execute()
}

export async function dropExpiredSessions(db: Db, now: string): Promise<void> {
  await db.deleteFrom('console_session').where('expires_at', '<=', now).execute()
}
