import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** The state is taken for lost when it has accepted nothing for so long; what comes then is not kept here either. */
const MAX_BYTES = 8 * 1024 * 1024

interface JournalFile {
  readonly fd: number
  bytes: number
  /** Its rows are on their way to the state. */
  busy: boolean
}

/**
 * Rows that wait to be written to the state, where a process that is killed leaves them. There is no fsync: it is the
 * end of the process that they survive, not that of the machine. Two files take turns, so that one is emptied when its
 * rows have arrived while the other takes the next ones.
 */
export class Journal<Row> {
  readonly #failed: (error: unknown) => void
  #current: JournalFile
  #other: JournalFile

  /** Begins anew: what an earlier run has left is gone. `failed` is told when rows cannot be kept. */
  constructor(folder: string, failed: (error: unknown) => void) {
    const [one, two] = filesIn(folder).map(path => {
      const fd = openSync(path, 'a', 0o600)
      ftruncateSync(fd)
      return { fd, bytes: 0, busy: false }
    })
    if (!one || !two) throw new Error('a journal has two files')
    this.#current = one
    this.#other = two
    this.#failed = failed
  }

  /** Keeps a row: it is in its file on return. */
  append(row: Row): void {
    const file = this.#current
    if (file.bytes > MAX_BYTES) return
    this.#guarded(() => {
      file.bytes += writeSync(file.fd, `${JSON.stringify(row)}\n`)
    })
  }

  /** All rows so far are about to be written to the state; the function that is returned is called when they are. */
  settling(): () => void {
    // An earlier batch is on its way still: these rows stay where they are until the next time.
    if (this.#other.busy) return () => undefined
    const settled = this.#current
    settled.busy = true
    this.#current = this.#other
    this.#other = settled
    return () => {
      settled.busy = false
      settled.bytes = 0
      this.#guarded(() => ftruncateSync(settled.fd))
    }
  }

  close(): void {
    closeSync(this.#current.fd)
    closeSync(this.#other.fd)
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#failed(error)
    }
  }
}

/** What the journal of an earlier run holds; the two files are in no order. A line that was torn is left out. */
export function readJournal<Row>(folder: string): Row[] {
  const lines = filesIn(folder).flatMap(path => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []))
  return lines.flatMap(line => {
    try {
      return line === '' ? [] : [JSON.parse(line) as Row]
    } catch (error) {
      if (error instanceof SyntaxError) return []
      throw error
    }
  })
}

const filesIn = (folder: string): string[] => ['0', '1'].map(name => join(folder, `edge-${name}.journal`))
