import type { Migration } from 'kysely'
import * as initial from './0001-initial/index.ts'

/** In order of name. A migration that was released is never edited. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-initial': initial,
}
