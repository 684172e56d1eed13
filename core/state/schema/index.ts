import type * as alerts from './alerts.ts'
import type * as api from './api.ts'
import type * as calls from './calls.ts'
import type * as configuration from './configuration.ts'
import type * as control from './control.ts'
import type * as ladder from './ladder.ts'
import type * as metrics from './metrics.ts'
import type * as policies from './policies.ts'
import type * as rating from './rating.ts'
import type * as signaling from './signaling.ts'
import type * as trunkTests from './trunk-tests.ts'
import type * as voice from './voice.ts'

/** All tables. Columns have the field names of the specification. */
export interface Schema {
  organization: configuration.OrganizationTable
  project: configuration.ProjectTable
  member: configuration.MemberTable
  api_key: configuration.ApiKeyTable
  member_invitation: configuration.MemberInvitationTable
  password_reset: configuration.PasswordResetTable
  operator_key: configuration.OperatorKeyTable
  voice_account: configuration.VoiceAccountTable
  trunk: configuration.TrunkTable
  trunk_source: configuration.TrunkSourceTable
  digest_proof: configuration.DigestProofTable
  digest_credential: configuration.DigestCredentialTable
  termination_target: configuration.TerminationTargetTable
  carrier: configuration.CarrierTable
  carrier_source: configuration.CarrierSourceTable
  carrier_target: configuration.CarrierTargetTable
  carrier_route: configuration.CarrierRouteTable
  voice_application: configuration.VoiceApplicationTable
  number: configuration.NumberTable
  configuration: configuration.ConfigurationTable
  key_proof: configuration.KeyProofTable
  machine: configuration.MachineTable
  node: configuration.NodeTable
  store_clock: configuration.StoreClockTable
  task_lease: configuration.TaskLeaseTable
  nonce_claim: configuration.NonceClaimTable
  rate_bucket: configuration.RateBucketTable
  acme_certificate: configuration.AcmeCertificateTable
  acme_proof: configuration.AcmeProofTable
  acme_machine: configuration.AcmeMachineTable
  edge_link: configuration.EdgeLinkTable
  apply_report: configuration.ApplyReportTable
  idempotency: configuration.IdempotencyTable
  call: calls.CallTable
  cdr: calls.CdrTable
  call_attempt: calls.CallAttemptTable
  call_event: calls.CallEventTable
  call_command: calls.CallCommandTable
  recording: calls.RecordingTable
  outbox: calls.OutboxTable
  alert_policy: alerts.AlertPolicyTable
  alert: alerts.AlertTable
  alert_setting: alerts.AlertSettingTable
  alert_notification: alerts.AlertNotificationTable
  destination_profile: alerts.DestinationProfileTable
  trunk_source_seen: alerts.TrunkSourceSeenTable
  alert_cursor: alerts.AlertCursorTable
  trunk_test_run: trunkTests.TrunkTestRunTable
  trunk_test_check: trunkTests.TrunkTestCheckTable
  sip_message: ladder.SipMessageTable
  carrier_media_step: metrics.CarrierMediaStepTable
  call_step: metrics.CallStepTable
  call_step_failure: metrics.CallStepFailureTable
  load_step: metrics.LoadStepTable
  outbound_policy: policies.OutboundPolicyTable
  policy_rule: policies.PolicyRuleTable
  policy_attachment: policies.PolicyAttachmentTable
  subaccount: policies.SubaccountTable
  subtrunk: policies.SubtrunkTable
  number_block: policies.NumberBlockTable
  delegation: policies.DelegationTable
  project_ceiling: policies.ProjectCeilingTable
  trunk_setting: policies.TrunkSettingTable
  short_code: policies.ShortCodeTable
  containment: policies.ContainmentTable
  containment_release_request: policies.ContainmentReleaseRequestTable
  price_book: rating.PriceBookTable
  rate: rating.RateTable
  billing_account: rating.BillingAccountTable
  ledger: rating.LedgerTable
  lease: rating.LeaseTable
  level_use: rating.LevelUseTable
  reservation: rating.ReservationTable
  spend_day: rating.SpendDayTable
  spend_minute: rating.SpendMinuteTable
  refusal_day: rating.RefusalDayTable
  audit_event: control.AuditEventTable
  audit_head: control.AuditHeadTable
  webhook_endpoint: control.WebhookEndpointTable
  webhook_delivery: control.WebhookDeliveryTable
  console_session: control.ConsoleSessionTable
  member_security: control.MemberSecurityTable
  member_recovery_code: control.MemberRecoveryCodeTable
  recording_consent: control.RecordingConsentTable
  target_evidence: signaling.TargetEvidenceTable
  leg_figures: signaling.LegFiguresTable
  media_quality: signaling.MediaQualityTable
  registration: signaling.RegistrationTable
  sip_dialog: signaling.SipDialogTable
  carrier_credential: configuration.CarrierCredentialTable
  carrier_registration: signaling.CarrierRegistrationTable
  carrier_registration_state: signaling.CarrierRegistrationStateTable
  simulated_call: voice.SimulatedCallTable
  conference: voice.ConferenceTable
  conference_participant: voice.ConferenceParticipantTable
  call_queue: voice.CallQueueTable
  queue_member: voice.QueueMemberTable
  call_activity: voice.CallActivityTable
  voice_document: voice.VoiceDocumentTable
  voice_document_revision: voice.VoiceDocumentRevisionTable
  price_book_draft: rating.PriceBookDraftTable
  billing_document: api.BillingDocumentTable
  number_order: api.NumberOrderTable
  number_import: api.NumberImportTable
  number_import_line: api.NumberImportLineTable
  retention_job: api.RetentionJobTable
  call_export: api.CallExportTable
  told_event: api.ReportedEventTable
}

export type * from './alerts.ts'
export type * from './api.ts'
export type * from './calls.ts'
export { FINAL_STATUSES } from './calls.ts'
export type * from './configuration.ts'
export type * from './control.ts'
export type * from './ladder.ts'
export type * from './metrics.ts'
export type * from './policies.ts'
export type * from './rating.ts'
export type * from './signaling.ts'
export type * from './trunk-tests.ts'
export type * from './voice.ts'
