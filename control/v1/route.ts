import { type AlertPolicyRow, findAlertPolicy } from '../../core/state/alerts/alert-policies.ts'
import { findAlert } from '../../core/state/alerts/alerts.ts'
import { findContainment } from '../../core/state/alerts/containments.ts'
import { findProjectCall } from '../../core/state/calls/call-history.ts'
import { findProjectRecording, type RecordingRow } from '../../core/state/calls/calls.ts'
import {
  type ConferenceRow,
  findConference,
  findParticipant,
  type ParticipantRow,
} from '../../core/state/calls/conferences.ts'
import { findQueue } from '../../core/state/calls/queues.ts'
import { findNumber } from '../../core/state/configuration/numbers.ts'
import { findPolicy } from '../../core/state/configuration/policies.ts'
import { findSubtrunk, type SubtrunkRow } from '../../core/state/configuration/subtrunks.ts'
import type { LoadedTrunk } from '../../core/state/configuration/trunk-facts.ts'
import { findTestRun, type TestRunRow } from '../../core/state/configuration/trunk-tests.ts'
import { findApplication } from '../../core/state/configuration/voice-applications.ts'
import { findDocument } from '../../core/state/configuration/voice-documents.ts'
import { findEndpoint } from '../../core/state/delivery/webhook-endpoints.ts'
import type { Db } from '../../core/state/index.ts'
import { findSubaccount, type SubaccountRow } from '../../core/state/people/subaccounts.ts'
import { findVoiceAccount, type VoiceAccountRow } from '../../core/state/people/voice-accounts.ts'
import { exportLoader } from '../exports/routes.ts'
import { type Loader, routesWith } from '../http/route.ts'
import { loadTrunk } from './trunk-present.ts'

const revision = (row: { readonly revision: number }): number => row.revision
/** For resources of the whole project: a key that is restricted to a subaccount cannot access them. */
const ofTheProject = (): null => null

const trunk: Loader<'trunk', LoadedTrunk> = {
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

/** Returns the loader of a resource that is directly below the project and has revisions. */
const ofProject = <N extends string, Row extends { readonly revision: number }>(
  name: N,
  find: (db: Db, project_id: string, id: string) => Promise<Row | undefined>,
): Loader<N, Row> => ({
  name,
  load: (db, { id, project_id }) => find(db, project_id, id),
  revision,
  subaccount_id: ofTheProject,
})

const subaccount: Loader<'subaccount', SubaccountRow> = {
  ...ofProject('subaccount', findSubaccount),
  subaccount_id: row => row.id,
}

/** A resource with a trunk belongs to the trunk's subaccount. */
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

/** Returns the loader of a resource that may have a trunk. */
const ofTrunk = <N extends string, Row extends { readonly trunk_id: string | null }>(
  name: N,
  find: (db: Db, project_id: string, id: string) => Promise<Row | undefined>,
): Loader<N, Row & OfTrunk> => ({
  name,
  load: async (db, { id, project_id }) => withTrunk(db, await find(db, project_id, id)),
  subaccount_id: row => row.trunk_subaccount_id,
})

const alert = ofTrunk('alert', findAlert)
const containment = ofTrunk('containment', findContainment)
const call = ofTrunk('call', findProjectCall)

const recording: Loader<'recording', RecordingRow & OfTrunk> = {
  name: 'recording',
  async load(db, { id, project_id }) {
    const row = await findProjectRecording(db, project_id, id)
    const of = row && (await withTrunk(db, await findProjectCall(db, project_id, row.call_sid)))
    return row && { ...row, trunk_subaccount_id: of?.trunk_subaccount_id ?? null }
  },
  subaccount_id: row => row.trunk_subaccount_id,
}

const conference: Loader<'conference', ConferenceRow> = {
  name: 'conference',
  load: (db, { id, project_id }) => findConference(db, project_id, id),
  subaccount_id: ofTheProject,
}

const participant: Loader<'participant', ParticipantRow> = {
  name: 'participant',
  load: (db, { id, params }) => findParticipant(db, params['conference_id'] ?? '', id),
  revision,
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

/** The project's voice account. No path names it, because a project has one. */
const account: Loader<'account', VoiceAccountRow> = {
  name: 'account',
  load: (db, { project_id }) => findVoiceAccount(db, project_id),
  revision,
  subaccount_id: ofTheProject,
}

/** The loader of each path parameter: `{trunk_id}` passes the trunk to `run`, or answers 404. */
const LOADERS = {
  trunk_id: trunk,
  subtrunk_id: subtrunk,
  policy_id: ofProject('policy', findPolicy),
  application_id: ofProject('application', findApplication),
  number_id: ofProject('number', findNumber),
  subaccount_id: subaccount,
  endpoint_id: ofProject('endpoint', findEndpoint),
  alert_id: alert,
  containment_id: containment,
  call_id: call,
  recording_id: recording,
  export_id: exportLoader('project'),
  conference_id: conference,
  participant_id: participant,
  queue_id: ofProject('queue', findQueue),
  voice_document_id: ofProject('voice_document', findDocument),
  run_id: run,
  voice_account: account,
} as const

/** Declares an endpoint of /v1. */
export const route = routesWith(LOADERS)

/** Declares an endpoint below /alerts, where `{policy_id}` is an alert policy. */
export const alertRoute = routesWith({ policy_id: alertPolicy } as const)
