import { type AnyDb, createTables } from './create-tables.ts'

/** Machines with the same names share one certificate, and show the proofs of each other. */
export async function up(db: AnyDb): Promise<void> {
  await createTables(db, {
    acme_certificate: {
      key: 'directory names',
      columns: 'directory names pem ordered_by ordered_until failed_at',
      defaults: { pem: '', ordered_by: '', ordered_until: '', failed_at: '' },
    },
    acme_proof: { key: 'token', columns: 'token directory names type name key_authorization machine_id until' },
    acme_machine: { key: 'machine_id', columns: 'machine_id directory names type shown seen_at' },
  })
}
