import { type Dialect, type Driver, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import type { Engine, EngineAdapter } from '../port.ts'

/** A Kysely dialect of SQLite whose adapter carries an engine (core/state/README.md). */
export const engineDialect = (engine: Engine, createDriver: () => Driver): Dialect => ({
  createAdapter: () => new Adapter(engine),
  createDriver,
  createIntrospector: db => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

// SQLite's DDL is transactional, and BEGIN IMMEDIATE serializes two processes that migrate concurrently.
class Adapter extends SqliteAdapter implements EngineAdapter {
  readonly engine: Engine

  constructor(engine: Engine) {
    super()
    this.engine = engine
  }

  override get supportsTransactionalDdl(): boolean {
    return true
  }
}
