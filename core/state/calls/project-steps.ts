import { iso } from '../../runtime/clock.ts'
import type { Db } from '../db.ts'
import { LOST_AFTER_MS } from '../nodes/nodes.ts'
import { isLive } from './live-calls.ts'

/** The calls and nodes of this moment. */

/** Counts the live calls, and those queued since `since_ms` among the newest `bound` calls. */
export async function callsNow(
  db: Db,
  project_id: string,
  since_ms: number,
  bound = 10_000,
): Promise<{ readonly live: number; readonly recent: number }> {
  const live = await db
    .selectFrom('call')
    .select(eb => eb.fn.countAll<number>().as('calls'))
    .where('project_id', '=', project_id)
    .where(isLive())
    .executeTakeFirst()
  const newest = db
    .selectFrom('call')
    .select('queued_at')
    .where('project_id', '=', project_id)
    .orderBy('position', 'desc')
    .limit(bound)
    .as('newest')
  const recent = await db
    .selectFrom(newest)
    .select(eb => eb.fn.countAll<number>().as('calls'))
    .where('newest.queued_at', '>=', iso(since_ms))
    .executeTakeFirst()
  return { live: Number(live?.calls ?? 0), recent: Number(recent?.calls ?? 0) }
}

/** Counts the live calls that an application answers or made. */
export async function liveCallsOf(db: Db, application_id: string): Promise<number> {
  const { calls } = await db
    .selectFrom('call')
    .select(eb => eb.fn.countAll<number>().as('calls'))
    .where('application_id', '=', application_id)
    .where(isLive())
    .executeTakeFirstOrThrow()
  return Number(calls)
}

interface NodeSeen {
  readonly id: string
  readonly kind: string
  readonly heartbeat_at: string
  /** Since when the node takes no new calls. */
  readonly draining_at: string | null
}

export const stateOfNode = ({ heartbeat_at, draining_at }: NodeSeen, now_ms: number): 'up' | 'draining' | 'lost' =>
  now_ms - Date.parse(heartbeat_at) > LOST_AFTER_MS ? 'lost' : draining_at === null ? 'up' : 'draining'

export const nodesSeen = (db: Db): Promise<NodeSeen[]> =>
  db.selectFrom('node').select(['id', 'kind', 'heartbeat_at', 'draining_at']).orderBy('kind').orderBy('id').execute()

/** Returns the newest live calls of all projects. */
export const newestLiveCalls = (db: Db, limit: number) =>
  db
    .selectFrom('call')
    .leftJoin('trunk', 'trunk.id', 'call.trunk_id')
    .selectAll('call')
    .select('trunk.name as trunk_name')
    .where(isLive())
    .orderBy('call.position', 'desc')
    .limit(limit)
    .execute()
