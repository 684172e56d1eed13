import type { Log } from '../core/runtime/log.ts'
import type { State } from '../core/state/index.ts'

const PERIOD_MS = 1000

interface Following {
  /** Checks for a change. Resolves when a check that begins after this call has ended; never rejects. */
  look(): Promise<void>
  stop(): void
}

/**
 * Calls `read` now and after each change of the configuration. The first call may reject. A later failure is retried
 * every second, and logged once as `failed`; the previous configuration stays in force.
 */
export async function followConfiguration(
  state: Pick<State, 'db'>,
  log: Log,
  { read, failed }: { readonly read: () => Promise<void>; readonly failed: string },
): Promise<Following> {
  let revision = -1
  let failing = false
  let last: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | undefined

  const readChange = async (): Promise<void> => {
    const row = await state.db.selectFrom('configuration').select('revision').executeTakeFirst()
    if (!row || row.revision === revision) return
    await read()
    revision = row.revision
  }
  const check = async (): Promise<void> => {
    waiting = undefined
    try {
      await readChange()
      failing = false
    } catch (err) {
      if (!failing) log.warn({ err }, failed)
      failing = true
    }
  }
  const look = (): Promise<void> => {
    if (!waiting) last = waiting = last.then(check)
    return waiting
  }
  await readChange()
  const timer = setInterval(() => void look(), PERIOD_MS)
  timer.unref()
  return { look, stop: () => clearInterval(timer) }
}
