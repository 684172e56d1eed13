import { runningRetentionJobs, stepRetentionJob } from '../../core/state/calls/retention-jobs.ts'
import type { Reconciler } from './reconciler.ts'

/** Carries retention jobs out, a batch of each in turn, so that a large one holds up nobody. */
export const retentionJobs: Reconciler = {
  name: 'retention-jobs',
  period_ms: 5000,
  topics: ['jobs'],
  async run({ state, clock }) {
    let open = (await runningRetentionJobs(state.db)).map(({ id }) => id)
    while (open.length > 0) {
      const next: string[] = []
      for (const id of open) if (await stepRetentionJob(state, id, clock.now())) next.push(id)
      open = next
    }
  },
}
