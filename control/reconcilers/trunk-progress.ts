import { iso } from '../../core/runtime/clock.ts'
import { countLiveCalls } from '../../core/state/calls/counters.ts'
import { appliedState } from '../../core/state/configuration/apply.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { detachPolicy } from '../../core/state/configuration/policy-attachments.ts'
import { listDelegations, releasingSubtrunks, saveSubtrunk } from '../../core/state/configuration/subtrunks.ts'
import {
  releaseTrunk,
  releasingTrunks,
  trunkReferences,
  unappliedCredentials,
  updateCredential,
} from '../../core/state/configuration/trunks.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from './reconciler.ts'

/**
 * Finishes changes of trunks once the signaling nodes have applied them. A releasing trunk that nothing refers to
 * becomes released. A new digest credential that all nodes have is marked as applied.
 */
export const trunkProgress: Reconciler = {
  name: 'trunk-progress',
  period_ms: 2000,
  runs: 'once',
  topics: ['jobs'],
  async run(services) {
    await finishReleases(services)
    await finishSubtrunks(services)
    await markCredentials(services)
  },
}

async function finishReleases({ state, clock, bus, log }: Services): Promise<void> {
  for (const trunk of await releasingTrunks(state.db)) {
    const { state: applied } = await appliedState(state.db, trunk, clock.now())
    if (applied !== 'applied' || (await trunkReferences(state.db, trunk.id)) !== null) continue
    await state.transaction(async trx => {
      await detachPolicy(trx, { type: 'trunk', id: trunk.id })
      await releaseTrunk(trx, trunk, iso(clock.now()))
      await bumpConfiguration(trx)
    })
    bus.ring('configuration')
    log.info({ trunk_id: trunk.id }, 'a trunk was released')
  }
}

/** Releases subtrunks after their last call, once no node routes a number to them. Their policy is detached. */
async function finishSubtrunks({ state, clock, bus }: Services): Promise<void> {
  for (const subtrunk of await releasingSubtrunks(state.db)) {
    const live = (await countLiveCalls(state.db, 'subtrunk', [subtrunk.id])).get(subtrunk.id) ?? 0
    if (live > 0 || (await listDelegations(state.db, subtrunk.id)).length > 0) continue
    await state.transaction(async trx => {
      await detachPolicy(trx, { type: 'subtrunk', id: subtrunk.id })
      await saveSubtrunk(trx, subtrunk, { status: 'released' }, iso(clock.now()))
      await bumpConfiguration(trx)
    })
    bus.ring('configuration')
  }
}

async function markCredentials({ state, clock }: Services): Promise<void> {
  for (const credential of await unappliedCredentials(state.db)) {
    const trunk = await state.db
      .selectFrom('trunk')
      .select(['id', 'revision'])
      .where('id', '=', credential.trunk_id)
      .executeTakeFirst()
    if (!trunk) continue
    const applied = await appliedState(state.db, trunk, clock.now())
    if (applied.state === 'applied')
      await updateCredential(state.db, credential.id, { new_applied_at: iso(clock.now()) })
  }
}
