import { sql } from 'kysely'
import type { Db, LevelUseTable, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { dropOldRows } from '../maintenance/old-rows.ts'
import { callProcedure } from '../port.ts'
import type { AdmissionOutcome, AdmissionRequest } from '../procedures/admission/request.ts'
import type { Release, ReleaseInput } from '../procedures/ceilings/settle.ts'
import { pruneSpend } from './counters.ts'

/** Slots and money of calls. Admission takes them; the end of the call releases them, whichever process ends it. */

/**
 * Decides on a call and, when it is admitted, takes its slots and reserves its money, in one transaction and one
 * message to the state's thread. `dry_run` changes nothing. @throws StateError when the state cannot be written: refuse
 * the call with `state_unavailable`.
 */
export const takeAdmission = (
  db: Db | Trx,
  request: AdmissionRequest,
  { dry_run = false }: { readonly dry_run?: boolean } = {},
): Promise<AdmissionOutcome> => callProcedure(db, 'take_admission', { request, dry_run })

/** Says how a call of a trunk's peer or of a program would be decided now, also to one of the project's own numbers. */
export const askAdmission = (db: Db | Trx, request: AdmissionRequest): Promise<AdmissionOutcome> =>
  callProcedure(db, 'would_admit', request)

/**
 * Releases every slot of a call and settles its money. Idempotent. The end of a call does it in the transaction of its
 * CDR; this is for slots without a call.
 */
export const releaseAdmission = (db: Db | Trx, input: ReleaseInput): Promise<Release> =>
  callProcedure(db, 'release_admission', input)

/** The most calls whose leases one sweep releases (design section 4). */
const SWEEP_LIMIT = 500

/**
 * Releases the leases of calls that have ended, and of lost nodes' calls that were never inserted. The reconciler calls
 * it every few seconds. A node is lost after `lost_after_ms` without a heartbeat. Returns the number of calls.
 */
export async function sweepLeases(
  state: State,
  { now_ms, lost_after_ms = 15_000 }: { readonly now_ms: number; readonly lost_after_ms?: number },
): Promise<number> {
  const silent_since = new Date(now_ms - lost_after_ms).toISOString()
  const orphans = await state.db
    .selectFrom('lease')
    .leftJoin('node', 'node.id', 'lease.node_id')
    .leftJoin('call', 'call.sid', 'lease.call_sid')
    .select(['lease.call_sid', 'call.ended_at', 'call.answered_at', 'call.duration_seconds'])
    .distinct()
    .where('lease.ended_at', 'is', null)
    .where(eb =>
      eb.or([
        eb('call.ended_at', 'is not', null),
        eb.and([
          // Only leases without a call: another reconciler ends the live calls of lost nodes, with their CDRs.
          eb('call.sid', 'is', null),
          eb.or([eb('node.id', 'is', null), eb('node.heartbeat_at', '<', silent_since)]),
        ]),
      ]),
    )
    .limit(SWEEP_LIMIT)
    .execute()
  for (const { call_sid, answered_at, duration_seconds } of orphans)
    await releaseAdmission(state.db, {
      call_sid,
      answered: answered_at !== null,
      duration_seconds: duration_seconds ?? 0,
      now_ms,
    })
  return orphans.length
}

const LEVEL_COLUMN = {
  subtrunk: 'subtrunk_id',
  trunk: 'trunk_id',
  subaccount: 'subaccount_id',
  project: 'project_id',
} as const

const LEVEL_TABLE = {
  subtrunk: 'subtrunk',
  trunk: 'trunk',
  subaccount: 'subaccount',
  project: 'project',
  policy: 'outbound_policy',
} as const

/** Whether there is a thing of a level with this id. */
export const isOfLevel = async (db: Db | Trx, level: LevelUseTable['level'], id: string): Promise<boolean> =>
  (await db.selectFrom(LEVEL_TABLE[level]).select('id').where('id', '=', id).executeTakeFirst()) !== undefined

/**
 * Returns the leases that hold a slot of a level; those that held one at a moment within the last 30 days are found
 * among all of that time.
 */
export function holdersOf(db: Db | Trx, level: LevelUseTable['level'], id: string, at: string | null = null) {
  const all = db.selectFrom('lease').select(['call_sid', 'part', 'node_id', 'begun_at', 'ended_at']).orderBy('begun_at')
  const query =
    at === null
      ? all.where('ended_at', 'is', null)
      : all.where('begun_at', '<=', at).where(eb => eb.or([eb('ended_at', 'is', null), eb('ended_at', '>', at)]))
  return level === 'policy'
    ? query.where(eb => eb.or([eb('policy_id', '=', id), eb('parent_policy_id', '=', id)])).execute()
    : query.where(LEVEL_COLUMN[level], '=', id).execute()
}

const KEPT_DAYS = 30

/** Deletes leases, spend and refusals older than 30 days. Returns the number of rows. */
export async function pruneAdmission(state: State, now_ms: number, goesOn?: () => boolean): Promise<number> {
  const { db } = state
  const before = new Date(now_ms - KEPT_DAYS * 86_400_000).toISOString()
  const ended = sql<boolean>`ended_at is not null`
  const leases = await dropOldRows(state, { name: 'lease', number: 'id', at: 'begun_at', over: ended }, before, goesOn)
  const days = await pruneSpend(db, before.slice(0, 10))
  await db.deleteFrom('refusal_day').where('day', '<', before.slice(0, 10)).execute()
  const minutes = await callProcedure(db, 'prune_hours', null)
  return leases + days + minutes
}

export type { AdmissionOutcome, AdmissionRequest } from '../procedures/admission/request.ts'
