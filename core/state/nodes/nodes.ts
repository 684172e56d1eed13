import type { Selectable } from 'kysely'
import { type Clock, iso } from '../../runtime/clock.ts'
import type { KnownProcess } from '../../runtime/machine.ts'
import { endCallsOfLostNode } from '../calls/running-calls.ts'
import type { Db, NodeTable, Trx } from '../db.ts'
import type { State } from '../port.ts'

export const HEARTBEAT_MS = 2000
/** A node without a heartbeat for this long is lost (design section 8). */
export const LOST_AFTER_MS = 15_000
/** A machine says at least this often that it runs. */
export const SILENT_MACHINE_MS = 150_000

export type NodeRow = Selectable<NodeTable>

export async function registerNode(
  db: Db | Trx,
  node: KnownProcess & { readonly id: string; readonly kind: NodeTable['kind'] },
  now_ms: number,
): Promise<void> {
  const at = iso(now_ms)
  await db
    .insertInto('node')
    .values({ ...node, started_at: at, heartbeat_at: at })
    .execute()
}

/** Updates a node's heartbeat. Returns false when others have declared it lost. */
export async function heartbeat(db: Db | Trx, id: string, now_ms: number): Promise<boolean> {
  const result = await db
    .updateTable('node')
    .set({ heartbeat_at: iso(now_ms) })
    .where('id', '=', id)
    .where('lost_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Updates the heartbeats of a node and its links together. Returns false when one is missing or declared lost. */
export async function heartbeats(db: Db, ids: readonly string[], now_ms: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('node')
    .set({ heartbeat_at: iso(now_ms) })
    .where('id', 'in', [...ids])
    .where('lost_at', 'is', null)
    .executeTakeFirst()
  return Number(numUpdatedRows) === ids.length
}

/** Deletes a node, the rows of its links, and its reports. */
export async function removeNode(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('apply_report').where('node_id', '=', id).execute()
  await trx.deleteFrom('target_evidence').where('node_id', '=', id).execute()
  await trx
    .deleteFrom('node')
    .where('id', 'in', [id, `${id}-edge`, `${id}-media`])
    .execute()
}

/** Registers a node that others declared lost once more, under its id. It must end the calls that it had until then. */
export async function registerAgain(trx: Trx, node: Parameters<typeof registerNode>[1], now_ms: number): Promise<void> {
  await trx.deleteFrom('node').where('id', '=', node.id).execute()
  await registerNode(trx, node, now_ms)
}

/**
 * Marks a node as lost, unless it has given another sign of life than `heartbeat_at` meanwhile: the observer may have
 * been suspended since it judged.
 */
async function declareLost(db: Db, { id, heartbeat_at }: NodeRow, now_ms: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('node')
    .set({ lost_at: iso(now_ms) })
    .where('id', '=', id)
    .where('heartbeat_at', '=', heartbeat_at)
    .where('lost_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Deletes a lost node, unless it has registered again. */
async function removeLost(trx: Trx, id: string): Promise<void> {
  const lost = await trx.selectFrom('node').select('id').where('id', '=', id).where('lost_at', 'is not', null).execute()
  if (lost.length > 0) await removeNode(trx, id)
}

/** Keeps the row of a signaling node's link while the link is up. A fresh heartbeat means that calls can use it. */
export async function tellLink(
  db: Db | Trx,
  link: KnownProcess & { readonly id: string; readonly kind: 'edge' | 'media' },
  up: boolean,
  now_ms: number,
): Promise<void> {
  if (!up) await db.deleteFrom('node').where('id', '=', link.id).execute()
  else if (!(await heartbeat(db, link.id, now_ms))) await registerNode(db, link, now_ms)
}

/** Returns the signaling nodes of one machine, or of all. */
export const signalingNodes = (db: Db | Trx, machine_id?: string): Promise<NodeRow[]> =>
  db
    .selectFrom('node')
    .selectAll()
    .where('kind', '=', 'signaling')
    .$if(machine_id !== undefined, query => query.where('machine_id', '=', machine_id ?? ''))
    .execute()

export const findNode = (db: Db | Trx, id: string): Promise<NodeRow | undefined> =>
  db.selectFrom('node').selectAll().where('id', '=', id).executeTakeFirst()

/** Lists the processes of all machines. */
export const listNodes = (db: Db | Trx): Promise<NodeRow[]> =>
  db.selectFrom('node').selectAll().orderBy('machine_id').orderBy('kind').orderBy('id').execute()

/** Asks one node to take no new calls since a time, or with null to take them again. */
export async function setDraining(db: Db | Trx, id: string, draining_at: string | null): Promise<void> {
  await db.updateTable('node').set({ draining_at }).where('id', '=', id).execute()
}

/** A node that is cut off from the database, and that another machine hears, keeps its calls for this long. */
export const CUT_OFF_MS = 10 * 60_000

/** Notes that this machine hears nodes which do not reach the database. */
export async function attestNodes(db: Db, ids: readonly string[], now_ms: number): Promise<void> {
  await db
    .updateTable('node')
    .set({ attested_at: iso(now_ms) })
    .where('id', 'in', ids)
    .where('lost_at', 'is', null)
    .execute()
}

/** What an observer saw of a node last, and since when (on its monotonic clock, ms). */
interface Seen {
  readonly heartbeat_at: string
  readonly since_ms: number
  readonly attested_at: string | null
  readonly attested_since_ms: number
}

/** Observers look every 5 s. One that did not for this long was stopped or without storage, as others may have been. */
const BLIND_AFTER_MS = 10_000

/**
 * Finds silent nodes by the observer's own monotonic clock. Heartbeats are wall times, and a wall clock that jumps by
 * an hour must not end calls (threats §2.10). A node that another machine attests is cut off, and not yet lost.
 */
export class NodeWatch {
  readonly #seen = new Map<string, Seen>()
  #looked_ms = Number.NEGATIVE_INFINITY

  /** Returns the nodes that are lost: no heartbeat and no attestation for 15 s, or no heartbeat for 10 min. */
  silent<Node extends Pick<NodeRow, 'id' | 'heartbeat_at' | 'attested_at'>>(
    nodes: readonly Node[],
    monotonic_ms: number,
  ): Node[] {
    if (monotonic_ms - this.#looked_ms > BLIND_AFTER_MS) this.#seen.clear()
    this.#looked_ms = monotonic_ms
    const silent: Node[] = []
    for (const node of nodes) {
      const { id, heartbeat_at, attested_at } = node
      let known = this.#seen.get(id)
      if (known?.heartbeat_at !== heartbeat_at)
        known = { heartbeat_at, since_ms: monotonic_ms, attested_at, attested_since_ms: monotonic_ms }
      else if (known.attested_at !== attested_at) known = { ...known, attested_at, attested_since_ms: monotonic_ms }
      this.#seen.set(id, known)
      const cut_off = monotonic_ms - known.since_ms < CUT_OFF_MS
      const unheard = monotonic_ms - known.attested_since_ms >= LOST_AFTER_MS
      if (unheard || !cut_off) silent.push(node)
    }
    const ids = new Set(nodes.map(({ id }) => id))
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id)
    return silent
  }
}

/**
 * Asks the signaling nodes of a machine to take no new calls from now on, or with null to take them again. Returns the
 * number of nodes.
 */
export async function askToDrain(db: Db | Trx, machine_id: string, since_ms: number | null): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('node')
    .set(eb => ({ draining_at: since_ms === null ? null : eb.fn.coalesce('draining_at', eb.val(iso(since_ms))) }))
    .where('kind', '=', 'signaling')
    .where('machine_id', '=', machine_id)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

export async function saveDraining(db: Db | Trx, id: string, since_ms: number): Promise<void> {
  await db
    .updateTable('node')
    .set({ draining_at: iso(since_ms) })
    .where('id', '=', id)
    .where('draining_at', 'is', null)
    .execute()
}

export async function isAskedToDrain(db: Db | Trx, id: string): Promise<boolean> {
  const row = await db.selectFrom('node').select('draining_at').where('id', '=', id).executeTakeFirst()
  return (row?.draining_at ?? null) !== null
}

/**
 * Ends the calls of signaling nodes that have been silent for 15 s, and deletes those nodes. `watch` has observed them
 * for the caller: each process judges silence for itself. `dead` reports nodes that are known to be gone, such as a
 * predecessor on this machine whose process has exited. What another observer began and did not finish goes on. Returns
 * the ended calls' sids.
 */
export async function endCallsOfLostNodes(
  state: State,
  clock: Pick<Clock, 'now' | 'monotonic_ms'>,
  watch: NodeWatch,
  options: { readonly dead?: (node: NodeRow) => boolean } = {},
): Promise<string[]> {
  // While the state cannot be written, a missing heartbeat proves nothing.
  await state.probe()
  const now_ms = clock.now()
  const nodes = await signalingNodes(state.db)
  const silent = new Set(watch.silent(nodes, clock.monotonic_ms()))
  const ended: string[] = []
  for (const node of nodes) {
    if (node.lost_at === null) {
      const gone = silent.has(node) || (options.dead?.(node) ?? false)
      if (!gone || !(await declareLost(state.db, node, now_ms))) continue
    }
    ended.push(...(await endCallsOfLostNode(state, node, now_ms)))
    await state.transaction(trx => removeLost(trx, node.id))
  }
  return ended
}
