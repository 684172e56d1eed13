import { type HOUR_MS, type MINUTE_MS, stepOf, type Window, windowBegin } from '../../domain/metrics/index.ts'
import { iso } from '../../runtime/clock.ts'
import type { Db } from '../db.ts'
import { LOST_AFTER_MS } from '../nodes/nodes.ts'

/** A project's calls over time: sums over its trunks and over the calls without a trunk. */

interface ProjectStep {
  readonly begin_ms: number
  readonly attempts: number
  readonly answered: number
  readonly answered_seconds: number
}

interface ProjectSteps {
  readonly step_ms: typeof MINUTE_MS | typeof HOUR_MS
  readonly first_ms: number
  readonly steps: readonly ProjectStep[]
}

/** Returns the steps of a window that ends now, oldest first. Omits steps without calls. */
export async function projectSteps(db: Db, project_id: string, window: Window, now_ms: number): Promise<ProjectSteps> {
  const step_ms = stepOf(window)
  const first_ms = windowBegin(now_ms, window)
  const rows = await db
    .selectFrom('trunk_step')
    .select(eb => [
      'begin_ms',
      eb.fn.sum<number>('attempts').as('attempts'),
      eb.fn.sum<number>('answered').as('answered'),
      eb.fn.sum<number>('answered_seconds').as('answered_seconds'),
    ])
    .where('step_ms', '=', step_ms)
    .where('begin_ms', '>=', first_ms)
    .where(eb =>
      eb.or([
        // Rows of calls without a trunk have the project's id as their trunk.
        eb('trunk_id', '=', project_id),
        eb('trunk_id', 'in', eb.selectFrom('trunk').select('trunk.id').where('trunk.project_id', '=', project_id)),
      ]),
    )
    .groupBy('begin_ms')
    .orderBy('begin_ms')
    .execute()
  const steps = rows.map(row => ({
    begin_ms: Number(row.begin_ms),
    attempts: Number(row.attempts),
    answered: Number(row.answered),
    answered_seconds: Number(row.answered_seconds),
  }))
  return { step_ms, first_ms, steps }
}

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
    .where('ended_at', 'is', null)
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

interface NodeSeen {
  readonly id: string
  readonly kind: string
  readonly heartbeat_at: string
  /** Since when the node takes no new calls. */
  readonly draining_at: string | null
}

export const stateOfNode = ({ heartbeat_at, draining_at }: NodeSeen, now_ms: number): 'up' | 'draining' | 'lost' =>
  now_ms - Date.parse(heartbeat_at) > LOST_AFTER_MS ? 'lost' : draining_at === null ? 'up' : 'draining'

export const listNodes = (db: Db): Promise<NodeSeen[]> =>
  db.selectFrom('node').select(['id', 'kind', 'heartbeat_at', 'draining_at']).orderBy('kind').orderBy('id').execute()

/** Returns the newest live calls of all projects. */
export const liveCalls = (db: Db, limit: number) =>
  db
    .selectFrom('call')
    .leftJoin('trunk', 'trunk.id', 'call.trunk_id')
    .selectAll('call')
    .select('trunk.name as trunk_name')
    .where('call.ended_at', 'is', null)
    .orderBy('call.position', 'desc')
    .limit(limit)
    .execute()
