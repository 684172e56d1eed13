import type { Test } from './harness/index.ts'

let postgres = false

/** Reports whether the states of tests are made on PostgreSQL: all are, with STROWGER_TEST_ENGINE=postgres. */
export const onPostgres = (): boolean => postgres || process.env['STROWGER_TEST_ENGINE'] === 'postgres'

/**
 * Runs the tests of another file again, with their states on PostgreSQL. A module runs once for each URL, so the URL
 * gets a query. What only SQLite has is left out there by `onPostgres`.
 */
export async function againOnPostgres(t: Test, path: string, from: string): Promise<void> {
  postgres = true
  t.teardown(() => {
    postgres = false
  })
  await import(`${new URL(path, from).href}?postgres`)
}
