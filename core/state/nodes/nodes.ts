import type { Selectable } from 'kysely'
import { type Clock, iso } from '../../runtime/clock.ts'
import type { KnownProcess } from '../../runtime/machine.ts'
import { type AlsoAtEnd, endCallsOfNodes } from '../calls/running-calls.ts'
import type { Db, NodeTable, Trx } from '../db.ts'
import type { State } from '../index.ts'

export const HEARTBEAT_MS = 2000
/** A node silent for so long is lost (design section 8). */
export const LOST_AFTER_MS = 15_000

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
  link: KnownProcess & { readonly id: string; readonly kind: 'edge' | 'media' },
  up: boolean,
  now_ms: number,
): Promise<void> {
  if (!up) await db.deleteFrom('node').where('id', '=', link.id).execute()
  else if (!(await heartbeat(db, link.id, now_ms))) await registerNode(db, link, now_ms)
}

/** Of one machine, or of all. */
export const signalingNodes = (db: Db | Trx, machine_id?: string): Promise<NodeRow[]> =>
  db
    .selectFrom('node')
    .selectAll()
    .where('kind', '=', 'signaling')
    .$if(machine_id !== undefined, query => query.where('machine_id', '=', machine_id ?? ''))
    .execute()

/** What an observer must see unchanged to call a node silent, and since when it does (its own steady clock, ms). */
interface Seen {
  readonly heartbeat_at: string
  readonly since_ms: number
}

/**
 * Finds nodes that are silent, by the observer's own steady clock: heartbeats are wall times, and a wall clock that
 * jumps by an hour must end no call (threats §2.10).
 */
export class NodeWatch {
  readonly #seen = new Map<string, Seen>()
  #looked_ms: number | null = null

  /** Nodes whose heartbeat has not changed for 15 s of looking. */
  silent<Node extends Pick<NodeRow, 'id' | 'heartbeat_at'>>(
    nodes: readonly Node[],
    { now, monotonic_ms }: { now: number; monotonic_ms: number },
  ): Node[] {
    const first = this.#looked_ms === null
    // Whoever did not look (stopped, or without storage) knows nothing about the silence of others.
    if (this.#looked_ms !== null && monotonic_ms - this.#looked_ms > LOST_AFTER_MS) this.#seen.clear()
    this.#looked_ms = monotonic_ms
    const silent: Node[] = []
    for (const node of nodes) {
      const { id, heartbeat_at } = node
      const known = this.#seen.get(id)
      if (known?.heartbeat_at === heartbeat_at) {
        if (monotonic_ms - known.since_ms > LOST_AFTER_MS) silent.push(node)
        continue
      }
      // An observer that has just begun has only the wall clocks to go by.
      const before_ms = first ? Math.max(0, now - Date.parse(heartbeat_at)) : 0
      this.#seen.set(id, { heartbeat_at, since_ms: monotonic_ms - before_ms })
      if (before_ms > LOST_AFTER_MS) silent.push(node)
    }
    const ids = new Set(nodes.map(({ id }) => id))
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id)
    return silent
  }
}

/**
 * Asks the signaling nodes of a machine to take no new call from now on, or (null) to take them again; gives how many
 * they are.
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

/** Each process that has the state open is an observer. */
const watches = new WeakMap<State, NodeWatch>()

function watchOf(state: State): NodeWatch {
  const watch = watches.get(state) ?? new NodeWatch()
  watches.set(state, watch)
  return watch
}

/**
 * Ends the calls of signaling nodes that are silent for 15 s and forgets the nodes. `dead` names nodes that are known
 * to be gone already (a predecessor on this machine whose process is no more). Returns the sids of the calls ended.
 */
export async function endCallsOfLostNodes(
  state: State,
  clock: Pick<Clock, 'now' | 'monotonic_ms'>,
  options: { readonly dead?: (node: NodeRow) => boolean; readonly also?: AlsoAtEnd } = {},
): Promise<string[]> {
  // Where nobody can write, nobody's heartbeat can be seen to stop.
  await state.probe()
  const now = clock.now()
  const nodes = await signalingNodes(state.db)
  const silent = new Set(watchOf(state).silent(nodes, { now, monotonic_ms: clock.monotonic_ms() }))
  const lost = nodes.filter(node => silent.has(node) || (options.dead?.(node) ?? false))
  const ended = await endCallsOfNodes(state, lost, now, options.also)
  for (const node of lost) await state.transaction(trx => removeNode(trx, node.id))
  return ended
}
