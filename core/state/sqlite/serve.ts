import { systemClock } from '../../runtime/clock.ts'
import { stateErrorOf } from './errors.ts'
import {
  type FromThread,
  MOST_TOGETHER,
  type ProcedureReply,
  type ProcedureRequest,
  type ToThread,
  type WorkerError,
  type WorkerReply,
  type WorkerRequest,
} from './protocol.ts'
import type { Connection, Outcome } from './steps.ts'

/** Where the requests of a connection come from, and where its replies go. */
interface Requests {
  reply(message: FromThread): void
  /** Takes a message that has arrived but was not delivered yet. */
  next(): ToThread | undefined
  /** Called once the connection is closed. */
  closed(): void
}

/** The error after the deadline: the caller has given up, so the procedure must not run. */
const TOO_LATE: WorkerError = { message: 'the state was busy for too long', code: 'SQLITE_BUSY' }

/** Returns the function that takes the messages for a connection and answers each. */
export function serve(connection: Connection, requests: Requests): (message: ToThread) => void {
  const procedures: ProcedureRequest[] = []
  const session: WorkerRequest[] = []
  /** The session's transaction is open: nothing else may run until it ends. */
  let open = false
  let closing = false

  const take = (message: ToThread): void => {
    if (message === 'close') closing = true
    else if (typeof message === 'string') procedures.push(...(JSON.parse(message) as ProcedureRequest[]))
    else session.push(message)
  }

  const work = (): void => {
    for (;;) {
      for (let more = requests.next(); more !== undefined; more = requests.next()) take(more)
      const request = session.shift()
      if (request) requests.reply(answer(request))
      else if (open || procedures.length === 0) break
      else requests.reply(JSON.stringify(runTogether(connection, procedures.splice(0, MOST_TOGETHER))))
    }
    if (!closing) return
    connection.close()
    requests.closed()
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

  return message => {
    take(message)
    work()
  }
}

/**
 * Runs each procedure as a savepoint in one transaction: a failed one leaves no writes, and the commit precedes every
 * reply. They wait together for the lock, until the earliest of their deadlines.
 */
function runTogether(connection: Connection, requests: readonly ProcedureRequest[]): ProcedureReply[] {
  const now_ms = systemClock.monotonic_ms()
  const due = requests.filter(({ until_ms }) => until_ms > now_ms)
  const refused = requests.filter(request => !due.includes(request)).map(({ id }) => ({ id, error: TOO_LATE }))
  const [first, ...more] = due
  if (!first) return refused
  return [...refused, ...(more.length === 0 ? [runOne(connection, first)] : commitTogether(connection, due))]
}

function commitTogether(connection: Connection, requests: readonly ProcedureRequest[]): ProcedureReply[] {
  try {
    connection.begin(Math.min(...requests.map(({ until_ms }) => until_ms)))
    const replies = requests.map(request => {
      const reply = runOne(connection, request)
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

function runOne(connection: Connection, { id, name, input, until_ms }: ProcedureRequest): ProcedureReply {
  try {
    return { id, result: connection.procedure(name, input, until_ms) ?? null }
  } catch (error) {
    return { id, error: refusedBy(error) }
  }
}

function refusedBy(error: unknown): WorkerError {
  const { message, code } = stateErrorOf(error)
  return { message, code }
}
