import { rm } from 'node:fs/promises'
import { CHRT } from '../../core/runtime/back-seat.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import {
  advanceCallExport,
  type CallExportRow,
  countExportFailure,
  droppedCallExports,
  expireCallExports,
  exportFile,
  exportUse,
  failCallExport,
  forgetCallExport,
  openCallExports,
} from '../../core/state/calls/call-exports.ts'
import { pathBelow } from '../../core/state/calls/recording-file.ts'
import { callsComeIn } from '../../core/state/maintenance/parts.ts'
import { lineFormat } from '../exports/columns.ts'
import { EXPORT_QUOTA_BYTES } from '../exports/jobs.ts'
import { type SliceWriter, startSliceWriter } from '../exports/writer.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from './reconciler.ts'

/** Rows of a job in one run, so that runs are short and several jobs take turns. */
const SLICE_ROWS = 100_000
/** The pace beside calls: on two cores, half of what an export can. */
const ROWS_A_SECOND = 60_000
/** Enough that what is to be done now is done first, and that a busy machine still finishes exports. */
const NICENESS = 10
/** Jobs of more calls take seconds: they run on what others leave of the processors. */
const LONG_JOB = 20_000
/** Where others leave next to nothing, jobs compete with them for so long. */
const COMPETES_MS = 60_000

/**
 * Writes the files of this machine's export jobs, a slice of each job a run, and removes the files of jobs that are
 * over. A process that takes over goes on where the last stored slice ended.
 */
export function callExports({
  slice_rows = SLICE_ROWS,
  quota_bytes = EXPORT_QUOTA_BYTES,
  niceness = NICENESS,
  long_job = LONG_JOB,
  chrt = CHRT,
} = {}): Reconciler {
  let writer: SliceWriter | null = null
  let competes_until_ms = Number.NEGATIVE_INFINITY
  const release = async (): Promise<void> => {
    const released = writer
    writer = null
    await released?.close()
  }
  const step = async (services: Services, job: CallExportRow, back_seat: boolean): Promise<void> => {
    const { state, settings, clock, log } = services
    const others = (await exportUse(state.db, job.project_id)).bytes - job.bytes
    const { data_dir, database_url } = settings
    const { reads_wait } = state.maintenance
    writer ??= startSliceWriter({ data_dir, database_url, reads_wait, niceness, back_seat: back_seat ? chrt : null })
    try {
      const outcome = await writer.write({
        ...job,
        path: pathBelow(settings.data_dir, exportFile(job)),
        lines: lineFormat(job.format, job.project_id === null ? 'operator' : 'customer'),
        filter: JSON.parse(job.filter),
        max_bytes: job.project_id === null ? Number.MAX_SAFE_INTEGER : quota_bytes - others,
        max_rows: slice_rows,
        rows_a_second: (await callsComeIn(state.db, clock.now())) ? ROWS_A_SECOND : null,
      })
      if ('failed' in outcome) return await fail(services, job, outcome.failed)
      await advanceCallExport(state, job.id, outcome, clock.now())
      if (!back_seat || !outcome.starved) return
      competes_until_ms = clock.monotonic_ms() + COMPETES_MS
      await release()
    } catch (err) {
      log.error({ err, export: job.id }, 'a slice of an export failed')
      await release().catch(() => undefined)
      if (await countExportFailure(state, job)) await fail(services, job, 'The platform could not write the export.')
    }
  }
  return {
    name: 'call-exports',
    period_ms: 5000,
    // A topic of its own: a slice wakes nothing else. The listeners of `jobs` would look at all their rows each time.
    topics: ['exports'],
    runs: 'each machine',
    async run(services) {
      const { state, bus, clock, settings } = services
      const { machine_id } = machineOf(settings.data_dir)
      await expireCallExports(state.db, clock.now())
      for (const job of await droppedCallExports(state.db, machine_id)) {
        await rm(pathBelow(settings.data_dir, exportFile(job)), { force: true })
        await forgetCallExport(state.db, job.id)
      }
      const open = await openCallExports(state.db, machine_id)
      const long = open.some(job => job.last_position - job.after_position > long_job)
      const back_seat = long && clock.monotonic_ms() >= competes_until_ms
      for (const job of open) await step(services, job, back_seat)
      if (open.length > 0) bus.ring('exports')
      else await release()
    },
    stop: release,
  }
}

async function fail({ state, settings, clock }: Services, job: CallExportRow, why: string): Promise<void> {
  await rm(pathBelow(settings.data_dir, exportFile(job)), { force: true })
  await failCallExport(state, job.id, why, clock.now())
}
