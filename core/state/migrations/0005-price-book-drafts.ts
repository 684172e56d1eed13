import { type AnyDb, createTables } from './create-tables.ts'

/** The rates of a price book are written in slices before the book itself. */
export const up = (db: AnyDb): Promise<void> =>
  createTables(db, { price_book_draft: { key: 'id', columns: 'id created_at' } })
