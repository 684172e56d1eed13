import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { PROCEDURE_PREFIX, type WorkerReply, type WorkerRequest, type WorkerSettings } from './protocol.ts'
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

function answer(request: WorkerRequest): WorkerReply {
  try {
    if (request.sql.startsWith(PROCEDURE_PREFIX)) {
      const name = request.sql.slice(PROCEDURE_PREFIX.length)
      // As text: a nested value is written and read in half the time that cloning it for the other thread would take.
      const result = JSON.stringify(runProcedure(name, request.parameters[0]) ?? null)
      return { id: request.id, rows: [{ result }] }
    }
    const statement = prepared(request.sql)
    if (statement.reader) return { id: request.id, rows: statement.all(...request.parameters) }
    const { changes, lastInsertRowid } = statement.run(...request.parameters)
    return { id: request.id, rows: [], changes, last_id: Number(lastInsertRowid) }
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
