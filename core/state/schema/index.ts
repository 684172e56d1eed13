import type * as calls from './calls.ts'
import type * as configuration from './configuration.ts'

/** All tables. A table's columns are named as the specification names the fields. */
export interface Schema {
  organization: configuration.OrganizationTable
  project: configuration.ProjectTable
  member: configuration.MemberTable
  api_key: configuration.ApiKeyTable
  voice_account: configuration.VoiceAccountTable
  trunk: configuration.TrunkTable
  trunk_source: configuration.TrunkSourceTable
  digest_credential: configuration.DigestCredentialTable
  termination_target: configuration.TerminationTargetTable
  carrier: configuration.CarrierTable
  carrier_source: configuration.CarrierSourceTable
  carrier_target: configuration.CarrierTargetTable
  carrier_route: configuration.CarrierRouteTable
  voice_application: configuration.VoiceApplicationTable
  number: configuration.NumberTable
  configuration: configuration.ConfigurationTable
  node: configuration.NodeTable
  apply_report: configuration.ApplyReportTable
  idempotency: configuration.IdempotencyTable
  call: calls.CallTable
  cdr: calls.CdrTable
  call_attempt: calls.CallAttemptTable
  call_event: calls.CallEventTable
  call_command: calls.CallCommandTable
  recording: calls.RecordingTable
  outbox: calls.OutboxTable
}

export type * from './calls.ts'
export { FINAL_STATUSES } from './calls.ts'
export type * from './configuration.ts'
