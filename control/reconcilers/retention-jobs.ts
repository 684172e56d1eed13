import { runningRetentionJobs, stepRetentionJob } from '../../core/state/calls/retention-jobs.ts'
import type { Reconciler } from './reconciler.ts'

/** Carries out retention jobs, a batch of each in turn, so that a large job does not delay the others. */
export const retentionJobs: Reconciler = {
  name: 'retention-jobs',
  period_ms: 5000,
  runs: 'once',
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
