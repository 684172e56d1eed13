import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { CompiledQuery, Kysely } from 'kysely'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import { makePrivateFile, makePrivateFolder } from '../../runtime/private-files.ts'
import type { Trx } from '../db.ts'
import { migrate } from '../maintenance/migrate.ts'
import type { State } from '../port.ts'
import type { Schema } from '../schema/index.ts'
import { copyDatabase, faultsOf } from './backup.ts'
import { toThisThread, toThread } from './channels.ts'
import { keepLogShort } from './checkpoints.ts'
import { DATABASE_FILE } from './database-file.ts'
import { workerSqliteDialect } from './dialect.ts'
import { threadEngine } from './engine.ts'
import type { LocalConnection } from './local.ts'
import { localSqliteDialect } from './local-dialect.ts'
import { LogSync, type SyncFile } from './log-sync.ts'
import { ProcedureCalls } from './procedure-calls.ts'
import { StateThread } from './thread.ts'

/** How long a statement waits for other processes. */
export const BUSY_TIMEOUT_MS = 5000
const CHECKPOINT = CompiledQuery.raw('pragma wal_checkpoint(passive)')

/** How the state is opened. */
export interface SqliteOpening {
  readonly data_dir: string
  /**
   * Runs hot reads and short transactions on the calling thread, and other reads concurrently with writes (decision
   * 0002). Not for signaling: its event loop must not wait for the disk.
   */
  readonly local?: boolean
  /**
   * Runs single procedures on the calling thread (decision 0002). For signaling: one blocks its event loop for a
   * fraction of a millisecond. This clock detects longer ones.
   */
  readonly inline_here?: Pick<Clock, 'monotonic_ms'>
  /** Runs everything on the calling thread, which blocks while SQLite works. For commands. */
  readonly here?: boolean
  /** How long a write waits for other processes before it fails with SQLITE_BUSY. */
  readonly busy_timeout_ms?: number
  /** Replaces fdatasync(2): a test simulates a power cut between two syncs. */
  readonly sync_file?: SyncFile
}

/**
 * Opens the state in `data_dir` and migrates the schema to this version. Any number of processes may do so
 * concurrently.
 */
export async function openSqlite(options: SqliteOpening): Promise<State> {
  const file = privateFile(options.data_dir)
  const { busy_timeout_ms = BUSY_TIMEOUT_MS, here } = options
  const thread = (reads_only: boolean) =>
    new StateThread({ file, busy_timeout_ms, reads_only }, here ? toThisThread : toThread)
  const writing = thread(false)
  const readThread = options.local ? () => thread(true) : null
  const log = new LogSync(file, options.sync_file)
  const parts: Parameters<typeof threadEngine>[0] = { calls: null, reader: () => null }
  const engine = threadEngine(parts)
  const dialect = workerSqliteDialect({ engine, writing, readThread, wrote: () => log.synced() })
  const db = new Kysely<Schema>({ dialect })
  const { local: serves, inline_here } = options
  let local: LocalConnection | null = null
  try {
    await migrate(db, { name: options.data_dir, instead: 'set STROWGER_DATA to an empty folder' })
    if (serves || inline_here) {
      const { LocalConnection: Local } = await import('./local.ts')
      local = new Local({ file, clock: inline_here ?? systemClock, keeps_rows: serves === true })
    }
  } catch (error) {
    await db.destroy()
    await log.close()
    throw error
  }
  const reads_wait = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const checkpoint = () => db.executeQuery(CHECKPOINT)
  const kept = { checkpoint, reads_wait: new Int32Array(reads_wait), clock: systemClock }
  const endCheckpoints = serves && local ? keepLogShort({ ...kept, log: local.log }) : null
  const calls = new ProcedureCalls({ thread: writing, here: inline_here ? local : null, log, busy_timeout_ms })
  parts.calls = calls
  const transaction: State['shortTransaction'] = async (work, waitsForDisk = always) => {
    const value = await db.transaction().execute(work)
    if (waitsForDisk(value)) await log.synced()
    return value
  }
  if (serves && local) parts.reader = () => local.reader
  return {
    db,
    clock: systemClock,
    transaction: work => transaction(work),
    shortTransaction: serves && local ? shortTransactionOf(local, log, transaction) : transaction,
    maintenance: {
      reads_wait,
      copyTo: target => copyDatabase(db, target),
      faults: () => faultsOf(db),
      bytes: async () => sizeOf(file) + sizeOf(`${file}-wal`),
    },
    work() {
      const { messages, counts } = writing
      return {
        messages,
        statements: counts.statements + (local?.counts.statements ?? 0),
        commits: counts.commits + (local?.counts.commits ?? 0),
      }
    },
    async probe() {
      await db.updateTable('configuration').set({ id: 1 }).where('id', '=', 1).execute()
    },
    async close() {
      const written_back = endCheckpoints?.()
      calls.close()
      local?.close()
      await written_back
      await db.destroy()
      await log.close()
    },
  }
}

/** Creates the database's files with access for the owner only. Returns the database's path. */
function privateFile(data_dir: string): string {
  makePrivateFolder(data_dir)
  const file = join(data_dir, DATABASE_FILE)
  makePrivateFile(file)
  for (const beside of [`${file}-wal`, `${file}-shm`]) if (existsSync(beside)) makePrivateFile(beside)
  return file
}

/**
 * Waits for another writer before a short transaction goes to the state's thread. Most writers finish sooner. On that
 * thread the transaction holds the lock for several messages, and all that arrive meanwhile would have to follow it.
 */
const BUSY_WAITS_MS = [1, 2, 4, 8, 16] as const

const always = (): boolean => true

/** Runs short transactions on this thread; while another connection writes, on the state's, which may wait. */
function shortTransactionOf(
  local: LocalConnection,
  log: LogSync,
  transaction: State['shortTransaction'],
): State['shortTransaction'] {
  // Its statements run in the connection's open transaction: a transaction of Kysely's own costs as much as the rows.
  const trx = new Kysely<Schema>({ dialect: localSqliteDialect(local) }) as Trx
  return async (work, waitsForDisk = always) => {
    for (const wait_ms of BUSY_WAITS_MS) {
      const done = await local.attempt(() => work(trx))
      if (done) {
        if (waitsForDisk(done.value)) await log.synced()
        return done.value
      }
      await new Promise(resolve => setTimeout(resolve, wait_ms))
    }
    return transaction(work, waitsForDisk)
  }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
