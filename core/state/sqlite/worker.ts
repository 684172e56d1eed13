import { parentPort, workerData } from 'node:worker_threads'
import type { WorkerReply, WorkerRequest, WorkerSettings } from './protocol.ts'
import { type Outcome, openConnection } from './steps.ts'

/**
 * The thread that owns the SQLite connection. SQLite blocks while another process writes or the disk is slow; here that
 * blocks nobody's event loop.
 */
const port = parentPort
if (!port) throw new Error('core/state/sqlite/worker is a worker thread')

const connection = openConnection(workerData as WorkerSettings)

function answer(request: WorkerRequest): WorkerReply {
  try {
    if (request.begin) connection.begin()
    let outcome: Outcome = {}
    for (const step of request.steps) outcome = connection.run(step)
    if (request.end === 'commit') connection.commit()
    if (request.end === 'rollback') connection.rollback()
    const { result, ...plain } = outcome
    // As text: a nested value is written and read in half the time that cloning it for the other thread would take.
    return { id: request.id, ...plain, ...(result === undefined ? {} : { result: JSON.stringify(result) }) }
  } catch (error) {
    const { message, code } = error as Error & { code?: string }
    return { id: request.id, error: { message, code: code ?? 'UNKNOWN' } }
  }
}

port.on('message', (request: WorkerRequest | 'close') => {
  if (request !== 'close') return port.postMessage(answer(request))
  connection.close()
  port.close()
})
