import type { Test } from './harness/index.ts'

let postgres = false
let first_stories = false

/** Reports whether the states of tests are made on PostgreSQL: all are, with STROWGER_TEST_ENGINE=postgres. */
export const onPostgres = (): boolean => postgres || process.env['STROWGER_TEST_ENGINE'] === 'postgres'

/** Reports whether a long story ends after its first parts: on PostgreSQL, in `npm test`. */
export const onlyFirstStories = (): boolean => first_stories

/**
 * Runs the tests of another file again, with their states on PostgreSQL. A module runs once for each URL, so the URL
 * gets a query. What only SQLite has is left out there by `onPostgres`, and what takes long by `onlyFirstStories`.
 */
export async function againOnPostgres(t: Test, path: string, from: string): Promise<void> {
  postgres = true
  first_stories = true
  t.teardown(() => {
    postgres = false
    first_stories = false
  })
  await import(`${new URL(path, from).href}?postgres`)
}
