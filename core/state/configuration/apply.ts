import type { Db } from '../db.ts'
import { CONFIGURATION } from './snapshot.ts'
import type { NodeReport } from './trunk-facts.ts'

/** The extent to which the signaling nodes have applied a resource (design section 8). */
export interface Applied {
  readonly state: 'applying' | 'applied' | 'failed'
  readonly effective_revision: number
  readonly applied_at: string | null
  readonly error: string | null
}

/** A node without a heartbeat for longer does not count. */
export const NODE_SILENCE_MS = 15_000

/**
 * Computes a resource's apply state. The effective revision is the lowest that any live signaling node has applied. A
 * node without a report of the resource counts as 0. Without a live node nothing is in force.
 */
export async function appliedState(
  db: Db,
  resource: { readonly id: string; readonly revision: number },
  now_ms: number,
): Promise<Applied> {
  const rows = await db
    .selectFrom('node')
    .leftJoin('apply_report', join =>
      join.onRef('apply_report.node_id', '=', 'node.id').on('apply_report.resource_id', '=', resource.id),
    )
    .select(['apply_report.revision', 'apply_report.state', 'apply_report.error', 'apply_report.applied_at'])
    .where('node.kind', '=', 'signaling')
    .where('node.heartbeat_at', '>=', new Date(now_ms - NODE_SILENCE_MS).toISOString())
    .execute()
  return appliedFrom(rows, resource.revision)
}

/** Computes the apply state from the reports of the live nodes. */
export function appliedFrom(rows: readonly NodeReport[], revision: number): Applied {
  const failed = rows.find(row => row.state === 'failed' && row.revision !== null && row.revision >= revision)
  const effective = rows.map(row => (row.state === 'applied' ? (row.revision ?? 0) : failedFrom(row.revision)))
  const effective_revision = rows.length === 0 ? 0 : Math.min(...effective)
  const applied_at = rows.reduce<string | null>((last, row) => later(last, row.applied_at), null)
  if (failed) return { state: 'failed', effective_revision, applied_at, error: failed.error }
  const state = effective_revision >= revision ? 'applied' : 'applying'
  return { state, effective_revision, applied_at, error: null }
}

/** A node that could not apply a revision keeps running the one before it. */
const failedFrom = (revision: number | null): number => Math.max(0, (revision ?? 0) - 1)

const later = (a: string | null, b: string | null): string | null => (a === null || (b !== null && b > a) ? b : a)

/** How far the live signaling nodes have come with the configuration as a whole. */
export interface InForce {
  readonly nodes: number
  /** The revision that every live node has; 0 without a node. */
  readonly all: number
  /** The highest revision that a live node has; 0 without a node. */
  readonly some: number
}

export async function configurationInForce(db: Db, now_ms: number): Promise<InForce> {
  const rows = await db
    .selectFrom('node')
    .leftJoin('apply_report', join =>
      join.onRef('apply_report.node_id', '=', 'node.id').on('apply_report.resource_id', '=', CONFIGURATION),
    )
    .select('apply_report.revision')
    .where('node.kind', '=', 'signaling')
    .where('node.heartbeat_at', '>=', new Date(now_ms - NODE_SILENCE_MS).toISOString())
    .execute()
  const revisions = rows.map(({ revision }) => revision ?? 0)
  const none = revisions.length === 0
  return { nodes: revisions.length, all: none ? 0 : Math.min(...revisions), some: none ? 0 : Math.max(...revisions) }
}

/** Returns how far a change has come that configuration revision `revision` puts in force. */
export const progressOf = (revision: number, { all, some }: InForce): 'pending' | 'applying' | 'applied' =>
  all >= revision && all > 0 ? 'applied' : some >= revision && some > 0 ? 'applying' : 'pending'
