import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../core/runtime/log.ts'
import type { CallStep } from '../../core/state/calls/running-calls.ts'

/** What a call has still to write, its end last. */
interface Unwritten {
  readonly sid: string
  readonly steps: readonly CallStep[]
}

const FILE = /^(CA[0-9a-f]{32})\.json$/

/**
 * Ends of calls that the state could not take yet, each in a file of the data folder. They survive a kill of this
 * process and a power cut: whoever starts next writes them, with the duration that the steady clock has measured.
 */
export class UnwrittenEnds {
  readonly #folder: string
  readonly #log: Log
  /** What was done with the file of each call so far. */
  readonly #files = new Map<string, Promise<void>>()

  constructor(data_dir: string, log: Log) {
    this.#folder = join(data_dir, 'unwritten-ends')
    this.#log = log
  }

  /** Keeps the steps of a call. When that fails, it is logged, and they are in memory alone. */
  keep({ sid, steps }: Unwritten): void {
    const kept = this.#write(sid, JSON.stringify(steps)).catch(err =>
      this.#log.error({ err, call_id: sid }, 'the end of a call could not be kept in a file'),
    )
    this.#files.set(sid, kept)
  }

  /** Waits for the disk beside the calls that go on. */
  async #write(sid: string, text: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const part = `${this.#pathOf(sid)}.part`
    await writeFile(part, text, { mode: 0o600, flush: true })
    await rename(part, this.#pathOf(sid))
    const folder = await open(this.#folder)
    await folder.sync().finally(() => folder.close())
  }

  /** Removes the file of a call, if there is one: its end is written. */
  async forget(sid: string): Promise<void> {
    const kept = this.#files.get(sid)
    if (!kept) return
    await kept
    this.#files.delete(sid)
    await this.#remove(sid)
  }

  /** Hands each end that an earlier process has left to `write`, and removes it. One that fails stays. */
  async writeLeft(write: (left: Unwritten) => Promise<unknown>): Promise<void> {
    const names = await readdir(this.#folder).catch(() => [])
    for (const name of names) {
      const [, sid] = FILE.exec(name) ?? []
      if (sid === undefined) continue
      try {
        await write({ sid, steps: JSON.parse(await readFile(this.#pathOf(sid), 'utf8')) as CallStep[] })
        await this.#remove(sid)
        this.#log.warn({ call_id: sid }, 'the end of a call of an earlier process was written')
      } catch (err) {
        this.#log.error({ err, call_id: sid }, 'the end of a call of an earlier process could not be written')
      }
    }
  }

  #pathOf(sid: string): string {
    return join(this.#folder, `${sid}.json`)
  }

  async #remove(sid: string): Promise<void> {
    await rm(this.#pathOf(sid), { force: true }).catch(err =>
      this.#log.error({ err, call_id: sid }, 'the file of a written end could not be removed'),
    )
  }
}
