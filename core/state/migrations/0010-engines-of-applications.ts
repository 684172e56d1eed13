import type { AnyDb } from './create-tables.ts'

/** Voice applications choose the engines that hear and speak in their calls. */
export async function up(db: AnyDb): Promise<void> {
  for (const column of ['stt', 'tts'])
    await db.schema.alterTable('voice_application').addColumn(column, 'text').execute()
}
