import { type Clock, systemClock } from '../../runtime/clock.ts'
import { bootId } from '../../runtime/machine.ts'
import type { Prepared } from './prepared.ts'

interface Settings {
  readonly clock?: Pick<Clock, 'now' | 'monotonic_ms'>
  /** Empty when the system has no boot id. */
  readonly boot_id?: string
}

/**
 * Returns the store's clock: epoch milliseconds that jumps of the wall clock do not affect (decision 0641). The first
 * procedure after a boot stores the offset of the wall clock from the monotonic clock. Every process of this boot then
 * adds that offset to the monotonic clock.
 */
export function storeClock(
  prepared: (sql: string) => Prepared,
  { clock = systemClock, boot_id = bootId() }: Settings = {},
): () => number {
  let ahead_ms: number | null = null
  const ahead = (): number => {
    const now = Math.floor(clock.now() - clock.monotonic_ms())
    // Without a boot id, a stored offset may be from an earlier boot.
    if (boot_id === '') {
      ahead_ms = now
      return now
    }
    const [row] = prepared('select ahead_ms from store_clock where boot_id = ?').all([boot_id])
    if (row) {
      ahead_ms = Number(row['ahead_ms'])
      return ahead_ms
    }
    // Cached only once it is read back, because this transaction may be rolled back.
    prepared('delete from store_clock').run([])
    prepared('insert into store_clock (boot_id, ahead_ms) values (?, ?)').run([boot_id, now])
    return now
  }
  return () => Math.floor(clock.monotonic_ms() + (ahead_ms ?? ahead()))
}
