import type { CompiledQuery, DialectAdapter, Expression, Kysely, RawBuilder } from 'kysely'
import type { Clock } from '../runtime/clock.ts'
import type { Db, Trx } from './db.ts'
import type { Value } from './procedures/query.ts'
import type { In, Out, ProcedureName } from './procedures/table.ts'
import type { Schema } from './schema/index.ts'

// The interface between core/state and a store, independent of the engine. sqlite/store.ts implements it.

/** An open state: the database, its transactions and its maintenance. */
export interface State {
  readonly db: Db
  /** The clock that times of rows are of: that of the machine, or of the server which several machines share. */
  readonly clock: Clock
  /**
   * Runs `work` in one write transaction and resolves once the commit is on disk (decision 0591). Inside, use only
   * `trx`: a statement through `db` is not part of the transaction, and awaiting it there may deadlock.
   */
  transaction<T>(work: (trx: Trx) => Promise<T>): Promise<T>
  /**
   * Like `transaction`, for a few statements that await nothing else. A local state runs them on the calling thread.
   * Concurrent short transactions share a commit; if one fails, only its own writes are rolled back.
   *
   * The promise resolves once the commit is on disk. With `waitsForDisk`, it waits only when that returns true for the
   * value. The next commit that waits takes the others to the disk; a power cut before it undoes them.
   */
  shortTransaction<T>(work: (trx: Trx) => Promise<T>, waitsForDisk?: (value: T) => boolean): Promise<T>
  readonly maintenance: Maintenance
  /** Counts the work of the writing connections so far. */
  work(): StateWork
  /** Throws when the database cannot be written. */
  probe(): Promise<void>
  close(): Promise<void>
}

interface Maintenance {
  /** Writes a consistent copy of the database to `file`, which must not exist. Readers and writers are not blocked. */
  copyTo(file: string): Promise<void>
  /** Size of the database and its log, in bytes. */
  bytes(): Promise<number>
  /**
   * Holds one Int32, which is 1 while a long read would keep the log from being written back. A thread that reads for
   * long waits for its change before each part.
   */
  readonly reads_wait: SharedArrayBuffer
  /** Checks the database's integrity. Returns the engine's findings; empty when it is sound. */
  faults(): Promise<string[]>
}

export interface StateWork {
  /** Messages sent to the state's thread. */
  readonly messages: number
  readonly statements: number
  readonly commits: number
}

/**
 * Why an operation failed. `unique`: a row with this key exists. `busy`: waiting for a lock timed out. `full`: no space
 * is left. `away`: the storage cannot be read or written. `closed`: this process has closed the state.
 */
export type Failure = 'unique' | 'busy' | 'full' | 'away' | 'closed'

/** An error of the store. `code` is the engine's own code, for the log. */
export class StateError extends Error {
  override readonly name = 'StateError'
  readonly code: string
  /** Null: the statement itself is at fault. */
  readonly failure: Failure | null
  constructor(message: string, { code, failure }: { readonly code: string; readonly failure: Failure | null }) {
    super(message)
    this.code = code
    this.failure = failure
  }
}

export const closedError = (): StateError =>
  new StateError('the state is closed', { code: 'CLOSED', failure: 'closed' })

/** Returns the failure of a StateError; null for other errors, or when the statement was at fault. */
export const failure = (error: unknown): Failure | null => (error instanceof StateError ? error.failure : null)

const PASSING: ReadonlySet<Failure | null> = new Set(['busy', 'full', 'away'])

/** Reports whether an error is transient: the same work may succeed when retried. */
export const isPassing = (error: unknown): boolean => PASSING.has(failure(error))

