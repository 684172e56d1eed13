import type { AnyDb } from './create-tables.ts'

/** The list of high risks has two more classes. Projects that were there keep what they could call. */
export async function up(db: AnyDb): Promise<void> {
  const before = await db.selectFrom('project').select(['id', 'open_risks']).execute()
  for (const { id, open_risks } of before) {
    const open = JSON.stringify([...JSON.parse(open_risks), 'national-premium', 'caribbean'])
    await db.updateTable('project').set({ open_risks: open }).where('id', '=', id).execute()
  }
}
