import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../runtime/clock.ts'
import { giveBackMemory } from '../../runtime/give-back.ts'
import { stateErrorOf } from './errors.ts'
import { type ThreadData, WorkCounts } from './protocol.ts'
import { procedureRunner } from './run-procedure.ts'
import { serve } from './serve.ts'
import { type Connection, openConnection } from './steps.ts'

/**
 * The thread that owns the SQLite connection. SQLite blocks while another process writes or the disk is slow. Here that
 * does not block an event loop that serves calls or requests.
 */
const port = parentPort
if (!port) throw new Error('core/state/sqlite/worker is a worker thread')

const { counts, ...settings } = workerData as ThreadData
const giving = giveBackMemory(systemClock)
port.on(
  'message',
  serve(opened(), {
    reply: message => port.postMessage(message),
    next: () => receiveMessageOnPort(port)?.message,
    closed() {
      giving.cancel()
      port.close()
    },
  }),
)

function opened(): Connection {
  try {
    return openConnection(settings, { procedures: procedureRunner, counts: new WorkCounts(counts) })
  } catch (error) {
    // An error of better-sqlite3 loses its message on the way out of a thread.
    throw stateErrorOf(error)
  }
}
