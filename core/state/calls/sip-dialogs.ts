import { iso } from '../../runtime/clock.ts'
import type { Db, Trx } from '../db.ts'

/** Stores a dialog of a SIP server that keeps its dialogs when the node is lost. */
export const saveSipDialog = async (
  db: Db | Trx,
  dialog: { readonly server: string; readonly dialog_id: string; readonly node_id: string },
  now_ms: number,
): Promise<void> => {
  const { node_id } = dialog
  await db
    .insertInto('sip_dialog')
    .values({ ...dialog, began_at: iso(now_ms) })
    .onConflict(conflict => conflict.columns(['server', 'dialog_id']).doUpdateSet({ node_id }))
    .execute()
}

export const removeSipDialog = async (db: Db | Trx, server: string, dialog_id: string): Promise<void> => {
  await db.deleteFrom('sip_dialog').where('server', '=', server).where('dialog_id', '=', dialog_id).execute()
}

interface LeftDialog {
  readonly dialog_id: string
  readonly node_id: string
}

/** Returns the dialogs on this server that belong to `node_id` or to a lost node. */
export const dialogsToCheck = (db: Db | Trx, server: string, node_id: string): Promise<LeftDialog[]> =>
  db
    .selectFrom('sip_dialog')
    .select(['dialog_id', 'node_id'])
    .where('server', '=', server)
    .where(eb => eb.or([eb('node_id', '=', node_id), eb('node_id', 'not in', eb.selectFrom('node').select('node.id'))]))
    .execute()

/** Takes over a dialog of a lost node. Returns false when another node was faster. */
export async function claimSipDialog(
  db: Db | Trx,
  server: string,
  left: LeftDialog,
  node_id: string,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('sip_dialog')
    .set({ node_id })
    .where('server', '=', server)
    .where('dialog_id', '=', left.dialog_id)
    .where('node_id', '=', left.node_id)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}
