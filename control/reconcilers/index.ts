import { createHttpClient } from '../../core/runtime/http/index.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { Counter, type Registry } from '../../core/runtime/metrics.ts'
import { TaskLease } from '../../core/state/nodes/task-lease.ts'
import { TASKS, tasksOf } from '../../core/state/nodes/task-lease-rows.ts'
import { emailChannel, smtpSettings } from '../alerts/channels.ts'
import { alertEvaluation, fraudWatch } from '../alerts/evaluate.ts'
import { notifications } from '../alerts/notifications.ts'
import { shortMessages } from '../alerts/short-messages.ts'
import type { Services } from '../http/services.ts'
import { type AcmeService, acmeCertificate } from './acme-certificate.ts'
import { auditEvents } from './audit-events.ts'
import { callExports } from './call-exports.ts'
import { convergence } from './convergence.ts'
import { deliverySurplus } from './delivery-surplus.ts'
import { deliveryTimes } from './delivery-times.ts'
import { expiredRows } from './expired-rows.ts'
import { oldLeases, orphanedLeases } from './leases.ts'
import { loadSamples } from './load-samples.ts'
import { lostNodes } from './lost-nodes.ts'
import { machines } from './machines.ts'
import { numberCharges } from './number-charges.ts'
import { numberImportTask } from './number-imports.ts'
import { priceBookDrafts } from './price-book-drafts.ts'
import { quarantines } from './quarantines.ts'
import { type Reconciler, type RunningReconciler, runReconciler } from './reconciler.ts'
import { recordingFiles, recordingRetention, recordingSealing, recordingUpload } from './recordings.ts'
import { retentionJobs } from './retention-jobs.ts'
import { statements } from './statements.ts'
import { traces } from './traces.ts'
import { trunkProgress } from './trunk-progress.ts'
import { overdueTrunkTests } from './trunk-tests.ts'
import { oldDeliveries, webhookDeliveries } from './webhook-deliveries.ts'

/** Every background task of the control plane except the deliveries, which need an HTTP client. */
const RECONCILERS: readonly Reconciler[] = [
  machines,
  trunkProgress,
  convergence,
  quarantines,
  oldDeliveries,
  deliverySurplus,
  deliveryTimes,
  orphanedLeases,
  oldLeases,
  expiredRows,
  recordingSealing,
  recordingRetention,
  recordingFiles,
  numberCharges,
  statements,
  priceBookDrafts,
  numberImportTask,
  retentionJobs,
  alertEvaluation,
  overdueTrunkTests,
]

/**
 * Starts the background tasks. Each says where it runs (`Reconciler.runs`). A task that one process runs for others is
 * taken over by another one when that process ends.
 */
export async function startReconcilers(
  services: Services & {
    readonly metrics: Registry
    /** The OpenTelemetry collector; null disables traces. */
    readonly otlp_url: string | null
    /** How to get a certificate; null gets none. */
    readonly acme: AcmeService | null
  },
): Promise<RunningReconciler> {
  const failures = new Counter({
    name: 'strowger_reconciler_failures_total',
    help: 'Runs of a background task that failed',
    labelNames: ['reconciler'] as const,
    registers: [services.metrics],
  })
  const http = createHttpClient({
    allow_private: services.settings.allow_private_webhooks,
    user_agent: 'Strowger/0.1',
    log: services.log,
  })
  const { smtp_url, smtp_from } = services.settings
  const channels = {
    email: smtp_url === null ? null : emailChannel(smtpSettings(smtp_url, smtp_from)),
    ...shortMessages(services, http),
  }
  const { state, clock, log } = services
  const machine = machineOf(services.settings.data_dir)
  const lease = new TaskLease({ name: TASKS, machine, state, clock, log })
  const own = new TaskLease({ name: tasksOf(machine), machine, state, clock, log })
  await Promise.all([lease.renew(), own.renew()])
  const running = [
    ...RECONCILERS,
    lostNodes(),
    auditEvents(),
    recordingUpload(),
    callExports(),
    fraudWatch(),
    loadSamples(),
    notifications(channels),
    webhookDeliveries(http),
    ...(services.acme === null ? [] : [acmeCertificate(services.acme)]),
    ...(services.otlp_url === null ? [] : [traces(services.otlp_url)]),
  ].map(reconciler => {
    const of = { once: lease, 'each machine': own, everywhere: null }[reconciler.runs]
    return runReconciler(reconciler, of ? { ...services, state: of.state } : services, failures, () => of?.held ?? true)
  })
  return {
    async stop() {
      await Promise.all(running.map(one => one.stop()))
      await Promise.all([lease.stop(), own.stop()])
    },
  }
}
