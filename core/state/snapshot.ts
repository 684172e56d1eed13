import type { Selectable } from 'kysely'
import { iso } from '../runtime/clock.ts'
import { later, readTogether, statement } from './batch.ts'
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

const REVISION = statement(db => db.selectFrom('configuration').select('revision').where('id', '=', 1))
const PROJECTS = statement(db => db.selectFrom('project').selectAll())
const ACCOUNTS = statement(db => db.selectFrom('voice_account').selectAll())
const TRUNKS = statement(db => db.selectFrom('trunk').selectAll().where('status', '!=', 'released'))
const SOURCES = statement(db => db.selectFrom('trunk_source').selectAll())
const CREDENTIALS = statement(db => db.selectFrom('digest_credential').selectAll())
const TARGETS = statement(db => db.selectFrom('termination_target').selectAll())
const CARRIERS = statement(db => db.selectFrom('carrier').selectAll())
const CARRIER_SOURCES = statement(db => db.selectFrom('carrier_source').selectAll())
const CARRIER_TARGETS = statement(db => db.selectFrom('carrier_target').selectAll())
const CARRIER_ROUTES = statement(db => db.selectFrom('carrier_route').selectAll())
const CARRIER_REGISTRATIONS = statement(db => db.selectFrom('carrier_registration').selectAll())
const APPLICATIONS = statement(db => db.selectFrom('voice_application').selectAll().where('deleted_at', 'is', null))
const NUMBERS = statement(db =>
  db
    .selectFrom('number')
    .selectAll()
    .where(eb => eb.or([eb('project_id', 'is not', null), eb('status', '=', 'quarantined')])),
)
const SUBTRUNKS = statement(db => db.selectFrom('subtrunk').select(['id', 'trunk_id']))

/** All of it of one instant and in one message, without the write lock: whoever writes meanwhile does not wait. */
export async function readConfiguration({ db }: State): Promise<ConfigurationRows> {
  const [
    [configuration],
    projects,
    accounts,
    trunks,
    sources,
    credentials,
    targets,
    carriers,
    carrier_sources,
    carrier_targets,
    carrier_routes,
    carrier_registrations,
    applications,
    numbers,
    subtrunks,
  ] = await readTogether(
    db,
    REVISION({}),
    PROJECTS({}),
    ACCOUNTS({}),
    TRUNKS({}),
    SOURCES({}),
    CREDENTIALS({}),
    TARGETS({}),
    CARRIERS({}),
    CARRIER_SOURCES({}),
    CARRIER_TARGETS({}),
    CARRIER_ROUTES({}),
    CARRIER_REGISTRATIONS({}),
    APPLICATIONS({}),
    NUMBERS({}),
    SUBTRUNKS({}),
  )
  return {
    revision: configuration?.revision ?? 0,
    projects,
    accounts,
    trunks,
    sources,
    credentials,
    targets,
    carriers,
    carrier_sources,
    carrier_targets,
    carrier_routes,
    carrier_registrations,
    applications,
    numbers,
    subtrunks,
  }
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
      const written = trx
        .insertInto('apply_report')
        .values(row)
        .onConflict(conflict => conflict.columns(['node_id', 'resource_id']).doUpdateSet(row))
      await later(trx, written)
    }
  })
}
