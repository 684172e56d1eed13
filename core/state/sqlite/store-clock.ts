import { type Clock, systemClock } from '../../runtime/clock.ts'
import { bootId } from '../../runtime/machine.ts'
import type { Prepared } from './prepared.ts'

interface Settings {
  readonly clock?: Pick<Clock, 'now' | 'monotonic_ms'>
  /** Empty where the system tells none. */
  readonly boot_id?: string
}

/**
 * The store's clock: epoch milliseconds that no jump of the wall clock moves (decision 0641). The first procedure after
 * a boot of the machine writes down how far the wall clock is ahead of the steady one. From then on every process of
 * this boot adds that to the steady clock, whatever the wall clock says.
 */
export function storeClock(
  prepared: (sql: string) => Prepared,
  { clock = systemClock, boot_id = bootId() }: Settings = {},
): () => number {
  let ahead_ms: number | null = null
  const ahead = (): number => {
    const now = Math.floor(clock.now() - clock.monotonic_ms())
    // Without a boot to name, rows of an earlier one cannot be told apart.
    if (boot_id === '') {
      ahead_ms = now
      return now
    }
    const [row] = prepared('select ahead_ms from store_clock where boot_id = ?').all([boot_id])
    if (row) {
      ahead_ms = Number(row['ahead_ms'])
      return ahead_ms
    }
    // It is remembered when it is read back: this transaction may be rolled back.
    prepared('delete from store_clock').run([])
    prepared('insert into store_clock (boot_id, ahead_ms) values (?, ?)').run([boot_id, now])
    return now
  }
  return () => Math.floor(clock.monotonic_ms() + (ahead_ms ?? ahead()))
}
