import { queueWrite } from '../port.ts'
import { CALLS } from './0001-initial/calls.ts'
import { CONFIGURATION } from './0001-initial/configuration.ts'
import { type AnyDb, createTables, type Tables } from './create-tables.ts'

const { leg_figures, project_load } = CALLS
const { carrier_credential } = CONFIGURATION
const TABLES = { leg_figures, project_load, carrier_credential } as Tables
const COLUMNS = [
  ['termination_target', 'redirects', 'off'],
  ['termination_target', 'digest_username', null],
  ['termination_target', 'digest_password_sealed', null],
  ['carrier', 'redirects', 'off'],
] as const

/**
 * Adds what the first migration got on 24 and 25 November 2026, after databases had been made by it. Those that were
 * made later have it, by the first migration or by later ones.
 */
export async function up(db: AnyDb): Promise<void> {
  const tables = new Map((await db.introspection.getTables()).map(({ name, columns }) => [name, columns]))
  // A later migration gave project_load this name.
  if (tables.has('load_step')) return
  for (const [name, table] of Object.entries(TABLES)) if (!tables.has(name)) await createTables(db, { [name]: table })
  for (const [table, name, value] of COLUMNS) {
    if (tables.get(table)?.some(column => column.name === name)) continue
    const added = db.schema
      .alterTable(table)
      .addColumn(name, 'text', column => (value === null ? column : column.notNull().defaultTo(value)))
    await queueWrite(db, added)
  }
}
