import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import {
  BATCH,
  PROCEDURE_PREFIX,
  type Step,
  type WorkerReply,
  type WorkerRequest,
  type WorkerSettings,
} from './protocol.ts'
import { procedureRunner } from './run-procedure.ts'

/**
 * The thread that owns the SQLite connection. SQLite blocks while another process writes or the disk is slow; here that
 * blocks nobody's event loop.
 */
const MAX_CACHED_STATEMENTS = 500

const settings = workerData as WorkerSettings
const port = parentPort
if (!port) throw new Error('core/state/sqlite/worker is a worker thread')

const database = new Database(settings.file)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = NORMAL')
database.pragma(`busy_timeout = ${settings.busy_timeout_ms}`)
database.pragma('foreign_keys = ON')
database.pragma('journal_size_limit = 67108864')

const statements = new Map<string, Database.Statement>()

function prepared(sql: string): Database.Statement {
  const known = statements.get(sql)
  if (known) return known
  if (statements.size >= MAX_CACHED_STATEMENTS) statements.clear()
  const statement = database.prepare(sql)
  statements.set(sql, statement)
  return statement
}

const runProcedure = procedureRunner(database, prepared)
const begin = database.prepare('begin immediate')
const commit = database.prepare('commit')
const rollback = database.prepare('rollback')

/** Reads several statements in one instant: nobody writes between them. */
const readTogether = database.transaction((steps: readonly Step[]) =>
  steps.map(({ sql, parameters }) => prepared(sql).all(...parameters)),
)

type Outcome = Omit<WorkerReply, 'id' | 'error'>

function run({ sql, parameters }: Step): Outcome {
  // As text: a nested value is written and read in half the time that cloning it for the other thread would take.
  if (sql === BATCH) return { rows: [{ result: JSON.stringify(readTogether(parameters[0] as readonly Step[])) }] }
  if (sql.startsWith(PROCEDURE_PREFIX)) {
    const result = runProcedure(sql.slice(PROCEDURE_PREFIX.length), parameters[0])
    return { rows: [{ result: JSON.stringify(result ?? null) }] }
  }
  const statement = prepared(sql)
  if (statement.reader) return { rows: statement.all(...parameters) }
  const { changes, lastInsertRowid } = statement.run(...parameters)
  return { rows: [], changes, last_id: Number(lastInsertRowid) }
}

function answer(request: WorkerRequest): WorkerReply {
  try {
    if (request.begin) begin.run()
    let outcome: Outcome = {}
    for (const step of request.steps) outcome = run(step)
    if (request.end === 'commit') commit.run()
    // SQLite takes a transaction back by itself when the disk is full or fails.
    if (request.end === 'rollback' && database.inTransaction) rollback.run()
    return { id: request.id, ...outcome }
  } catch (error) {
    const { message, code } = error as Error & { code?: string }
    return { id: request.id, error: { message, code: code ?? 'UNKNOWN' } }
  }
}

port.on('message', (request: WorkerRequest | 'close') => {
  if (request !== 'close') return port.postMessage(answer(request))
  database.close()
  port.close()
})
