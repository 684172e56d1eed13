import type { AnyDb } from './columns.ts'

// How registrars of carriers prove by TLS that they are themselves: as targets do.

export async function up(db: AnyDb): Promise<void> {
  await db.schema
    .alterTable('carrier_registration')
    .addColumn('tls_verification', 'text', column => column.notNull().defaultTo('required'))
    .execute()
  await db.schema.alterTable('carrier_registration').addColumn('tls_fingerprint', 'text').execute()
}
