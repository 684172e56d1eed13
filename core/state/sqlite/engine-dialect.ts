import { type Dialect, type Driver, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import type { EngineAdapter, StateEngine } from '../port.ts'

/** A Kysely dialect of SQLite whose adapter carries an engine (core/state/README.md). */
export const engineDialect = (engine: StateEngine, createDriver: () => Driver): Dialect => ({
  createAdapter: () => new Adapter(engine),
  createDriver,
  createIntrospector: db => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

// SQLite's DDL is transactional, and BEGIN IMMEDIATE serializes two processes that migrate concurrently.
class Adapter extends SqliteAdapter implements EngineAdapter {
  readonly engine: StateEngine

  constructor(engine: StateEngine) {
    super()
    this.engine = engine
  }

  override get supportsTransactionalDdl(): boolean {
    return true
  }
}
