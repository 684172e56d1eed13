import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, mkdirSync, openSync, statfsSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { coresAreTaken } from '../../core/runtime/back-seat.ts'
import type { HistoryFilter } from '../../core/state/calls/call-history.ts'
import { callLines } from '../../core/state/calls/call-lines.ts'
import type { RowReader } from '../../core/state/index.ts'
import type { LineFormat } from './columns.ts'
import { createPace } from './pace.ts'

/** A part of a job. It is plain data, which goes to a thread. */
export interface Slice {
  readonly path: string
  readonly lines: LineFormat
  /** Null: the operator's, of all projects. */
  readonly project_id: string | null
  readonly filter: HistoryFilter
  readonly first_position: number
  readonly after_position: number
  readonly last_position: number
  /** What the file has so far. */
  readonly rows: number
  readonly bytes: number
  /** The size that the file may reach. */
  readonly max_bytes: number
  /** The slice ends after about so many rows. */
  readonly max_rows: number
  /** The pace, which leaves the rest of the time to calls. Null: as fast as it can. */
  readonly rows_a_second: number | null
}

interface Written {
  readonly after_position: number
  readonly rows: number
  readonly bytes: number
  readonly done: boolean
  /** The machine left the thread so little time that the slice ended early. */
  readonly starved: boolean
}

export type SliceOutcome =
  | Written
  /** Why the job can't go on, as a sentence. */
  | { readonly failed: string }

/** Rows of one read. They bound the memory, and how long a read keeps the log of the store from being cut. */
const READ_ROWS = 1000
/** Rows of one read beside calls: it takes less than a millisecond, and then looks whether a call is set up. */
const PACED_READ_ROWS = 100
/** Positions of one read where most calls do not match. */
const MAX_READ_POSITIONS = 50_000
/** Reads of one slice, however few rows they find. */
const SLICE_READS = 400
const PACED_SLICE_READS = 1000
/** A read takes 1 to 15 ms. */
const STARVED_MS = 2000
/** So much goes to the disk at a time. The disk takes it in a millisecond, and calls wait for the disk too. */
const SYNC_BYTES = 1024 * 1024
/** Space of the disk that exports leave to the platform. */
const SPARE_BYTES = 256 * 1024 * 1024

/**
 * Appends the next calls of a job to its file. Whatever an earlier process wrote beyond `bytes` is cut off; a file that
 * is shorter begins again. It writes synchronously: its thread has nothing else to do.
 */
export async function writeSlice(reader: RowReader, slice: Slice): Promise<SliceOutcome> {
  const { path, lines, project_id, filter, last_position } = slice
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const { bavail, bsize } = statfsSync(dirname(path))
  if (bavail * bsize < SPARE_BYTES) return { failed: 'The disk of the platform is full.' }
  const file = openSync(path, 'a', 0o600)
  try {
    const whole = fstatSync(file).size >= slice.bytes
    let { after_position, rows, bytes } = whole ? slice : { after_position: slice.first_position, rows: 0, bytes: 0 }
    ftruncateSync(file, bytes)
    const read = callLines(reader, lines, project_id === null ? filter : { ...filter, project_id })
    const add = (text: Uint8Array): void => {
      for (let written = 0; written < text.length; ) written += writeSync(file, text, written)
      bytes += text.length
    }
    if (bytes === 0) add(Buffer.from(lines.head))
    const { rows_a_second } = slice
    const paced = rows_a_second !== null
    const limit = Math.min(paced ? PACED_READ_ROWS : READ_ROWS, slice.max_rows)
    const most_reads = paced ? PACED_SLICE_READS : SLICE_READS
    let span = limit
    let synced = bytes
    const enough = rows + slice.max_rows
    let starved = false
    const pace = paced ? createPace(rows_a_second, surroundings(reader)) : null
    for (let reads = 0; reads < most_reads && rows < enough && after_position < last_position && !starved; reads++) {
      const begun_ms = performance.now()
      const last = Math.min(after_position + span, last_position)
      const found = await read({ after: after_position, last, limit })
      if (bytes + found.text.length > slice.max_bytes) return { failed: 'The exports have reached their quota.' }
      add(found.text)
      rows += found.rows
      after_position = found.rows === limit ? (found.last_position ?? last) : last
      span = found.rows < limit / 4 ? Math.min(span * 2, MAX_READ_POSITIONS) : limit
      const took_ms = performance.now() - begun_ms
      starved = took_ms > STARVED_MS
      await pace?.({ rows: found.rows, full: found.rows === limit, took_ms })
      if (bytes - synced < SYNC_BYTES) continue
      fdatasyncSync(file)
      synced = bytes
    }
    fdatasyncSync(file)
    return { after_position, rows, bytes, done: after_position >= last_position, starved }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return { failed: 'The disk of the platform is full.' }
    throw error
  } finally {
    closeSync(file)
  }
}

/** A call shows by its commits, and by its processes, which take turns on the cores. */
function surroundings(reader: RowReader) {
  const disturbed = (): boolean => {
    // The reader is asked each time: it tells what was since it was asked last.
    const written = reader.written()
    return written || coresAreTaken()
  }
  return { disturbed, wait: setTimeout, now_ms: () => performance.now() }
}
