import type { Migration } from 'kysely'
import * as firstCall from './0001-first-call.ts'

/** In order of name; a migration that has landed is never edited. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-first-call': firstCall,
}
