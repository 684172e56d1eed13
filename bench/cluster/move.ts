import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { TableShape } from '../../core/state/port.ts'
import type { Link } from '../../core/state/postgres/link.ts'
import { poolOf } from '../../core/state/postgres/store.ts'
import { openAllRows } from '../../core/state/sqlite/all-rows.ts'
import { fillWithCalls } from '../export/fill.ts'
import { startPostgres } from '../postgres-server.ts'
import { freePort, MAIN, startUp } from '../up.ts'

// An installation on SQLite with so many calls moves to PostgreSQL by the command that operators use. Then all rows of
// all tables are read from both and compared by this program, which shares nothing with the command's own comparison.

const FETCHED_ROWS = 5000
const MIB = 1024 * 1024
const WAIT_MS = 5000
const STATEMENT_MS = 600_000

interface Moved {
  readonly rows: number
  readonly tables: number
  readonly seconds: number
  /** Tables whose rows are not the same, with the first that differs. */
  readonly differing: readonly string[]
  readonly within_limits: boolean
}

export async function move(calls: number): Promise<Moved> {
  const settings = { fsync: 'on', shared_buffers: '256MB', max_wal_size: '4GB' }
  const server = await startPostgres({ port: await freePort(), settings })
  const platform = await startUp('move', { STROWGER_SANDBOX: 'off', STROWGER_LOG: 'fatal' })
  try {
    await platform.halt()
    fillWithCalls(platform.folder, platform.made.project_id, calls)
    console.log(`${calls} calls are in SQLite`)
    const database_url = `postgres://strowger@127.0.0.1:${server.port}/postgres`
    const env = { PATH: process.env['PATH'] ?? '', STROWGER_DATA: platform.folder, STROWGER_DATABASE_URL: database_url }
    const begun_ms = performance.now()
    const words = ['-f', '%M', process.execPath, MAIN, 'migrate', 'to-postgres', '--json']
    const { stderr } = await promisify(execFile)('/usr/bin/time', words, { env, maxBuffer: MIB })
    const seconds = (performance.now() - begun_ms) / 1000
    const peak_mib = Number(stderr.trim().split('\n').at(-1)) / 1024
    const found = await compared(platform.folder, database_url)
    const { rows, tables, differing } = found
    console.log(`${rows} rows of ${tables} tables moved and compared by the command in ${seconds.toFixed(1)} s`)
    console.log(`  ${Math.round(rows / seconds)} rows a second; its memory was ${Math.round(peak_mib)} MiB at most`)
    console.log(differing.length === 0 ? 'all rows of all tables are equal' : differing.join('\n'))
    return { ...found, seconds, within_limits: differing.length === 0 && rows > calls }
  } finally {
    await platform.stop()
    await server.remove()
  }
}

/** Reads all rows of all tables of both, in the order of their keys, and compares them. */
async function compared(data_dir: string, database_url: string): Promise<Omit<Moved, 'seconds' | 'within_limits'>> {
  const source = openAllRows(data_dir)
  const pool = poolOf(database_url, { size: 1, idle_ms: STATEMENT_MS, statement_ms: STATEMENT_MS })
  try {
    return await pool.use(WAIT_MS, async link => {
      const differing: string[] = []
      let rows = 0
      await link.run('begin')
      for (const table of source.tables) {
        const found = await comparedTable(link, table, source.rows(table))
        if (found.first !== null) differing.push(`${table.name}: ${found.first}`)
        rows += found.rows
      }
      await link.run('rollback')
      return { rows, tables: source.tables.length, differing }
    })
  } finally {
    await pool.close()
    source.close()
  }
}

async function comparedTable(
  link: Link,
  table: TableShape,
  source: Iterable<readonly unknown[]>,
): Promise<{ readonly rows: number; readonly first: string | null }> {
  const ours = source[Symbol.iterator]()
  let rows = 0
  let first: string | null = null
  for await (const theirs of rowsOf(link, table)) {
    const [one, other] = [JSON.stringify(ours.next().value ?? null), JSON.stringify(theirs)]
    if (one !== other) first ??= `row ${rows}: ${one} became ${other}`
    rows++
  }
  if (!ours.next().done) first ??= `row ${rows} and what follows is missing`
  return { rows, first }
}

async function* rowsOf(link: Link, { name, columns, key }: TableShape): AsyncGenerator<readonly unknown[]> {
  const quoted = (names: readonly string[]): string => names.map(one => `"${one}"`).join(', ')
  const select = `select ${quoted(columns)} from "${name}" order by ${quoted(key)}`
  await link.run(`declare moved no scroll cursor for ${select}`)
  for (;;) {
    const rows = await link.rows(`fetch ${FETCHED_ROWS} from moved`, [])
    yield* rows
    if (rows.length < FETCHED_ROWS) break
  }
  await link.run('close moved')
}
