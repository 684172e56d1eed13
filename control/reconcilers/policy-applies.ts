import { iso } from '../../core/runtime/clock.ts'
import { appliedState } from '../../core/state/configuration/apply.ts'
import { markApplied, unappliedAttachments } from '../../core/state/configuration/policies.ts'
import type { Reconciler } from './reconciler.ts'

const BATCH = 500

/** Marks a changed policy as applied to its services: to a trunk once every live node runs the saved revision. */
export const policyApplies: Reconciler = {
  name: 'policy-applies',
  period_ms: 1000,
  topics: ['jobs'],
  async run({ state, clock }) {
    for (const attachment of await unappliedAttachments(state.db, BATCH)) {
      const now_ms = clock.now()
      if (attachment.service_type === 'trunk') {
        const trunk = await state.db
          .selectFrom('trunk')
          .select(['id', 'revision'])
          .where('id', '=', attachment.service_id)
          .executeTakeFirst()
        if (trunk && (await appliedState(state.db, trunk, now_ms)).state !== 'applied') continue
      }
      await markApplied(state.db, attachment.id, iso(now_ms))
    }
  },
}
