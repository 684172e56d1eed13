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

/** Replaces the auth token in one step. */
export async function replaceAuthToken(
  trx: Trx,
  account: VoiceAccountRow,
  token: { readonly auth_token_sealed: string; readonly key_id: string },
): Promise<VoiceAccountRow> {
  const revision = account.revision + 1
  await trx
    .updateTable('voice_account')
    .set({ ...token, revision })
    .where('project_id', '=', account.project_id)
    .execute()
  return { ...account, ...token, revision }
}
