import { Counter, type Registry } from '../../runtime/metrics.ts'
import type { State, StateWork } from '../index.ts'

const FIGURES: readonly (readonly [keyof StateWork, string])[] = [
  ['messages', 'Messages to the thread that writes the database'],
  ['statements', 'SQL statements of the connections that write'],
  ['commits', 'Transactions committed by the connections that write'],
]

/** Registers counters of this process's database work. Each scrape reads the current values. */
export function exposeState(state: State, metrics: Registry): void {
  for (const [figure, help] of FIGURES)
    new Counter({
      name: `strowger_state_${figure}_total`,
      help,
      registers: [metrics],
      collect() {
        this.reset()
        this.inc(state.work()[figure])
      },
    })
}
