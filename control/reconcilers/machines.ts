import { chainOnDisk } from '../../core/runtime/certificate.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { seeMachine } from '../../core/state/nodes/machines.ts'
import type { Reconciler } from './reconciler.ts'

/** Notes that this machine runs, so that others do not forget it, and tell its peers what to trust. */
export const machines: Reconciler = {
  name: 'machines',
  period_ms: 60_000,
  runs: 'each machine',
  async run({ state, clock, settings }) {
    const chain = chainOnDisk(settings).join('\n')
    await seeMachine(state.db, machineOf(settings.data_dir).machine_id, chain, clock.now())
  },
}
