import { openSync, readSync } from 'node:fs'

/** Length of the write-ahead log, in pages. */
export interface LogLength {
  readonly written: number
  /** Pages that a checkpoint has copied to the database. */
  readonly written_back: number
}

/**
 * The log's length in pages at which the control process writes it back to the database. SQLite's default of 1,000
 * would be reached several times a second at hundreds of calls a second.
 */
export const LONG_LOG_PAGES = 8000

/** Reports whether the log is to be written back. */
export const isLong = ({ written, written_back }: LogLength): boolean =>
  written >= LONG_LOG_PAGES && written_back < written

/** Bytes of the index's header up to the last field read (https://sqlite.org/walformat.html, section 2.1). */
const HEADER_BYTES = 100
const MX_FRAME_AT = 16
const N_BACKFILL_AT = 96

/**
 * Opens the WAL index (`-shm`) that all connections of a database share. It exists while a connection is open. The
 * values may be stale at once: use them for heuristics, never for correctness.
 */
export function openLogIndex(file: string): () => LogLength {
  // Never close it: POSIX would then release the locks that this process's connections hold on the file.
  const fd = openSync(`${file}-shm`, 'r')
  const header = new DataView(new ArrayBuffer(HEADER_BYTES))
  return () => {
    readSync(fd, header, 0, HEADER_BYTES, 0)
    return { written: header.getUint32(MX_FRAME_AT, NATIVE), written_back: header.getUint32(N_BACKFILL_AT, NATIVE) }
  }
}

/** The index holds numbers in the machine's byte order. */
const NATIVE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1
