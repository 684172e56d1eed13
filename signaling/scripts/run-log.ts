import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, iso } from '../../core/runtime/clock.ts'
import type { Config } from '../../core/runtime/config.ts'
import type { Log } from '../../core/runtime/log.ts'

/** The maximum size of a run's log: a script that loops for a day must not fill the disk. */
const MAX_BYTES = 4 * 1024 * 1024

/**
 * The log of one run, which `bin/strowger replay` runs again: `<data>/runs/<call sid>-<n>.jsonl`. It contains
 * documents, so only the service's user can read it, and it is removed after `run_log_days` days.
 */
export class RunLog {
  readonly #log: Log
  readonly #clock: Pick<Clock, 'now'>
  /** Null when run logs are switched off. */
  readonly #file: string | null
  #writing: Promise<void>
  #bytes = 0

  constructor(
    { data_dir, run_log_days }: Pick<Config, 'data_dir' | 'run_log_days'>,
    { name, log, clock }: { readonly name: string; readonly log: Log; readonly clock: Pick<Clock, 'now'> },
  ) {
    this.#log = log
    this.#clock = clock
    const folder = join(data_dir, 'runs')
    this.#file = run_log_days === 0 ? null : join(folder, `${name}.jsonl`)
    this.#writing = Promise.resolve()
    if (this.#file === null) return
    this.#writing = mkdir(folder, { recursive: true, mode: 0o700 }).then(
      () => undefined,
      err => log.warn({ err }, 'the logs of scripts cannot be written'),
    )
  }

  /** Adds a line, a JSON object, and the time. A replay needs no time; a person who reads the steps does. */
  add(line: string): void {
    const file = this.#file
    if (file === null || this.#bytes > MAX_BYTES) return
    const timed = `{"at":"${iso(this.#clock.now())}",${line.slice(1)}\n`
    this.#bytes += timed.length
    this.#writing = this.#writing
      .then(() => appendFile(file, timed, { mode: 0o600 }))
      .catch(err => this.#log.warn({ err }, 'a step of the run was not logged'))
  }
}
