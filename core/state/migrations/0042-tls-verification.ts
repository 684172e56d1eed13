import type { AnyDb } from './columns.ts'

// How targets prove by TLS that they are themselves: by chain and name, unless somebody said otherwise.

export async function up(db: AnyDb): Promise<void> {
  for (const table of ['termination_target', 'carrier_target']) {
    await db.schema
      .alterTable(table)
      .addColumn('tls_verification', 'text', column => column.notNull().defaultTo('required'))
      .execute()
    await db.schema.alterTable(table).addColumn('tls_fingerprint', 'text').execute()
  }
}
