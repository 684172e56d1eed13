import { CompiledQuery, DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import type { Db, Schema, Trx } from './db.ts'
import { BATCH, LATER_PREFIX, type Step } from './sqlite/protocol.ts'
import type { Reader } from './sqlite/reader.ts'
import type { Outcome } from './sqlite/steps.ts'

/**
 * Statements for the paths that are walked thousands of times a second: compiled once, read together, written without
 * waiting. A message to the state's thread and back costs more than most statements do.
 */

/** A statement with its values, and the row that it reads. */
export interface Bound<Row> extends Step {
  readonly row?: Row
}

interface Compilable<Row> {
  compile(): CompiledQuery<Row>
}

class Slot {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

/** Compiles only: it has no database behind it. */
const compiler = new Kysely<Schema>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
})

/**
 * A read whose text is made at its first use and kept; `values` stand for the values of each use and must be handed on
 * as they are.
 */
export function statement<Values extends object, Row>(
  build: (db: Kysely<Schema>, values: Values) => Compilable<Row>,
): (values: Values) => Bound<Row> {
  let compiled: CompiledQuery<Row> | undefined
  const slots = new Proxy({} as Values, { get: (_, name) => new Slot(String(name)) })
  return values => {
    compiled ??= build(compiler, slots).compile()
    const given = values as Readonly<Record<string, unknown>>
    return {
      sql: compiled.sql,
      parameters: compiled.parameters.map(value => (value instanceof Slot ? given[value.name] : value)),
    }
  }
}

type RowsOf<B extends readonly Bound<unknown>[]> = {
  -readonly [K in keyof B]: B[K] extends Bound<infer Row> ? Row[] : never
}

const readers = new WeakMap<object, () => Reader | null>()
const runners = new WeakMap<object, (step: Step) => Outcome>()

/** Reads of this database are made on the thread that asks, whenever `reader` gives one. */
export const readHere = (db: Db | Trx, reader: () => Reader | null): void => void readers.set(db, reader)

/** Reads on the asking thread; undefined where they must be made by the one that can wait. */
function readNow<T>(db: Db | Trx, read: (reader: Reader) => T): { readonly value: T } | undefined {
  const reader = readers.get(db)?.()
  if (!reader) return undefined
  try {
    return { value: read(reader) }
  } catch (error) {
    // A process has died with the log open, and another brings it in order at this moment.
    if ((error as { code?: string }).code?.startsWith('SQLITE_BUSY')) return undefined
    throw error
  }
}

/** Steps of this transaction are run on the thread that asks, without a message and without Kysely in between. */
export const runHere = (trx: Trx, run: (step: Step) => Outcome): void => void runners.set(trx, run)

/** Reads several statements at once and of one instant. Nobody may change the rows: they may be shared. */
export async function readTogether<const B extends readonly Bound<unknown>[]>(
  db: Db | Trx,
  ...bound: B
): Promise<RowsOf<B>> {
  const read = readNow(db, reader => reader.read(bound) as RowsOf<B>)
  if (read) return read.value
  const run = runners.get(db)
  if (run) return run({ sql: BATCH, parameters: [bound] }).result as RowsOf<B>
  const steps = bound.map(({ sql, parameters }) => ({ sql, parameters }))
  const { rows } = await db.executeQuery<{ readonly result: RowsOf<B> }>(CompiledQuery.raw(BATCH, [steps]))
  const [row] = rows
  if (!row) throw new Error('a batch gave no result')
  return row.result
}

type Reads = readonly Bound<unknown>[]

/** Several reads of one instant, and what is made of their rows. */
export interface Derivation<Values, T> {
  readonly bind: (values: Values) => Reads
  readonly make: (rows: readonly (readonly unknown[])[], values: Values) => T
  /** On the asking thread, where it is kept with its rows. */
  readonly here: (reader: Reader, values: Values) => T
  /** What is kept is shared: nobody may change it. */
  readonly read: (db: Db | Trx, values: Values) => Promise<T>
}

/** `keyOf` names what is made of these values among what is made of others. */
export function cachedQuery<Values, const B extends Reads, T>(
  keyOf: (values: Values) => string,
  bind: (values: Values) => B,
  make: (rows: RowsOf<B>) => T,
): Derivation<Values, T> {
  const made = make as unknown as (rows: readonly (readonly unknown[])[]) => T
  return derived(bind, made, (reader, values) =>
    reader.derived(make, keyOf(values), () => made(reader.read(bind(values)))),
  )
}

/** One of two others, each of which is kept by itself: a write to what only one of them reads leaves the other. */
export function combinedQuery<Values, A, B, T>(
  keyOf: (values: Values) => string,
  first: Derivation<Values, A>,
  second: Derivation<Values, B>,
  make: (first: A, second: B) => T,
): Derivation<Values, T> {
  return derived(
    values => [...first.bind(values), ...second.bind(values)],
    (rows, values) => {
      const at = first.bind(values).length
      return make(first.make(rows.slice(0, at), values), second.make(rows.slice(at), values))
    },
    (reader, values) =>
      reader.derived(make, keyOf(values), () => make(first.here(reader, values), second.here(reader, values))),
  )
}

function derived<Values, T>(
  bind: Derivation<Values, T>['bind'],
  make: Derivation<Values, T>['make'],
  here: Derivation<Values, T>['here'],
): Derivation<Values, T> {
  return {
    bind,
    make,
    here,
    async read(db, values) {
      const read = readNow(db, reader => here(reader, values))
      return read ? read.value : make(await readTogether(db, ...bind(values)), values)
    },
  }
}

/**
 * A write whose outcome nobody looks at: in a transaction it travels with the next statement or the commit, and its
 * error is theirs.
 */
export async function queueWrite(trx: Db | Trx, query: Compilable<unknown> | Step): Promise<void> {
  const { sql, parameters } = 'compile' in query ? query.compile() : query
  const run = runners.get(trx)
  if (run) return void run({ sql, parameters })
  await trx.executeQuery(CompiledQuery.raw(`${LATER_PREFIX}${sql}`, [...parameters]))
}

/** An update of one row by its id, for `queueWrite`. It needs no query builder, which costs more than the statement. */
export const updateOf = <T extends keyof Schema & string>(
  table: T,
  columns: Readonly<Partial<Record<keyof Schema[T] & string, unknown>>>,
  id: string,
): Step => {
  const given = Object.entries(columns).filter(([, value]) => value !== undefined)
  return {
    sql: `update "${table}" set ${given.map(([name]) => `"${name}" = ?`).join(', ')} where "id" = ?`,
    parameters: [...given.map(([, value]) => value), id],
  }
}
