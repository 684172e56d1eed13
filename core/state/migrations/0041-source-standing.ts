import { type AnyDb, createTable } from './columns.ts'
import { type FrozenRange, frozenOverlap, frozenRange } from './frozen-ranges.ts'

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
  const judge = judgeInOrder(carriers.flatMap(({ cidr }) => frozenRange(cidr) ?? []))
  for (const source of sources) {
    const standing = judge(source)
    if (standing !== 'full')
      await db.updateTable('trunk_source').set({ standing }).where('id', '=', source.id).execute()
  }
}

interface Source {
  readonly cidr: string
  readonly enabled: 0 | 1
  readonly auth_mode: string
  readonly project_id: string
  readonly subaccount_id: string | null
}

/** Decision 0560 as it was when this migration landed. */
function judgeInOrder(carriers: readonly FrozenRange[]): (source: Source) => string {
  const claims: { readonly range: FrozenRange; readonly source: Source }[] = []
  const counts = new Map<string, number>()
  return source => {
    const { project_id, subaccount_id } = source
    const before = counts.get(project_id) ?? 0
    counts.set(project_id, before + 1)
    const range = frozenRange(source.cidr)
    if (!range) return 'pending_approval'
    if (carriers.some(carrier => frozenOverlap(carrier, range))) return 'name_only'
    if (before >= 100 || range.length < (range.bits === 32 ? 24 : 48)) return 'pending_approval'
    const taken = claims.some(
      other =>
        (other.source.project_id !== project_id || other.source.subaccount_id !== subaccount_id) &&
        frozenOverlap(other.range, range),
    )
    if (taken) return 'name_only'
    if (source.enabled === 1 && source.auth_mode === 'ip_allow_list') claims.push({ range, source })
    return 'full'
  }
}
