import type { CompiledQuery, DialectAdapter, Kysely } from 'kysely'
import type { Db, Trx } from './db.ts'
import type { In, Out, ProcedureName } from './procedures/table.ts'
import type { Schema } from './schema/index.ts'
import { compiler } from './sqlite/compiler.ts'

// What the rooms of core/state ask of a store, and nothing of how it is built: sqlite/store.ts builds it (0632).

/** The open state. */
export interface State {
  readonly db: Db
  /**
   * Runs `work` in one write transaction, and resolves when the disk has it (decision 0591). Inside, use `trx` alone: a
   * statement through `db` is no part of it, and may wait for the transaction that waits for it.
   */
  transaction<T>(work: (trx: Trx) => Promise<T>): Promise<T>
  /**
   * The same for a few statements that wait for nothing else: on the asking thread where the state is local, and
   * committed together with those that are asked for at the same moment; one that fails takes none of the others back.
   */
  shortTransaction<T>(work: (trx: Trx) => Promise<T>): Promise<T>
  readonly maintenance: Maintenance
  /** What the connections that write have done so far. */
  work(): StateWork
  /** Throws when the database cannot be written. */
  probe(): Promise<void>
  close(): Promise<void>
}

interface Maintenance {
  /** Writes a consistent copy of the database to `file`, which must not exist; readers and writers go on meanwhile. */
  copyTo(file: string): Promise<void>
  /** Room that the database and its log take, in bytes. */
  bytes(): number
  /** What is wrong with the database, in the store's words; empty when it is sound. */
  faults(): Promise<string[]>
}

export interface StateWork {
  /** To the thread. */
  readonly messages: number
  readonly statements: number
  readonly commits: number
}

/**
 * Why the state did not do what it was asked to do. `unique`: a row with this key is there. `busy`: others held it for
 * too long. `full`: there is no room. `away`: the storage cannot be read or written. `closed`: we closed it.
 */
export type Failure = 'unique' | 'busy' | 'full' | 'away' | 'closed'

/** `code` is the store's own, for the log. */
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

/** Why the state failed; null when it did not, or when the statement was at fault. */
export const failure = (error: unknown): Failure | null => (error instanceof StateError ? error.failure : null)

const PASSING: ReadonlySet<Failure | null> = new Set(['busy', 'full', 'away'])

/** Whether the same work may succeed later, without a change of it. */
export const isPassing = (error: unknown): boolean => PASSING.has(failure(error))

export interface Step {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

/** Reads on the asking thread. What it gives is shared: nobody may change it. */
export interface Reader {
  /** Rows of each step, of one instant. */
  read(steps: readonly Step[]): unknown[][]
  /**
   * What `make` makes of reads of one instant, kept for as long as they are; `of` and `key` name it. It may be made of
   * others.
   */
  derived<T>(of: object, key: string, make: () => T): T
}

/** What a store does for a handle: the database, or a transaction on it. Its dialect's adapter brings it along. */
export interface Engine {
  /** Undefined: the read must be made by a thread that can wait. @throws StateError */
  readHere<T>(handle: Db | Trx, read: (reader: Reader) => T): { readonly value: T } | undefined
  /** Rows of each step, of one instant. @throws StateError */
  read(handle: Db | Trx, steps: readonly Step[]): Promise<readonly (readonly unknown[])[]>
  /** Runs a write whose outcome nobody awaits: with the next statement of the transaction, or with its commit. */
  queueWrite(trx: Db | Trx, step: Step): Promise<void>
  /** As `queueWrite`. */
  queueCall(trx: Db | Trx, name: ProcedureName, input: unknown): Promise<void>
  /** @throws StateError */
  call(handle: Db | Trx, name: ProcedureName, input: unknown, within_ms: number | undefined): Promise<unknown>
}

export interface EngineAdapter extends DialectAdapter {
  readonly engine: Engine
}

// Only this module's stores make handles.
const engineOf = (handle: Db | Trx): Engine => (handle.getExecutor().adapter as EngineAdapter).engine

/**
 * Runs a procedure in a transaction of its own, or in the one that `handle` is. Input and result are plain data. With
 * `within_ms` its own transaction begins within this time, or not at all: it is refused as busy. @throws StateError
 */
export const callProcedure = <Name extends ProcedureName>(
  handle: Db | Trx,
  name: Name,
  input: In<Name>,
  within_ms?: number,
): Promise<Out<Name>> => engineOf(handle).call(handle, name, input, within_ms) as Promise<Out<Name>>

/** Runs a procedure in a transaction as `queueWrite` runs a statement. */
export const queueProcedure = <Name extends ProcedureName>(trx: Trx, name: Name, input: In<Name>): Promise<void> =>
  engineOf(trx).queueCall(trx, name, input)

// Statements for the paths that run thousands of times a second: compiled once, read together, written without waiting.
// A message to the state's thread and back costs more than most statements do.

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

/** Reads several statements at once and of one instant. Nobody may change the rows: they may be shared. */
export async function readTogether<const B extends readonly Bound<unknown>[]>(
  handle: Db | Trx,
  ...bound: B
): Promise<RowsOf<B>> {
  const engine = engineOf(handle)
  const here = engine.readHere(handle, reader => reader.read(bound))
  return (here ? here.value : await engine.read(handle, bound)) as RowsOf<B>
}

type Reads = readonly Bound<unknown>[]

/** Several reads of one instant, and what is made of their rows. */
interface Derivation<Values, T> {
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
  const made = (rows: readonly (readonly unknown[])[]): T => make(rows as RowsOf<B>)
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
      const read = engineOf(db).readHere(db, reader => here(reader, values))
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
  await engineOf(trx).queueWrite(trx, { sql, parameters })
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
