import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../runtime/clock.ts'
import { stateErrorOf } from './errors.ts'
import {
  MOST_TOGETHER,
  type ProcedureReply,
  type ProcedureRequest,
  type Refused,
  type ThreadData,
  type ToThread,
  WorkCounts,
  type WorkerReply,
  type WorkerRequest,
} from './protocol.ts'
import { type Outcome, openConnection } from './steps.ts'

/**
 * The thread that owns the SQLite connection. SQLite blocks while another process writes or the disk is slow. Here that
 * does not block an event loop that serves calls or requests.
 */
if (!parentPort) throw new Error('core/state/sqlite/worker is a worker thread')
const port: MessagePort = parentPort

const { counts, ...settings } = workerData as ThreadData
const connection = openConnection(settings, new WorkCounts(counts))
const procedures: ProcedureRequest[] = []
const session: WorkerRequest[] = []
/** The session's transaction is open: nothing else may run until it ends. */
let open = false
let closing = false

port.on('message', (message: ToThread) => {
  take(message)
  work()
})

function take(message: ToThread): void {
  if (message === 'close') closing = true
  else if (typeof message === 'string') procedures.push(...(JSON.parse(message) as ProcedureRequest[]))
  else session.push(message)
}

function work(): void {
  for (;;) {
    for (let more = receiveMessageOnPort(port); more; more = receiveMessageOnPort(port)) take(more.message as ToThread)
    const request = session.shift()
    if (request) port.postMessage(answer(request))
    else if (open || procedures.length === 0) break
    else port.postMessage(JSON.stringify(runTogether(procedures.splice(0, MOST_TOGETHER))))
  }
  if (!closing) return
  connection.close()
  port.close()
}

function answer(request: WorkerRequest): WorkerReply {
  open = (open || request.begin) && request.end === null
  try {
    if (request.begin) connection.begin()
    let outcome: Outcome = {}
    for (const step of request.steps) outcome = connection.run(step)
    if (request.end === 'commit') connection.commit()
    if (request.end === 'rollback') connection.rollback()
    const { result, ...plain } = outcome
    return { id: request.id, ...plain, ...(result === undefined ? {} : { result: JSON.stringify(result) }) }
  } catch (error) {
    // After a failed commit the transaction stays open: the session rolls it back.
    if (request.end === 'commit') open = true
    return { id: request.id, error: refusedBy(error) }
  }
}

/** The error after the deadline: the caller has given up, so the procedure must not run. */
const TOO_LATE: Refused = { message: 'the state was busy for too long', code: 'SQLITE_BUSY' }

/**
 * Runs each procedure as a savepoint in one transaction: a failed one leaves no writes, and the commit precedes every
 * reply. They wait together for the lock, until the earliest of their deadlines.
 */
function runTogether(requests: readonly ProcedureRequest[]): ProcedureReply[] {
  const now_ms = systemClock.monotonic_ms()
  const due = requests.filter(({ until_ms }) => until_ms > now_ms)
  const refused = requests.filter(request => !due.includes(request)).map(({ id }) => ({ id, error: TOO_LATE }))
  const [first, ...more] = due
  if (!first) return refused
  return [...refused, ...(more.length === 0 ? [runOne(first)] : commitTogether(due))]
}

function commitTogether(requests: readonly ProcedureRequest[]): ProcedureReply[] {
  try {
    connection.begin(Math.min(...requests.map(({ until_ms }) => until_ms)))
    const replies = requests.map(request => {
      const reply = runOne(request)
      // On a full disk SQLite may roll back the whole transaction, not only the savepoint.
      if (reply.error && !connection.in_transaction) throw Object.assign(new Error(reply.error.message), reply.error)
      return reply
    })
    connection.commit()
    return replies
  } catch (error) {
    connection.rollback()
    const refused = refusedBy(error)
    return requests.map(({ id }) => ({ id, error: refused }))
  }
}

function runOne({ id, name, input, until_ms }: ProcedureRequest): ProcedureReply {
  try {
    return { id, result: connection.procedure(name, input, until_ms) ?? null }
  } catch (error) {
    return { id, error: refusedBy(error) }
  }
}

function refusedBy(error: unknown): Refused {
  const { message, code } = stateErrorOf(error)
  return { message, code }
}