export interface Step {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

/** Reads on the calling thread. Its results are cached and shared: callers must not modify them. */
export interface Reader {
  /** Returns the rows of each step, all from one snapshot. */
  read(steps: readonly Step[]): unknown[][]
  /**
   * Returns the value that `make` computes from reads of one snapshot. `of` and `key` identify it in the cache, which
   * keeps it for as long as those reads stay valid. `make` may use other derived values.
   */
  derived<T>(of: object, key: string, make: () => T): T
}

/** How a text is written into a line: as a cell of CSV (`csvCell`), or as a string of JSON. */
export type TextRule = 'csv_cell' | 'json_string'

/** Returns an expression of the text that a rule makes of the text `value`; null of null. */
export type WriteText = (rule: TextRule, value: Expression<string | null>) => RawBuilder<string | null>

/** The rows of the positions `after` (not included) to `last` (included), at most `limit` of them. */
export interface RowRange {
  readonly after: number
  readonly last: number
  readonly limit: number
}
/** Where the values of a range stand in a query. */
export type RangePlaces = { readonly [name in keyof RowRange]: Expression<number> }

/** The lines of rows, one after the other. */
export interface Lines {
  readonly rows: number
  /** Null: there are no rows. */
  readonly last_position: number | null
  /** As UTF-8. */
  readonly text: Uint8Array
}

/**
 * Reads the lines of many rows, which the engine writes: where millions are read, a value of JavaScript for each column
 * costs more than the read. It writes nothing. That of SQLite blocks its thread.
 */
export interface RowReader {
  /**
   * Compiles a query of two columns: a `position`, by which it is ordered, and a `line`. Returns what reads a range by
   * it. Both throw StateError.
   */
  lines(
    query: (
      db: Kysely<Schema>,
      write: WriteText,
      range: RangePlaces,
    ) => Compilable<{ readonly position: number; readonly line: string }>,
  ): (range: RowRange) => Promise<Lines>
  /** Reports whether another connection has committed since it was asked last; false where the store cannot tell. */
  written(): boolean
  close(): Promise<void>
}

/** A table as it is moved to another store. */
export interface TableShape {
  readonly name: string
  readonly columns: readonly string[]
  /** The columns of the primary key. */
  readonly key: readonly string[]
  /** The last number that its key has had, of a table whose numbers are never used again; null for others. */
  readonly last_number: number | null
}

/** All rows of a store, which does not change meanwhile. */
export interface AllRows {
  readonly tables: readonly TableShape[]
  /** Yields the values of each row in order of the key, texts by their bytes. @throws StartRefused for odd values */
  rows(table: TableShape): Iterable<readonly Value[]>
  close(): void
}

/** A store's operations on a handle (the database, or a transaction on it). The dialect's adapter carries it. */
export interface StateEngine {
  /** Builds statements in the engine's dialect; it runs none. */
  readonly compiler: Kysely<Schema>
  /** Ends a `create table` statement whose rows lie in the order of their key; null: the engine has no such tables. */
  readonly clustered: RawBuilder<unknown> | null
  /** Reads without waiting. Undefined: only a thread that may block can make this read. @throws StateError */
  readHere<T>(handle: Db | Trx, read: (reader: Reader) => T): { readonly value: T } | undefined
  /** Returns the rows of each step, all from one snapshot. @throws StateError */
  read(handle: Db | Trx, steps: readonly Step[]): Promise<readonly (readonly unknown[])[]>
  /** Queues a write whose outcome is not awaited. It runs with the transaction's next statement or its commit. */
  queueWrite(trx: Db | Trx, step: Step): Promise<void>
  /** Queues a procedure like `queueWrite`. */
  queueCall(trx: Db | Trx, name: ProcedureName, input: unknown): Promise<void>
  /** @throws StateError */
  call(handle: Db | Trx, name: ProcedureName, input: unknown, within_ms: number | undefined): Promise<unknown>
}

export interface EngineAdapter extends DialectAdapter {
  readonly engine: StateEngine
}

// The cast is safe: every handle comes from a store whose dialect uses an EngineAdapter.
const engineOf = (handle: Db | Trx): StateEngine => (handle.getExecutor().adapter as EngineAdapter).engine

/**
 * Runs a procedure in its own transaction, or in `handle` when that is one. Input and result are plain data. When its
 * own transaction cannot begin within `within_ms`, the call fails as busy. @throws StateError
 */
export const callProcedure = <Name extends ProcedureName>(
  handle: Db | Trx,
  name: Name,
  input: In<Name>,
  within_ms?: number,
): Promise<Out<Name>> => engineOf(handle).call(handle, name, input, within_ms) as Promise<Out<Name>>

/** Queues a procedure in a transaction, as `queueWrite` queues a statement. */
export const queueProcedure = <Name extends ProcedureName>(trx: Trx, name: Name, input: In<Name>): Promise<void> =>
  engineOf(trx).queueCall(trx, name, input)

// Statements for paths that run thousands of times a second: compiled once, read in batches, written without awaiting
// the result. A round trip to the state's thread costs more than most statements.

/** A statement with its values. `row` carries the type of the rows that it reads. */
export interface Bound<Row> {
  /** Returns the statement in an engine's dialect. */
  step(compiler: Kysely<Schema>): Step
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

/**
 * Defines a read that is compiled at its first use. `build` gets placeholders for `values`: it must pass them to the
 * query unchanged.
 */
export function statement<Values extends object, Row>(
  build: (db: Kysely<Schema>, values: Values) => Compilable<Row>,
): (values: Values) => Bound<Row> {
  const compiled = new WeakMap<Kysely<Schema>, CompiledQuery<Row>>()
  const slots = new Proxy({} as Values, { get: (_, name) => new Slot(String(name)) })
  return values => ({
    step(compiler) {
      let made = compiled.get(compiler)
      if (!made) {
        made = build(compiler, slots).compile()
        compiled.set(compiler, made)
      }
      const given = values as Readonly<Record<string, unknown>>
      return {
        sql: made.sql,
        parameters: made.parameters.map(value => (value instanceof Slot ? given[value.name] : value)),
      }
    },
  })
}

/** Returns the end of a clustered table's statement, in the engine of a handle. */
export const clusteredIn = (handle: Db | Trx): StateEngine['clustered'] => engineOf(handle).clustered

/** Returns statements in the dialect of a handle's engine. */
export const inDialect = (handle: Db | Trx, bound: readonly Bound<unknown>[]): Step[] =>
  bound.map(one => one.step(engineOf(handle).compiler))

type RowsOf<B extends readonly Bound<unknown>[]> = {
  -readonly [K in keyof B]: B[K] extends Bound<infer Row> ? Row[] : never
}

/** Reads several statements in one batch, from one snapshot. Callers must not modify the rows: they may be shared. */
export async function readTogether<const B extends readonly Bound<unknown>[]>(
  handle: Db | Trx,
  ...bound: B
): Promise<RowsOf<B>> {
  const engine = engineOf(handle)
  const steps = inDialect(handle, bound)
  const here = engine.readHere(handle, reader => reader.read(steps))
  return (here ? here.value : await engine.read(handle, steps)) as RowsOf<B>
}

type Reads = readonly Bound<unknown>[]

/** Several reads of one snapshot, and the value computed from their rows. */
interface Derivation<Values, T> {
  readonly bind: (values: Values) => Reads
  readonly make: (rows: readonly (readonly unknown[])[], values: Values) => T
  /** Computes the value on the calling thread, which caches it with its rows. */
  readonly here: (reader: Reader, compiler: Kysely<Schema>, values: Values) => T
  /** Returns the value, cached where possible. Cached values are shared: callers must not modify them. */
  readonly read: (db: Db | Trx, values: Values) => Promise<T>
}

/** Defines a query whose computed result is cached. `keyOf` gives the cache key of its values. */
export function cachedQuery<Values, const B extends Reads, T>(
  keyOf: (values: Values) => string,
  bind: (values: Values) => B,
  make: (rows: RowsOf<B>) => T,
): Derivation<Values, T> {
  const made = (rows: readonly (readonly unknown[])[]): T => make(rows as RowsOf<B>)
  return derived(bind, made, (reader, compiler, values) =>
    reader.derived(make, keyOf(values), () => made(reader.read(bind(values).map(one => one.step(compiler))))),
  )
}

/** Combines two cached queries. A write to a table that only one of them reads leaves the other one's cache valid. */
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
    (reader, compiler, values) =>
      reader.derived(make, keyOf(values), () =>
        make(first.here(reader, compiler, values), second.here(reader, compiler, values)),
      ),
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
      const engine = engineOf(db)
      const read = engine.readHere(db, reader => here(reader, engine.compiler, values))
      return read ? read.value : make(await readTogether(db, ...bind(values)), values)
    },
  }
}

/**
 * Queues a write whose outcome is not awaited. In a transaction it travels with the next statement or the commit, which
 * then reports its error.
 */
export async function queueWrite(trx: Db | Trx, query: Compilable<unknown> | Step): Promise<void> {
  const { sql, parameters } = 'compile' in query ? query.compile() : query
  await engineOf(trx).queueWrite(trx, { sql, parameters })
}

/** Builds an update of one row by its id, for `queueWrite`. Kysely's query builder costs more than the statement. */
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
