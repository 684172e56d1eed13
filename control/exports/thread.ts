import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { takeBackSeat } from '../../core/runtime/back-seat.ts'
import { openRowReader } from '../../core/state/index.ts'
import { type Slice, type SliceOutcome, writeSlice } from './slice.ts'

/** The thread that reads and writes exports, with a connection of its own: neither calls nor requests wait for it. */

/** What the thread is given. */
export interface ExportThreadData {
  readonly data_dir: string
  readonly database_url: string | null | undefined
  /** `Maintenance.reads_wait` of the state. */
  readonly reads_wait: SharedArrayBuffer
  readonly niceness: number
  /** The chrt(1) by which everything else on the machine goes before the thread; null: it competes. */
  readonly back_seat: string | null
}

/** What the thread answers: an outcome, or the message of an unexpected error. */
export type SliceReply = SliceOutcome | { readonly broken: string }

const port = parentPort
if (!port) throw new Error('control/exports/thread is a worker thread')
const { data_dir, database_url, reads_wait, niceness, back_seat } = workerData as ExportThreadData
// On Linux the niceness is a thread's, so that this changes no other thread. Calls and requests go before exports.
setPriority(niceness)
if (back_seat !== null) takeBackSeat(back_seat)
// Enough for the inner pages of the index by which the reservations of ten million calls are found.
const opened = openRowReader({ data_dir, database_url, cache_kib: 6000, reads_wait })
const written = async (slice: Slice): Promise<SliceReply> => {
  try {
    return await writeSlice(await opened, slice)
  } catch (error) {
    return { broken: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}
port.on('message', async (slice: Slice) => port.postMessage(await written(slice)))
