import type { Selectable } from 'kysely'
import { iso } from '../runtime/clock.ts'
import type {
  ApplyReportTable,
  CarrierRegistrationTable,
  CarrierRouteTable,
  CarrierSourceTable,
  CarrierTable,
  CarrierTargetTable,
  Db,
  DigestCredentialTable,
  NumberTable,
  ProjectTable,
  State,
  TerminationTargetTable,
  TrunkSourceTable,
  TrunkTable,
  Trx,
  VoiceAccountTable,
  VoiceApplicationTable,
} from './index.ts'

/** All that a signaling node compiles into memory, of one instant. */
export interface ConfigurationRows {
  readonly revision: number
  readonly projects: readonly Selectable<ProjectTable>[]
  readonly accounts: readonly Selectable<VoiceAccountTable>[]
  readonly trunks: readonly Selectable<TrunkTable>[]
  readonly sources: readonly Selectable<TrunkSourceTable>[]
  readonly credentials: readonly Selectable<DigestCredentialTable>[]
  readonly targets: readonly Selectable<TerminationTargetTable>[]
  readonly carriers: readonly Selectable<CarrierTable>[]
  readonly carrier_sources: readonly Selectable<CarrierSourceTable>[]
  readonly carrier_targets: readonly Selectable<CarrierTargetTable>[]
  readonly carrier_routes: readonly Selectable<CarrierRouteTable>[]
  readonly carrier_registrations: readonly Selectable<CarrierRegistrationTable>[]
  readonly applications: readonly Selectable<VoiceApplicationTable>[]
  /** Those of a project, and those in quarantine. */
  readonly numbers: readonly Selectable<NumberTable>[]
  readonly subtrunks: readonly { readonly id: string; readonly trunk_id: string }[]
}

export async function configurationRevision(db: Db | Trx): Promise<number> {
  const row = await db.selectFrom('configuration').select('revision').where('id', '=', 1).executeTakeFirst()
  return row?.revision ?? 0
}

export function readConfiguration(state: State): Promise<ConfigurationRows> {
  return state.transaction(async trx => ({
    revision: await configurationRevision(trx),
    projects: await trx.selectFrom('project').selectAll().execute(),
    accounts: await trx.selectFrom('voice_account').selectAll().execute(),
    trunks: await trx.selectFrom('trunk').selectAll().where('status', '!=', 'released').execute(),
    sources: await trx.selectFrom('trunk_source').selectAll().execute(),
    credentials: await trx.selectFrom('digest_credential').selectAll().execute(),
    targets: await trx.selectFrom('termination_target').selectAll().execute(),
    carriers: await trx.selectFrom('carrier').selectAll().execute(),
    carrier_sources: await trx.selectFrom('carrier_source').selectAll().execute(),
    carrier_targets: await trx.selectFrom('carrier_target').selectAll().execute(),
    carrier_routes: await trx.selectFrom('carrier_route').selectAll().execute(),
    carrier_registrations: await trx.selectFrom('carrier_registration').selectAll().execute(),
    applications: await trx.selectFrom('voice_application').selectAll().where('deleted_at', 'is', null).execute(),
    numbers: await trx
      .selectFrom('number')
      .selectAll()
      .where(eb => eb.or([eb('project_id', 'is not', null), eb('status', '=', 'quarantined')]))
      .execute(),
    subtrunks: await trx.selectFrom('subtrunk').select(['id', 'trunk_id']).execute(),
  }))
}

export interface Applied {
  readonly resource_id: string
  readonly revision: number
  readonly state: ApplyReportTable['state']
  readonly error: string | null
}

/** What this node runs of each resource now; reports of resources that are no more are forgotten with the node. */
export async function reportApplied(state: State, node_id: string, reports: readonly Applied[], now_ms: number) {
  if (reports.length === 0) return
  await state.transaction(async trx => {
    for (const report of reports) {
      const row = { ...report, node_id, applied_at: iso(now_ms) }
      await trx
        .insertInto('apply_report')
        .values(row)
        .onConflict(conflict => conflict.columns(['node_id', 'resource_id']).doUpdateSet(row))
        .execute()
    }
  })
}
