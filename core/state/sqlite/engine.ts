import { CompiledQuery } from 'kysely'
import type { Db, Trx } from '../db.ts'
import type { Reader, StateEngine } from '../port.ts'
import { compiler } from './compiler.ts'
import { CLUSTERED } from './ddl.ts'
import { isLocked, stateErrorOf } from './errors.ts'
import type { LocalConnection } from './local.ts'
import type { ProcedureCalls } from './procedure-calls.ts'
import { BATCH, LATER_PREFIX, PROCEDURE_PREFIX } from './protocol.ts'

/** Parts that openState sets once the schema is up to date. */
interface Parts {
  calls: ProcedureCalls | null
  /** Reads on the calling thread; null while a transaction is open there. */
  reader: () => Reader | null
}

/** The engine of a database on the state's thread and of its transactions. Sends pseudo-statements (protocol.ts). */
export const threadEngine = (parts: Parts): StateEngine => ({
  compiler,
  clustered: CLUSTERED,
  readHere(handle, read) {
    const reader = handle.isTransaction ? null : parts.reader()
    return reader === null ? undefined : readNow(reader, read)
  },
  async read(handle, steps) {
    return await askFor<unknown[][]>(handle, BATCH, steps)
  },
  async queueWrite(trx, { sql, parameters }) {
    await trx.executeQuery(CompiledQuery.raw(`${LATER_PREFIX}${sql}`, [...parameters]))
  },
  async queueCall(trx, name, input) {
    await trx.executeQuery(CompiledQuery.raw(`${LATER_PREFIX}${PROCEDURE_PREFIX}${name}`, [input]))
  },
  call(handle, name, input, within_ms) {
    // Procedures outside a transaction do not wait for each other.
    if (!handle.isTransaction && parts.calls) return parts.calls.call(name, input, within_ms)
    return askFor(handle, `${PROCEDURE_PREFIX}${name}`, input)
  },
})

async function askFor<Result>(handle: Db | Trx, sql: string, input: unknown): Promise<Result> {
  const { rows } = await handle.executeQuery<{ readonly result: Result }>(CompiledQuery.raw(sql, [input]))
  const [row] = rows
  if (!row) throw new Error(`"${sql}" gave no result`)
  return row.result
}

/** The engine of the transaction that is open on the calling thread's connection. Nothing waits. */
export const localEngine = (local: Pick<LocalConnection, 'run' | 'reader_within'>): StateEngine => ({
  compiler,
  clustered: CLUSTERED,
  readHere(_, read) {
    const reader = local.reader_within
    return reader === null ? undefined : readNow(reader, read)
  },
  async read(_, steps) {
    return local.run({ sql: BATCH, parameters: [steps] }).result as unknown[][]
  },
  async queueWrite(_, step) {
    local.run(step)
  },
  async queueCall(_, name, input) {
    local.run({ sql: `${PROCEDURE_PREFIX}${name}`, parameters: [input] })
  },
  async call(_, name, input) {
    return local.run({ sql: `${PROCEDURE_PREFIX}${name}`, parameters: [input] }).result
  },
})

/** Returns undefined when the database is locked: another connection is recovering the log of a killed process. */
function readNow<T>(reader: Reader, read: (reader: Reader) => T): { readonly value: T } | undefined {
  try {
    return { value: read(reader) }
  } catch (error) {
    if (isLocked(error)) return undefined
    throw (error as { readonly code?: string }).code === undefined ? error : stateErrorOf(error)
  }
}
