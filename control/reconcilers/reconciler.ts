import type { Topic } from '../../core/runtime/bus.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { Counter } from '../../core/runtime/metrics.ts'
import { Sleeper } from '../../core/runtime/sleeper.ts'
import type { Services } from '../http/services.ts'

/**
 * A background task that makes the world match the rows (design section 8). It takes no input: a wake-up by the bus and
 * one by the timer run the same code, so that a lost wake-up only costs time.
 */
export interface Reconciler {
  readonly name: string
  readonly period_ms: number
  readonly topics?: readonly Topic[]
  /**
   * Where it runs. `once`: in one process of the installation, and in another one when that has ended. `each machine`:
   * in one process of each machine, for its files. `everywhere`: in every control process, each with a share of the
   * rows, which it claims.
   */
  readonly runs: 'once' | 'each machine' | 'everywhere'
  /** A run that takes long ends early when `goesOn` says that the task is stopped, or another process has it. */
  run(services: Services, goesOn?: () => boolean): Promise<void>
  /** Ends the work that runs left in the background. */
  stop?(): Promise<void>
}

export interface RunningReconciler {
  /** Starts no further run. Resolves when the current one has ended. */
  stop(): Promise<void>
}

/**
 * Runs a reconciler by its timer and topics, one run at a time, while `mayRun()` is true. A failure is logged and
 * counted; the next run tries again.
 */
export function runReconciler(
  reconciler: Reconciler,
  services: Services,
  failures: Counter<'reconciler'>,
  mayRun: () => boolean,
): RunningReconciler {
  const log: Log = services.log.child({ reconciler: reconciler.name })
  const sleeper = new Sleeper({
    async work(goesOn) {
      if (mayRun()) await reconciler.run(services, () => goesOn() && mayRun())
    },
    failed: err => {
      failures.inc({ reconciler: reconciler.name })
      log.error({ err }, 'a background task failed')
    },
    every: { clock: services.clock, period_ms: reconciler.period_ms },
  })
  const unheard = (reconciler.topics ?? []).map(topic => services.bus.on(topic, () => void sleeper.wake()))
  void sleeper.wake()
  return {
    async stop() {
      for (const unhear of unheard) unhear()
      await sleeper.stop()
      await reconciler.stop?.()
    },
  }
}
