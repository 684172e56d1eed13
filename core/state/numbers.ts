import type { Selectable } from 'kysely'
import type { Db, NumberTable } from './index.ts'

export type NumberRow = Selectable<NumberTable>

/** The project's own number with these digits, with or without the plus. */
export const findOwnedNumber = (db: Db, project_id: string, number: string): Promise<NumberRow | undefined> =>
  db
    .selectFrom('number')
    .selectAll()
    .where('e164', '=', `+${number.replace(/^\+/, '')}`)
    .where('project_id', '=', project_id)
    .where('status', '=', 'held')
    .executeTakeFirst()
