import type { Selectable } from 'kysely'
import type { Db, Trx, VoiceAccountTable } from '../db.ts'

export type VoiceAccountRow = Selectable<VoiceAccountTable>
export type VoiceAccountOfProject = VoiceAccountRow & {
  readonly organization_id: string
  readonly project_status: 'active' | 'disabled'
  readonly project_name: string
}

export const findVoiceAccountBySid = (db: Db, account_sid: string): Promise<VoiceAccountOfProject | undefined> =>
  db
    .selectFrom('voice_account')
    .innerJoin('project', 'project.id', 'voice_account.project_id')
    .selectAll('voice_account')
    .select(['project.organization_id', 'project.status as project_status', 'project.name as project_name'])
    .where('voice_account.account_sid', '=', account_sid)
    .executeTakeFirst()

export const findVoiceAccount = (db: Db, project_id: string): Promise<VoiceAccountRow | undefined> =>
  db.selectFrom('voice_account').selectAll().where('project_id', '=', project_id).executeTakeFirst()

/** Saves columns of a voice account. Returns it at its next revision. */
export async function saveVoiceAccount(
  trx: Trx,
  account: VoiceAccountRow,
  changes: Partial<
    Pick<VoiceAccountRow, 'auth_token_sealed' | 'key_id' | 'status' | 'call_event_history' | 'voice_api'>
  >,
): Promise<VoiceAccountRow> {
  const saved = { ...changes, revision: account.revision + 1 }
  await trx.updateTable('voice_account').set(saved).where('project_id', '=', account.project_id).execute()
  return { ...account, ...saved }
}
