import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { openState } from '../../core/state/index.ts'
import { type Slice, type SliceOutcome, writeSlice } from './slice.ts'

/** The thread that reads and writes exports, with a connection of its own: neither calls nor requests wait for it. */

/** What the thread is given. */
export interface ExportThreadData {
  readonly data_dir: string
  readonly niceness: number
}

/** What the thread answers: an outcome, or the message of an unexpected error. */
export type SliceReply = SliceOutcome | { readonly broken: string }

const port = parentPort
if (!port) throw new Error('control/exports/thread is a worker thread')
const { data_dir, niceness } = workerData as ExportThreadData
// On Linux the niceness is a thread's, so that this changes no other thread. Calls and requests go before exports.
setPriority(niceness)
// Enough for the inner pages of the indexes by which the records and reservations of ten million calls are found.
const state = await openState({ data_dir, here: true, cache_kib: 8000 })
port.on('message', async (slice: Slice | 'close') => {
  if (slice === 'close') {
    await state.close()
    port.close()
    return
  }
  const reply: SliceReply = await writeSlice(state.db, slice).catch((error: unknown) => ({
    broken: error instanceof Error ? (error.stack ?? error.message) : String(error),
  }))
  port.postMessage(reply)
})
