import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { CompiledQuery, Kysely } from 'kysely'
import type { Clock } from '../../runtime/clock.ts'
import { makePrivateFile, makePrivateFolder } from '../../runtime/private-files.ts'
import type { Trx } from '../db.ts'
import { migrate } from '../maintenance/migrate.ts'
import type { Reader, State } from '../port.ts'
import type { Schema } from '../schema/index.ts'
import { copyDatabase, faultsOf } from './backup.ts'
import { workerSqliteDialect } from './dialect.ts'
import { threadEngine } from './engine.ts'
import { InlineConnection } from './inline.ts'
import { LocalConnection, localSqliteDialect } from './local.ts'
import { LogSync, type SyncFile } from './log-sync.ts'
import { ProcedureCalls } from './procedure-calls.ts'
import { CHECKPOINT_PAGES } from './steps.ts'
import { StateThread } from './thread.ts'

/** In the data folder. */
export const DATABASE_FILE = 'strowger.sqlite'
const BUSY_TIMEOUT_MS = 5000
/** Pages that a commit of the API leaves in the log, and each write in it besides: as measured with saves of trunks. */
const PAGES_A_COMMIT = 8
const PAGES_A_WRITE = 2
const CHECKPOINT = CompiledQuery.raw('pragma wal_checkpoint(passive)')

/**
 * Opens the state below `data_dir`, bringing the schema up to this version first. Any number of processes may do so
 * at once.
 */
export async function openState(options: {
  readonly data_dir: string
  /**
   * Makes hot reads and brief write transactions on the thread that asks, and other reads beside a write that waits
   * (decision 0002). Not for signaling: its event loop must not wait for a disk.
   */
  readonly local?: boolean
  /**
   * Runs procedures that are asked for alone on the thread that asks (decision 0510). For signaling, whose event loop
   * stands still for a fraction of a millisecond; by this clock it is told when it was longer.
   */
  readonly inline_here?: Pick<Clock, 'monotonic_ms'>
  /** How long a write waits for other processes before it is refused with SQLITE_BUSY. */
  readonly busy_timeout_ms?: number
  /** Instead of fdatasync(2): a test cuts the power between two syncs. */
  readonly sync_file?: SyncFile
}): Promise<State> {
  const file = privateFile(options.data_dir)
  const { busy_timeout_ms = BUSY_TIMEOUT_MS } = options
  const thread = (reads_only: boolean) => new StateThread({ file, busy_timeout_ms, reads_only })
  const writing = thread(false)
  const readThread = options.local === true ? () => thread(true) : null
  const log = new LogSync(file, options.sync_file)
  const parts: Parameters<typeof threadEngine>[0] = { calls: null, reader: () => null }
  const engine = threadEngine(parts)
  const db = new Kysely<Schema>({
    dialect: workerSqliteDialect({ engine, writing, readThread, wrote: () => log.synced() }),
  })
  const { inline_here: clock } = options
  let inline: InlineConnection | null = null
  try {
    await migrate(db, options.data_dir)
    if (clock) inline = new InlineConnection({ file, clock })
  } catch (error) {
    await db.destroy()
    await log.close()
    throw error
  }
  const calls = new ProcedureCalls({ thread: writing, inline, log, busy_timeout_ms })
  parts.calls = calls
  const transaction: State['transaction'] = async work => {
    const value = await db.transaction().execute(work)
    await log.synced()
    return value
  }
  const state: State = {
    db,
    transaction,
    shortTransaction: transaction,
    maintenance: {
      copyTo: target => copyDatabase(db, target),
      faults: () => faultsOf(db),
      bytes: () => sizeOf(file) + sizeOf(`${file}-wal`),
    },
    work() {
      const { messages, counts } = writing
      return {
        messages,
        statements: counts.statements + (inline?.counts.statements ?? 0),
        commits: counts.commits + (inline?.counts.commits ?? 0),
      }
    },
    async probe() {
      await db.updateTable('configuration').set({ id: 1 }).where('id', '=', 1).execute()
    },
    async close() {
      calls.close()
      await db.destroy()
      await log.close()
    },
  }
  if (!options.local) return state
  const local = withLocalConnection(state, file, log)
  parts.reader = local.reader
  return local.state
}

/** The database's file, which nobody else may read. */
function privateFile(data_dir: string): string {
  makePrivateFolder(data_dir)
  const file = join(data_dir, DATABASE_FILE)
  makePrivateFile(file)
  for (const beside of [`${file}-wal`, `${file}-shm`]) if (existsSync(beside)) makePrivateFile(beside)
  return file
}

/**
 * Waits for whoever writes, before a brief transaction goes to the state's thread. Most are done in less; and one that
 * goes there has the lock for several messages, in which all that come would follow it.
 */
const BUSY_WAITS_MS = [1, 2, 4, 8, 16] as const

/**
 * Hot reads and brief transactions on this thread; while somebody else writes, on the state's thread: there they may
 * wait.
 */
function withLocalConnection(
  state: State,
  file: string,
  log: LogSync,
): { readonly state: State; readonly reader: () => Reader | null } {
  let pages = 0
  const committed = (writes: number) => {
    pages += PAGES_A_COMMIT + PAGES_A_WRITE * writes
    if (pages < CHECKPOINT_PAGES) return
    pages = 0
    // What cannot be written back now is written back next time.
    state.db.executeQuery(CHECKPOINT).catch(() => undefined)
  }
  const local = new LocalConnection(file, committed)
  // Each statement of it is one of the transaction that is open: Kysely's own transactions cost as much as the rows.
  const trx = new Kysely<Schema>({ dialect: localSqliteDialect(local) }) as Trx
  const with_local: State = {
    ...state,
    work() {
      const { messages, statements, commits } = state.work()
      return { messages, statements: statements + local.counts.statements, commits: commits + local.counts.commits }
    },
    async shortTransaction(work) {
      for (const wait_ms of BUSY_WAITS_MS) {
        const done = await local.attempt(() => work(trx))
        if (done) {
          await log.synced()
          return done.value
        }
        await new Promise(resolve => setTimeout(resolve, wait_ms))
      }
      return state.transaction(work)
    },
    async close() {
      local.close()
      await state.close()
    },
  }
  return { state: with_local, reader: () => local.reader }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
