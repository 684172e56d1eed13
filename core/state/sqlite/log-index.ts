import { openSync, readSync } from 'node:fs'

/** Of the write-ahead log, in pages. */
export interface LogLength {
  readonly written: number
  /** How many of them are in the database already. */
  readonly written_back: number
}

/** Bytes of the index's header up to what is read of it (https://sqlite.org/walformat.html, section 2.1). */
const HEADER_BYTES = 100
const MX_FRAME_AT = 16
const N_BACKFILL_AT = 96

/**
 * Looks at the index that all connections of a database share (`-shm`), which must be there: a connection is open. What
 * is found may be outdated at once; it is for choices, never for correctness.
 */
export function openLogIndex(file: string): () => LogLength {
  // Never closed: that would take the locks from every connection of this process (POSIX), and the index is one file.
  const fd = openSync(`${file}-shm`, 'r')
  const header = new DataView(new ArrayBuffer(HEADER_BYTES))
  return () => {
    readSync(fd, header, 0, HEADER_BYTES, 0)
    return { written: header.getUint32(MX_FRAME_AT, NATIVE), written_back: header.getUint32(N_BACKFILL_AT, NATIVE) }
  }
}

/** Numbers in it are in the machine's byte order. */
const NATIVE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1
