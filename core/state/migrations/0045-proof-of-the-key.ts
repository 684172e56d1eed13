import { type AnyDb, createTables } from './create-tables.ts'

/** A database says which master key it belongs to: an installation with another one could read none of its secrets. */
export const up = (db: AnyDb): Promise<void> =>
  createTables(db, { key_proof: { key: 'id', columns: 'id:int proof created_at' } })
