import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { CallQueueTable, Db, QueueMemberTable, Trx } from '../db.ts'
import type { ListWindow } from './conferences.ts'

/** Queues and the callers who wait in them. */

export type QueueRow = Selectable<CallQueueTable>
export type QueueMemberRow = Selectable<QueueMemberTable>

export const DEFAULT_QUEUE_SIZE = 100
export const MAX_QUEUE_SIZE = 5000

/**
 * The sid of a queue follows from its project and name: a node that makes a queue and an API that names one need not
 * agree first.
 */
export const queueSidOf = (project_id: string, friendly_name: string): string =>
  `QU${createHash('sha256').update(`${project_id}\n${friendly_name}`).digest('hex').slice(0, 32)}`

/** Returns the queue of a name. Makes it when the project has none; `max_size` null leaves the size. */
export async function ensureQueue(
  trx: Trx,
  { project_id, friendly_name, max_size }: Pick<QueueRow, 'project_id' | 'friendly_name'> & { max_size: number | null },
  now_ms: number,
): Promise<QueueRow> {
  const now = iso(now_ms)
  const sid = queueSidOf(project_id, friendly_name)
  const found = await findQueue(trx, project_id, sid)
  if (found)
    return max_size === null || max_size === found.max_size ? found : saveQueue(trx, found, { max_size }, now_ms)
  return trx
    .insertInto('call_queue')
    .values({
      sid,
      project_id,
      friendly_name,
      max_size: max_size ?? DEFAULT_QUEUE_SIZE,
      node_id: null,
      revision: 1,
      created_at: now,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Makes a queue the node's, unless another node keeps it. Returns the machine of that node; null when it is ours. */
export async function claimQueue(trx: Trx, sid: string, node_id: string): Promise<string | null> {
  await trx
    .updateTable('call_queue')
    .set({ node_id })
    .where('sid', '=', sid)
    .where(eb =>
      eb.or([
        eb('node_id', 'is', null),
        eb.not(
          eb.exists(
            eb
              .selectFrom('node')
              .select('node.id')
              .whereRef('node.id', '=', 'call_queue.node_id')
              .where('node.lost_at', 'is', null),
          ),
        ),
      ]),
    )
    .execute()
  const keeper = await trx
    .selectFrom('call_queue')
    .innerJoin('node', 'node.id', 'call_queue.node_id')
    .select('node.machine_id')
    .where('call_queue.sid', '=', sid)
    .where('node.id', '!=', node_id)
    .executeTakeFirst()
  return keeper?.machine_id ?? null
}

/** Gives up a queue in which nobody waits. The node that needs it next keeps it. */
export const releaseQueue = async (trx: Trx, sid: string, node_id: string): Promise<void> => {
  await trx
    .updateTable('call_queue')
    .set({ node_id: null })
    .where('sid', '=', sid)
    .where('node_id', '=', node_id)
    .execute()
}

export const findQueue = (db: Db | Trx, project_id: string, sid: string): Promise<QueueRow | undefined> =>
  db.selectFrom('call_queue').selectAll().where('sid', '=', sid).where('project_id', '=', project_id).executeTakeFirst()

/** Lists the queues of a project, newest first. */
export async function listQueues(db: Db, project_id: string, window: ListWindow, limit: number): Promise<QueueRow[]> {
  let query = db.selectFrom('call_queue').selectAll().where('project_id', '=', project_id).limit(limit)
  if ('newer_than' in window) {
    const rows = await query.where('position', '>', window.newer_than).orderBy('position').execute()
    return rows.reverse()
  }
  if ('older_than' in window) query = query.where('position', '<', window.older_than)
  else query = query.offset(window.offset)
  return query.orderBy('position', 'desc').execute()
}

export const countQueues = async (db: Db | Trx, project_id: string): Promise<number> => {
  const { count } = await db
    .selectFrom('call_queue')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('project_id', '=', project_id)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export const saveQueue = (
  trx: Trx,
  queue: QueueRow,
  changes: Partial<Pick<QueueRow, 'max_size'>>,
  now_ms: number,
): Promise<QueueRow> =>
  trx
    .updateTable('call_queue')
    .set({ ...changes, revision: queue.revision + 1, updated_at: iso(now_ms) })
    .where('sid', '=', queue.sid)
    .returningAll()
    .executeTakeFirstOrThrow()

export const deleteQueue = async (trx: Trx, sid: string): Promise<void> => {
  await trx.deleteFrom('call_queue').where('sid', '=', sid).execute()
}

/** Lists the callers who wait, first come first. Callers of a node that was lost do not wait any more. */
export const listQueueMembers = (db: Db | Trx, queue_sid: string): Promise<QueueMemberRow[]> =>
  db
    .selectFrom('queue_member')
    .innerJoin('call', 'call.sid', 'queue_member.call_sid')
    .selectAll('queue_member')
    .where('queue_member.queue_sid', '=', queue_sid)
    .where('call.ended_at', 'is', null)
    .orderBy('queue_member.position')
    .execute()

/** Puts a call at the end of a queue. Returns false when the queue is full. */
export async function addMember(trx: Trx, queue: QueueRow, call_sid: string, now_ms: number): Promise<boolean> {
  const waiting = await listQueueMembers(trx, queue.sid)
  if (waiting.length >= queue.max_size) return false
  await removeMember(trx, call_sid)
  await trx
    .insertInto('queue_member')
    .values({ call_sid, queue_sid: queue.sid, project_id: queue.project_id, enqueued_at: iso(now_ms) })
    .execute()
  return true
}

export const removeMember = (db: Db | Trx, call_sid: string): Promise<QueueMemberRow | undefined> =>
  db.deleteFrom('queue_member').where('call_sid', '=', call_sid).returningAll().executeTakeFirst()

/** Puts a call back where it was in its queue. */
export const restoreMember = async (trx: Trx, row: QueueMemberRow): Promise<void> => {
  await trx.insertInto('queue_member').values(row).execute()
}

/** Removes what lost nodes left: members whose calls are over. It looks at the calls of members alone. */
export const pruneMembers = async (db: Db): Promise<void> => {
  await db
    .deleteFrom('queue_member')
    .where(eb =>
      eb.exists(
        eb
          .selectFrom('call')
          .select('call.sid')
          .whereRef('call.sid', '=', 'queue_member.call_sid')
          .where('call.ended_at', 'is not', null),
      ),
    )
    .execute()
}
