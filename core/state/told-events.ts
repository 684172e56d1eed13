import type { AuditRow } from './audit.ts'
import type { Db, Trx } from './index.ts'

/** How far the audit trail was told to webhook endpoints; undefined before the first time. */
export async function toldUpTo(db: Db | Trx, name: string): Promise<number | undefined> {
  const row = await db.selectFrom('told_event').select('position').where('name', '=', name).executeTakeFirst()
  return row?.position
}

export async function noteToldUpTo(trx: Db | Trx, name: string, position: number): Promise<void> {
  await trx
    .insertInto('told_event')
    .values({ name, position })
    .onConflict(conflict => conflict.column('name').doUpdateSet({ position }))
    .execute()
}

/** The newest position of the audit trail, over all organizations. */
export async function lastAuditPosition(db: Db | Trx): Promise<number> {
  const row = await db
    .selectFrom('audit_event')
    .select(eb => eb.fn.max('position').as('position'))
    .executeTakeFirst()
  return Number(row?.position ?? 0)
}

/** Events of a project after a position, oldest first. */
export const auditAfter = (db: Db | Trx, position: number, limit: number): Promise<AuditRow[]> =>
  db.selectFrom('audit_event').selectAll().where('position', '>', position).orderBy('position').limit(limit).execute()
