import { judgeSource, type Standing } from '../../domain/identity/claims.ts'
import { type AnyDb, createTable } from './columns.ts'

/**
 * What each source counts for beside the claims of others. The sources that are there already are judged in the order
 * in which they came; an operator approves of the wide ones (`strowger sources approve`).
 */
export async function up(db: AnyDb): Promise<void> {
  await db.schema
    .alterTable('trunk_source')
    .addColumn('standing', 'text', column => column.notNull().defaultTo('full'))
    .execute()
  // One row for each trunk and address; `address_key` sorts as addresses do.
  await createTable(db, 'digest_proof', { keys: ['trunk_id', 'address'], text: 'trunk_id address address_key day' })
  await db.schema.createIndex('digest_proof_address').on('digest_proof').column('address_key').execute()
  const sources = await db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select(['trunk_source.id', 'cidr', 'enabled', 'auth_mode', 'project_id', 'subaccount_id'])
    .orderBy('trunk_source.created_at')
    .orderBy('trunk_source.id')
    .execute()
  const carriers = await db.selectFrom('carrier_source').select('cidr').execute()
  const claims: { cidr: string; project_id: string; subaccount_id: string | null }[] = []
  const counts = new Map<string, number>()
  for (const { id, enabled, auth_mode, ...source } of sources) {
    const others_of_project = counts.get(source.project_id) ?? 0
    counts.set(source.project_id, others_of_project + 1)
    const write = { ...source, before: null, approved: false }
    const facts = { carriers: carriers.map(({ cidr }) => cidr), claims, proven: [], others_of_project }
    const judged = judgeSource(write, facts)
    const standing: Standing = judged.kind === 'carriers' ? 'name_only' : judged.standing
    if (standing !== 'full') await db.updateTable('trunk_source').set({ standing }).where('id', '=', id).execute()
    else if (enabled === 1 && auth_mode === 'ip_allow_list') claims.push(source)
  }
}
