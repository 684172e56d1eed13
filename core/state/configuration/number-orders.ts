import type { Insertable, Selectable } from 'kysely'
import type { Db, NumberOrderTable, Trx } from '../db.ts'

export type NumberOrderRow = Selectable<NumberOrderTable>

export const insertOrder = (trx: Trx, order: Insertable<NumberOrderTable>): Promise<NumberOrderRow> =>
  trx.insertInto('number_order').values(order).returningAll().executeTakeFirstOrThrow()

export const findOrder = (db: Db, project_id: string, id: string): Promise<NumberOrderRow | undefined> =>
  db.selectFrom('number_order').selectAll().where('id', '=', id).where('project_id', '=', project_id).executeTakeFirst()

/** Lists the orders of a project, newest first. */
export function listOrders(
  db: Db,
  project_id: string,
  page: { readonly limit: number; readonly before?: number },
): Promise<NumberOrderRow[]> {
  const query = db
    .selectFrom('number_order')
    .selectAll()
    .where('project_id', '=', project_id)
    .orderBy('position', 'desc')
    .limit(page.limit)
  return (page.before === undefined ? query : query.where('position', '<', page.before)).execute()
}
