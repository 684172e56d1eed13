import type { DequeueCommand, Sound } from '../../core/domain/calls/control-commands.ts'
import { counted } from '../../core/domain/text/counted.ts'
import { insertCommand } from '../../core/state/calls/calls.ts'
import {
  countQueues,
  deleteQueue,
  ensureQueue,
  findQueue,
  listQueueMembers,
  MAX_QUEUE_SIZE,
  type QueueMemberRow,
  type QueueRow,
  queueSidOf,
  saveQueue,
} from '../../core/state/calls/queues.ts'
import type { Db } from '../../core/state/index.ts'
import { invalid, type Refusal, refuse } from '../http/reply.ts'
import type { LiveRequest } from './asked.ts'

/** The most queues of a project. */
const MAX_QUEUES = 1000

const badSize = (): Refusal<'validation_failed'> => invalid('/max_size', `is not 1 to ${MAX_QUEUE_SIZE}`)

/** Makes a queue. A project has one of each name. */
export async function createQueue(
  { trx, project_id, now_ms }: LiveRequest,
  { friendly_name, max_size }: { readonly friendly_name: string; readonly max_size: number | null },
): Promise<QueueRow | Refusal<'validation_failed' | 'state_conflict' | 'limit_reached'>> {
  if (max_size !== null && !fits(max_size)) return badSize()
  if (await findQueue(trx, project_id, queueSidOf(project_id, friendly_name)))
    return refuse('state_conflict', { name: friendly_name, value: 'the name of a queue already' })
  if ((await countQueues(trx, project_id)) >= MAX_QUEUES)
    return refuse('limit_reached', { name: 'queues', limit: MAX_QUEUES })
  return ensureQueue(trx, { project_id, friendly_name, max_size }, now_ms)
}

const fits = (max_size: number): boolean => max_size >= 1 && max_size <= MAX_QUEUE_SIZE

/** Changes how many callers may wait. Those who wait already stay. */
export async function resizeQueue(
  { trx, now_ms }: LiveRequest,
  queue: QueueRow,
  max_size: number,
): Promise<QueueRow | Refusal<'validation_failed'>> {
  return fits(max_size) ? saveQueue(trx, queue, { max_size }, now_ms) : badSize()
}

/** Deletes a queue in which nobody waits. */
export async function removeQueue({ trx }: LiveRequest, queue: QueueRow): Promise<Refusal<'state_conflict'> | null> {
  const waiting = await listQueueMembers(trx, queue.sid)
  if (waiting.length > 0)
    return refuse('state_conflict', {
      name: queue.friendly_name,
      value: `where ${counted(waiting.length, 'caller waits', 'callers wait')}`,
    })
  await deleteQueue(trx, queue.sid)
  return null
}

/** A caller in a queue. `position` begins with 1. */
export interface Member {
  readonly row: QueueMemberRow
  readonly position: number
  readonly wait_seconds: number
}

export async function membersOf(
  asked: Pick<LiveRequest, 'now_ms'> & { db: LiveRequest['trx'] | Db },
  queue_sid: string,
) {
  const rows = await listQueueMembers(asked.db, queue_sid)
  return rows.map(
    (row, index): Member => ({
      row,
      position: index + 1,
      wait_seconds: Math.max(0, Math.floor((asked.now_ms - Date.parse(row.enqueued_at)) / 1000)),
    }),
  )
}

/** Takes a caller out of the queue, who then runs the document at `sound`. */
export async function dequeue({ trx, now_ms }: LiveRequest, { row }: Member, { url, method }: Sound): Promise<void> {
  const command: DequeueCommand = { queue_sid: row.queue_sid, url, method }
  await insertCommand(trx, row.call_sid, 'dequeue', command, now_ms)
}
