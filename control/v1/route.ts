import { type AlertPolicyRow, findAlertPolicy } from '../../core/state/alert-policies.ts'
import { type AlertRow, findAlert } from '../../core/state/alerts.ts'
import { type ContainmentRow, findContainment } from '../../core/state/containments.ts'
import type { Db } from '../../core/state/index.ts'
import { findNumber, type NumberRow } from '../../core/state/numbers.ts'
import { findPolicy, type PolicyRow } from '../../core/state/policies.ts'
import { findSubaccount, type SubaccountRow } from '../../core/state/subaccounts.ts'
import { findSubtrunk, type SubtrunkRow } from '../../core/state/subtrunks.ts'
import { findTestRun, type TestRunRow } from '../../core/state/trunk-tests.ts'
import type { TrunkRow } from '../../core/state/trunks.ts'
import { findApplication, type VoiceApplicationRow } from '../../core/state/voice-applications.ts'
import { findEndpoint, type WebhookEndpointRow } from '../../core/state/webhook-endpoints.ts'
import { type Loader, routesWith } from '../http/route.ts'
import { loadTrunk } from './trunk-present.ts'

const revision = (row: { readonly revision: number }): number => row.revision
/** What belongs to the project as a whole is out of reach of a key that is restricted to a subaccount. */
const ofTheProject = (): null => null

const trunk: Loader<'trunk', TrunkRow> = {
  name: 'trunk',
  load: (db, { id, project_id }) => loadTrunk(db, project_id, id),
  revision,
  subaccount_id: row => row.subaccount_id,
}

const subtrunk: Loader<'subtrunk', SubtrunkRow> = {
  name: 'subtrunk',
  async load(db, { id, project_id, params }) {
    const row = await findSubtrunk(db, project_id, id)
    return row?.trunk_id === params['trunk_id'] ? row : undefined
  },
  revision,
}

const policy: Loader<'policy', PolicyRow> = {
  name: 'policy',
  load: (db, { id, project_id }) => findPolicy(db, project_id, id),
  revision,
  subaccount_id: ofTheProject,
}

const application: Loader<'application', VoiceApplicationRow> = {
  name: 'application',
  load: (db, { id, project_id }) => findApplication(db, project_id, id),
  revision,
  subaccount_id: ofTheProject,
}

const number: Loader<'number', NumberRow> = {
  name: 'number',
  load: (db, { id, project_id }) => findNumber(db, project_id, id),
  revision,
  subaccount_id: ofTheProject,
}

const subaccount: Loader<'subaccount', SubaccountRow> = {
  name: 'subaccount',
  load: (db, { id, project_id }) => findSubaccount(db, project_id, id),
  revision,
  subaccount_id: row => row.id,
}

const endpoint: Loader<'endpoint', WebhookEndpointRow> = {
  name: 'endpoint',
  load: (db, { id, project_id }) => findEndpoint(db, project_id, id),
  revision,
  subaccount_id: ofTheProject,
}

/** What is about a trunk belongs to the trunk's subaccount. */
interface OfTrunk {
  readonly trunk_subaccount_id: string | null
}

async function withTrunk<Row extends { readonly trunk_id: string | null }>(
  db: Db,
  row: Row | undefined,
): Promise<(Row & OfTrunk) | undefined> {
  if (!row) return undefined
  const trunk =
    row.trunk_id === null
      ? undefined
      : await db.selectFrom('trunk').select('subaccount_id').where('id', '=', row.trunk_id).executeTakeFirst()
  return { ...row, trunk_subaccount_id: trunk?.subaccount_id ?? null }
}

const alert: Loader<'alert', AlertRow & OfTrunk> = {
  name: 'alert',
  load: async (db, { id, project_id }) => withTrunk(db, await findAlert(db, project_id, id)),
  subaccount_id: row => row.trunk_subaccount_id,
}

const containment: Loader<'containment', ContainmentRow & OfTrunk> = {
  name: 'containment',
  load: async (db, { id, project_id }) => withTrunk(db, await findContainment(db, project_id, id)),
  subaccount_id: row => row.trunk_subaccount_id,
}

const alertPolicy: Loader<'alert_policy', AlertPolicyRow> = {
  name: 'alert_policy',
  load: (db, { id, organization_id }) => findAlertPolicy(db, organization_id, id),
  revision,
  subaccount_id: ofTheProject,
}

const run: Loader<'run', TestRunRow> = {
  name: 'run',
  load: (db, { id, params }) => findTestRun(db, params['trunk_id'] ?? '', id),
}

/** What the parameters of a path mean: `{trunk_id}` gives `run` the trunk, or the caller a 404. */
export const LOADERS = {
  trunk_id: trunk,
  subtrunk_id: subtrunk,
  policy_id: policy,
  application_id: application,
  number_id: number,
  subaccount_id: subaccount,
  endpoint_id: endpoint,
  alert_id: alert,
  containment_id: containment,
  run_id: run,
} as const

/** Declares an endpoint of /v1. */
export const route = routesWith(LOADERS)

/** The same below /alerts, where a policy is an alert policy. */
export const alertRoute = routesWith({ policy_id: alertPolicy } as const)
