import { createHash, type Hash } from 'node:crypto'
import { StartRefused } from '../../runtime/start-refused.ts'
import type { AllRows, TableShape } from '../port.ts'
import type { Value } from '../procedures/query.ts'
import { COMMIT, type Link } from './link.ts'
import { poolOf } from './store.ts'
import { beginTurn, rollBack } from './turns.ts'
import { parameterOf } from './values.ts'

/** What became of a table. */
export interface TakenTable {
  readonly name: string
  readonly rows: number
}

/** How long one statement may take. */
const STATEMENT_MS = 30 * 60_000
const WAIT_MS = 5000
/** Bounds a batch: the text of its rows, which the server parses at once. */
const BATCH_CHARACTERS = 1_000_000
const FETCHED_ROWS = 2000

/**
 * Copies all rows into a database that has the tables and was not used yet, in one transaction, and reads them back:
 * each table must have as many rows with the same values. `told` hears of each table. @throws StartRefused, StateError
 */
export async function takeOver(
  database_url: string,
  source: AllRows,
  onTable: (table: TakenTable) => void,
): Promise<readonly TakenTable[]> {
  const pool = poolOf(database_url, { size: 1, statement_ms: STATEMENT_MS, idle_ms: STATEMENT_MS })
  try {
    return await pool.use(WAIT_MS, async link => {
      try {
        await beginTurn(link, WAIT_MS)
        await refuseUsed(link)
        const taken: TakenTable[] = []
        for (const table of source.tables) {
          const one = await takeTable(link, source, table)
          onTable(one)
          taken.push(one)
        }
        await link.run(COMMIT)
        return taken
      } catch (error) {
        await rollBack(link)
        throw error
      }
    })
  } finally {
    await pool.close()
  }
}

/** Refuses a database in which a platform has run: migrations alone write into none of these tables. */
async function refuseUsed(link: Link): Promise<void> {
  for (const name of ['key_proof', 'organization', 'call']) {
    const { rows } = await link.run(`select exists (select 1 from ${quoted(name)}) as used`)
    if (rows[0]?.['used'] !== 0)
      throw new StartRefused('the database is not empty: make a new one (createdb), and name that')
  }
}

async function takeTable(link: Link, source: AllRows, table: TableShape): Promise<TakenTable> {
  const { name, columns } = table
  await link.run(`delete from ${quoted(name)}`)
  const hash = createHash('sha256')
  let rows = 0
  const insert = `insert into ${quoted(name)} (${listed(columns)})
    select ${listed(columns)} from json_populate_recordset(null::${quoted(name)}, $1)`
  let [batch, characters]: [string[], number] = [[], 0]
  const send = async (): Promise<void> => {
    if (batch.length > 0) await link.run(insert, [`[${batch.join(',')}]`])
    batch = []
    characters = 0
  }
  for (const values of source.rows(table)) {
    const kept = values.map(parameterOf) as Value[]
    rows++
    addTo(hash, kept)
    const text = JSON.stringify(Object.fromEntries(columns.map((column, at) => [column, kept[at]])))
    batch.push(text)
    characters += text.length
    if (characters >= BATCH_CHARACTERS) await send()
  }
  await send()
  await continueNumbers(link, table)
  const found = await readBack(link, table)
  if (found.rows !== rows || found.digest !== hash.digest('hex'))
    throw new StartRefused(`the rows of ${name} are not the same after the copy (${rows} before, ${found.rows} after)`)
  return { name, rows }
}

/** Lets numbered keys go on after the last number. */
async function continueNumbers(link: Link, { name, key, last_number }: TableShape): Promise<void> {
  const [column] = key
  if (column === undefined || key.length > 1) return
  const { rows } = await link.run(
    `select pg_get_serial_sequence($1, $2) as sequence,
    (select max(${quoted(column)})::text from ${quoted(name)}) as last`,
    [quoted(name), column],
  )
  const { sequence, last } = rows[0] ?? {}
  if (typeof sequence !== 'string') return
  const number = Math.max(Number(last ?? 0), last_number ?? 0)
  if (number > 0) await link.run('select setval($1::regclass, $2::bigint)', [sequence, number])
}

async function readBack(link: Link, { name, columns, key }: TableShape) {
  await link.run(
    `declare taken no scroll cursor for select ${listed(columns)} from ${quoted(name)} order by ${listed(key)}`,
  )
  const hash = createHash('sha256')
  let rows = 0
  for (;;) {
    const some = await link.rows(`fetch ${FETCHED_ROWS} from taken`, [])
    for (const values of some) addTo(hash, values)
    rows += some.length
    if (some.length < FETCHED_ROWS) break
  }
  await link.run('close taken')
  return { rows, digest: hash.digest('hex') }
}

const addTo = (hash: Hash, values: readonly Value[]): void => void hash.update(`${JSON.stringify(values)}\n`)
const quoted = (name: string): string => `"${name}"`
const listed = (names: readonly string[]): string => names.map(quoted).join(', ')
