import { iso } from '../../core/runtime/clock.ts'
import { appliedState, configurationInForce, type InForce, progressOf } from '../../core/state/configuration/apply.ts'
import {
  type AttachmentRow,
  markApplied,
  unappliedAttachments,
} from '../../core/state/configuration/policy-attachments.ts'
import { type DelegationRow, moveDelegation, movingDelegations } from '../../core/state/configuration/subtrunks.ts'
import type { Db } from '../../core/state/index.ts'
import type { Reconciler } from './reconciler.ts'

const BATCH = 500

/**
 * Moves attachments of policies and delegations of numbers on, as the signaling nodes report the configuration that has
 * them (design section 8).
 */
export const convergence: Reconciler = {
  name: 'convergence',
  period_ms: 500,
  runs: 'once',
  topics: ['jobs'],
  async run({ state: { db }, clock }) {
    const attachments = await unappliedAttachments(db, BATCH)
    const delegations = await movingDelegations(db, BATCH)
    if (attachments.length === 0 && delegations.length === 0) return
    const now_ms = clock.now()
    const in_force = await configurationInForce(db, now_ms)
    for (const attachment of attachments)
      if (progressOf(attachment.revision, in_force) === 'applied' && !(await failed(db, trunkOf(attachment), now_ms)))
        await markApplied(db, attachment, iso(now_ms))
    for (const delegation of delegations) {
      const status = nextStatus(delegation, in_force, await failed(db, delegation.trunk_id, now_ms))
      if (status !== delegation.status) await moveDelegation(db, delegation, status)
    }
  },
}

/** Returns the next status of a delegation; null when it is to be deleted. */
export function nextStatus(
  { status, revision }: Pick<DelegationRow, 'status' | 'revision'>,
  in_force: InForce,
  trunk_failed: boolean,
): DelegationRow['status'] | null {
  const progress = progressOf(revision, in_force)
  // Without a live node, nothing routes the numbers to the subtrunk any more.
  if (status === 'detaching') return progress === 'applied' || in_force.nodes === 0 ? null : 'detaching'
  return progress === 'applied' && trunk_failed ? 'failed' : progress
}

const trunkOf = ({ service_type, service_id }: AttachmentRow): string | null =>
  service_type === 'trunk' ? service_id : null

/** Reports whether a live node could not apply the saved revision of a trunk. */
async function failed(db: Db, trunk_id: string | null, now_ms: number): Promise<boolean> {
  const trunk =
    trunk_id === null
      ? undefined
      : await db.selectFrom('trunk').select(['id', 'revision']).where('id', '=', trunk_id).executeTakeFirst()
  return trunk !== undefined && (await appliedState(db, trunk, now_ms)).state === 'failed'
}
