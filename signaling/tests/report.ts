import type { TestVerdict } from '../../core/domain/trunk-tests/index.ts'
import { type Clock, iso } from '../../core/runtime/clock.ts'
import { saveCheck } from '../../core/state/configuration/trunk-tests.ts'
import type { State } from '../../core/state/index.ts'

/** Saves the checks of one test run as they are planned and completed. */
export class TestReport {
  readonly #options: {
    readonly state: State
    readonly clock: Clock
    readonly run_id: string
    readonly node_id: string
    changed(): void
  }
  readonly verdicts: TestVerdict[] = []
  #planned = 0

  constructor(options: {
    readonly state: State
    readonly clock: Clock
    readonly run_id: string
    readonly node_id: string
    changed(): void
  }) {
    this.#options = options
  }

  /** Saves a check as waiting. The returned function performs it and saves its verdict; call it once. */
  async plan(
    name: string,
    target_ref: string | null,
  ): Promise<(look: () => Promise<TestVerdict>) => Promise<TestVerdict>> {
    const { clock, run_id, node_id } = this.#options
    const check = { id: `${run_id}.${++this.#planned}`, run_id, target_ref, node_id }
    await this.#save({ ...check, state: 'waiting', summary: name, duration_ms: null, occurred_at: null })
    return async look => {
      const begun_ms = clock.monotonic_ms()
      const verdict = await look()
      this.verdicts.push(verdict)
      await this.#save({
        ...check,
        state: verdict.state,
        summary: verdict.summary,
        duration_ms: Math.round(clock.monotonic_ms() - begun_ms),
        occurred_at: iso(clock.now()),
      })
      return verdict
    }
  }

  async #save(check: Parameters<typeof saveCheck>[1]): Promise<void> {
    await this.#options.state.transaction(trx => saveCheck(trx, check))
    this.#options.changed()
  }
}
