import { iso } from '../../runtime/clock.ts'
import type { ApplyReportTable, Db, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { type Bound, queueWrite, readTogether, statement } from '../port.ts'

export async function configurationRevision(db: Db | Trx): Promise<number> {
  const row = await db.selectFrom('configuration').select('revision').where('id', '=', 1).executeTakeFirst()
  return row?.revision ?? 0
}

const REVISION = statement(db => db.selectFrom('configuration').select('revision').where('id', '=', 1))

/** The rows that a signaling node compiles into memory, by their name there. */
const READS = {
  projects: statement(db => db.selectFrom('project').selectAll()),
  accounts: statement(db => db.selectFrom('voice_account').selectAll()),
  trunks: statement(db =>
    db
      .selectFrom('trunk')
      .leftJoin('trunk_setting', 'trunk_setting.trunk_id', 'trunk.id')
      .selectAll('trunk')
      .select('trunk_setting.country')
      .where('status', '!=', 'released'),
  ),
  sources: statement(db => db.selectFrom('trunk_source').selectAll()),
  credentials: statement(db => db.selectFrom('digest_credential').selectAll()),
  targets: statement(db => db.selectFrom('termination_target').selectAll()),
  carriers: statement(db => db.selectFrom('carrier').selectAll()),
  carrier_sources: statement(db => db.selectFrom('carrier_source').selectAll()),
  carrier_targets: statement(db => db.selectFrom('carrier_target').selectAll()),
  carrier_routes: statement(db => db.selectFrom('carrier_route').selectAll()),
  carrier_credentials: statement(db => db.selectFrom('carrier_credential').selectAll()),
  carrier_registrations: statement(db => db.selectFrom('carrier_registration').selectAll()),
  applications: statement(db => db.selectFrom('voice_application').selectAll().where('deleted_at', 'is', null)),
  // Numbers of a project, and numbers in quarantine.
  numbers: statement(db =>
    db
      .selectFrom('number')
      .selectAll()
      .where(eb => eb.or([eb('project_id', 'is not', null), eb('status', '=', 'quarantined')])),
  ),
  subtrunks: statement(db => db.selectFrom('subtrunk').select(['id', 'trunk_id'])),
}

type RowOf<Read> = Read extends (values: never) => Bound<infer Row> ? Row : never

/** The configuration's rows, from one snapshot. */
export type ConfigurationRows = { readonly revision: number } & {
  readonly [Name in keyof typeof READS]: readonly RowOf<(typeof READS)[Name]>[]
}

/** Reads the configuration from one snapshot, in one message and without the write lock: writers do not wait. */
export async function readConfiguration({ db }: State): Promise<ConfigurationRows> {
  const names = Object.keys(READS) as (keyof typeof READS)[]
  const [[configuration], ...rows] = await readTogether(db, REVISION({}), ...names.map(name => READS[name]({})))
  const byName = Object.fromEntries(names.map((name, at) => [name, rows[at]]))
  return { revision: configuration?.revision ?? 0, ...byName } as ConfigurationRows
}

/** The id under which a node reports the configuration as a whole. */
export const CONFIGURATION = 'configuration'

export interface AppliedRevision {
  readonly resource_id: string
  readonly revision: number
  readonly state: ApplyReportTable['state']
  readonly error: string | null
}

/** Saves the revision of each resource that this node runs. Removing the node deletes reports of deleted resources. */
export async function reportApplied(
  state: State,
  node_id: string,
  reports: readonly AppliedRevision[],
  now_ms: number,
) {
  if (reports.length === 0) return
  await state.transaction(async trx => {
    for (const report of reports) {
      const row = { ...report, node_id, applied_at: iso(now_ms) }
      const written = trx
        .insertInto('apply_report')
        .values(row)
        .onConflict(conflict => conflict.columns(['node_id', 'resource_id']).doUpdateSet(row))
      await queueWrite(trx, written)
    }
  })
}
