import type { MachineAt } from '../../runtime/edge-link.ts'
import type { Db } from '../db.ts'

/** Saves where the edge of this machine hears those of the others; null: it does not. */
export async function saveEdgeLink(
  db: Db,
  machine_id: string,
  at: Pick<MachineAt, 'host' | 'port'> | null,
): Promise<void> {
  if (at === null) {
    await db.deleteFrom('edge_link').where('machine_id', '=', machine_id).execute()
    return
  }
  const { host, port } = at
  await db
    .insertInto('edge_link')
    .values({ machine_id, host, port })
    .onConflict(conflict => conflict.column('machine_id').doUpdateSet({ host, port }))
    .execute()
}

/** Returns where the edge of a machine hears those of the others. */
export const linkOf = (db: Db, machine_id: string): Promise<MachineAt | undefined> =>
  db.selectFrom('edge_link').selectAll().where('machine_id', '=', machine_id).executeTakeFirst()

/** Returns where the edges of the other machines that have a signaling node hear this one's, in order of their ids. */
export const linksOfOthers = (db: Db, own_id: string): Promise<MachineAt[]> =>
  db
    .selectFrom('edge_link')
    .selectAll()
    .where('machine_id', '!=', own_id)
    .where(eb =>
      eb.exists(
        eb
          .selectFrom('node')
          .select('node.id')
          .whereRef('node.machine_id', '=', 'edge_link.machine_id')
          .where('node.kind', '=', 'signaling'),
      ),
    )
    .orderBy('machine_id')
    .execute()
