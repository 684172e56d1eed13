import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** The names of the two files of the edge's journal. */
export const JOURNAL_FILES = ['edge-0.journal', 'edge-1.journal'] as const

/** A file that has grown beyond this size drops further rows: the state has accepted none for too long. */
const MAX_BYTES = 8 * 1024 * 1024

interface JournalFile {
  readonly fd: number
  bytes: number
  /** The rows of this file are being written to the state. */
  busy: boolean
}

/**
 * Rows that wait to be written to the state. They survive a kill of the process but not a crash of the machine, because
 * there is no fsync. Two files alternate: one takes new rows while the rows of the other are written to the state, and
 * that other file is truncated once they are.
 */
export class Journal<Row> {
  readonly #failed: (error: unknown) => void
  #current: JournalFile
  #other: JournalFile

  /** Truncates both files, so the rows of an earlier run are lost. `failed` is called when a row cannot be kept. */
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

  /** Appends a row. The row is in the file on return. */
  append(row: Row): void {
    const file = this.#current
    if (file.bytes > MAX_BYTES) return
    this.#guarded(() => {
      file.bytes += writeSync(file.fd, `${JSON.stringify(row)}\n`)
    })
  }

  /** Call this before all rows so far are written to the state. Call the returned function when they have been. */
  settling(): () => void {
    // An earlier batch is still being written, so these rows stay in their file until the next call.
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

/** Reads the journal of an earlier run. The rows of the two files are not merged by time. Torn lines are skipped. */
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

const filesIn = (folder: string): string[] => JOURNAL_FILES.map(name => join(folder, name))
