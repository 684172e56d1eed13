import type { Selectable } from 'kysely'
import { iso } from '../runtime/clock.ts'
import type { Db, NodeTable, State, Trx } from './index.ts'
import { type AlsoAtEnd, endCallsOfNodes } from './running-calls.ts'

export const HEARTBEAT_MS = 2000
/** A node silent for so long is lost (design section 8). */
export const LOST_AFTER_MS = 15_000

export type NodeRow = Selectable<NodeTable>

export async function registerNode(
  db: Db | Trx,
  node: { readonly id: string; readonly kind: NodeTable['kind']; readonly pid: number },
  now_ms: number,
): Promise<void> {
  const at = iso(now_ms)
  await db
    .insertInto('node')
    .values({ ...node, started_at: at, heartbeat_at: at })
    .execute()
}

/** False when the row is gone: others took this node for lost, and ended its calls. */
export async function heartbeat(db: Db | Trx, id: string, now_ms: number): Promise<boolean> {
  const result = await db
    .updateTable('node')
    .set({ heartbeat_at: iso(now_ms) })
    .where('id', '=', id)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Forgets a node with the rows of its links and what it reported. */
export async function removeNode(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('apply_report').where('node_id', '=', id).execute()
  await trx.deleteFrom('target_evidence').where('node_id', '=', id).execute()
  await trx
    .deleteFrom('node')
    .where('id', 'in', [id, `${id}-edge`, `${id}-media`])
    .execute()
}

/** A link of a signaling node, as a row of its own while it is up: fresh means that calls can go over it. */
export async function tellLink(
  db: Db | Trx,
  link: { readonly id: string; readonly kind: 'edge' | 'media'; readonly pid: number },
  up: boolean,
  now_ms: number,
): Promise<void> {
  if (!up) await db.deleteFrom('node').where('id', '=', link.id).execute()
  else if (!(await heartbeat(db, link.id, now_ms))) await registerNode(db, link, now_ms)
}

export const signalingNodes = (db: Db | Trx): Promise<NodeRow[]> =>
  db.selectFrom('node').selectAll().where('kind', '=', 'signaling').execute()

/**
 * Ends the calls of signaling nodes without a heartbeat for 15 s and forgets the nodes. `dead` names nodes that are
 * known
 * to be gone already (a predecessor on this machine whose process is no more). Returns the sids of the calls ended.
 */
export async function endCallsOfLostNodes(
  state: State,
  now_ms: number,
  options: { readonly dead?: (node: NodeRow) => boolean; readonly also?: AlsoAtEnd } = {},
): Promise<string[]> {
  const nodes = await signalingNodes(state.db)
  const lost = nodes.filter(
    node => now_ms - Date.parse(node.heartbeat_at) > LOST_AFTER_MS || (options.dead?.(node) ?? false),
  )
  const ended = await endCallsOfNodes(state, lost, now_ms, options.also)
  for (const node of lost) await state.transaction(trx => removeNode(trx, node.id))
  return ended
}
