// Made by `npm run documents` from the schemas that the console names; do not edit.
// biome-ignore-all format: made by a program

export interface AcceptedInvitation {
  readonly email: string
}

export interface AdmissionDryRun {
  readonly admitted: boolean
  readonly reason: string | null
  readonly sentence: string | null
  readonly called: string | null
  readonly caller: string | null
  readonly max_duration_seconds: number | null
  readonly reserve_minor: number | null
  readonly price: DryRunPrice | null
  readonly trace: readonly (Readonly<Record<string, unknown>>)[]
}

export interface Alert {
  readonly acknowledged_at: string | null
  readonly acknowledged_by: string | null
  readonly channels: readonly ('email' | 'webhook' | 'in_app' | 'sms')[]
  readonly containment_id: string | null
  readonly dedupe_key: string
  readonly evidence: readonly AlertEvidence[]
  readonly fired_at: string
  readonly id: string
  readonly kind: 'balance_low'
    | 'spend_daily'
    | 'spend_monthly'
    | 'spend_velocity'
    | 'first_seen_high_cost_destination'
    | 'new_source_ip'
    | 'endpoint_health'
    | 'trunk_apply_failed'
  readonly policy_id: string | null
  readonly policy_revision: number | null
  readonly reason: string
  readonly remediation: string
  readonly resolved_at: string | null
  readonly severity: 'critical' | 'warning' | 'info'
  readonly source_state: 'measured' | 'data_unavailable'
  readonly state: 'firing' | 'acknowledged' | 'resolved'
  readonly subject: AlertSubject
  readonly suggested_actions: readonly SuggestedAction[]
  readonly trunk_id: string | null
}

export interface AlertEvidence {
  readonly amount_minor: number | null
  readonly currency: string | null
  readonly held: boolean
  readonly label: string
  readonly note: string | null
  readonly text: string | null
}

export interface AlertOverview {
  readonly alerts: readonly Alert[]
  readonly as_of: string
  readonly containments: readonly Containment[]
}

export interface AlertPolicy {
  readonly channels: readonly ('email' | 'webhook' | 'in_app' | 'sms')[]
  readonly enabled: boolean
  readonly id: string
  readonly kind: 'balance_low'
    | 'spend_daily'
    | 'spend_monthly'
    | 'spend_velocity'
    | 'first_seen_high_cost_destination'
    | 'new_source_ip'
    | 'endpoint_health'
    | 'trunk_apply_failed'
  readonly platform_ceiling_minor: number | null
  readonly platform_ceiling_window_seconds: number | null
  readonly resolution: AlertResolution
  readonly revision: number
  readonly scope: AlertScope
  readonly threshold: AlertThreshold
  readonly updated_at: string
  readonly updated_by: string
}

export interface AlertResolution {
  readonly amount_minor: number | null
  readonly count: number | null
  readonly currency: string | null
  readonly for_seconds: number | null
  readonly percent: string | null
  readonly rule: 'below_threshold'
    | 'day_rollover'
    | 'month_rollover'
    | 'acknowledged_or_24h'
    | 'consecutive_successes'
    | 'later_revision'
}

export interface AlertScope {
  readonly id: string | null
  readonly label: string
  readonly type: 'account' | 'organization' | 'trunk' | 'subaccount' | 'webhook_endpoint'
}

export interface AlertSubject {
  readonly id: string
  readonly name: string
  readonly type: 'account' | 'organization' | 'trunk' | 'subaccount' | 'webhook_endpoint'
}

export interface AlertThreshold {
  readonly amount_minor: number | null
  readonly currency: string | null
  readonly min_events: number | null
  readonly percent: string | null
  readonly window_seconds: number | null
}

export interface AllowedDestination {
  readonly increment_additional_seconds: number
  readonly increment_initial_seconds: number
  readonly kind: 'country' | 'prefix'
  readonly label: string
  readonly match: string
  readonly rate_minor: number | null
  readonly rate_unit: 'minute' | 'second'
}

export interface ApiKey {
  readonly id: string
  readonly project_id: string
  readonly public_id: string
  readonly name: string
  readonly role: 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'
  readonly scopes: readonly ('organization:read'
    | 'call_history:read'
    | 'live_calls:read'
    | 'call_diagnostics:read'
    | 'service_configuration:read'
    | 'service_configuration:write'
    | 'numbers:manage'
    | 'numbers:order'
    | 'billing:read'
    | 'recordings:manage'
    | 'developers:manage'
    | 'tests:manage'
    | 'subaccounts:read'
    | 'subaccounts:write'
    | 'audit:read')[]
  readonly subaccount_id: string | null
  readonly state: 'active' | 'retiring' | 'stopped' | 'expired' | 'revoked'
  readonly expires_at: string | null
  readonly retires_at: string | null
  readonly rotated_from_id: string | null
  readonly revoked_at: string | null
  readonly last_used_at: string | null
  readonly created_at: string
}

export interface ApiKeyCreation {
  readonly key: ApiKey
  readonly api_key: string | null
}

export interface Apply {
  readonly state: 'applying' | 'applied' | 'failed'
  readonly desired_revision: number
  readonly effective_revision: number
  readonly applied_at: string | null
  readonly error: string | null
}

export interface AttachedPolicy {
  readonly id: string
  readonly name: string
  readonly revision: number
}

export interface AttachmentLimits {
  readonly concurrency: number | null
  readonly max_destination_rate_minor: number | null
}

export interface AuditActor {
  readonly detail: string | null
  readonly name: string
  readonly type: 'user' | 'api_key' | 'operator' | 'system'
}

export interface AuditEvent {
  readonly action: string
  readonly actor: AuditActor
  readonly applied: boolean
  readonly at: string
  readonly category: 'configuration' | 'security' | 'operator'
  readonly detail: string | null
  readonly effective_revision: number | null
  readonly from_revision: number | null
  readonly id: string
  readonly kind: 'trunks' | 'numbers' | 'credentials' | 'seats' | 'alerts'
  readonly request_id: string | null
  readonly resource: AuditResource
  readonly summary: string
  readonly ticket_ref: string | null
  readonly to_revision: number | null
}

export interface AuditEventDetail {
  readonly changes: readonly FieldChange[]
  readonly event: AuditEvent
  readonly notes: readonly string[]
  readonly supersedes_at: string | null
  readonly timeline: readonly TimelineEntry[]
}

export interface AuditPage {
  readonly as_of: string
  readonly data: readonly AuditEvent[]
  readonly next_cursor: string | null
  readonly previous_cursor: string | null
  readonly retention_days: number
  readonly total: number
  readonly total_all: number
}

export interface AuditResource {
  readonly href: string | null
  readonly id: string
  readonly name: string
  readonly type: string
}

export interface AuthToken {
  readonly account: VoiceAccount
  readonly auth_token: string
}

export interface Balance {
  readonly as_of: string
  readonly available_minor: number | null
  readonly balance_minor: number
  readonly billing_account_id: string
  readonly credit_minor: number
  readonly currency: 'NGN'
  readonly held_minor: number
  readonly prepaid: boolean
}

export interface BillingDocument {
  readonly charges_minor: number
  readonly currency: 'NGN'
  readonly from: string
  readonly id: string
  readonly issued_at: string | null
  readonly kind: 'statement' | 'invoice'
  readonly csv_href: string
  readonly pdf_href: string
  readonly period: string
  readonly status: 'open' | 'issued'
  readonly to: string
}

export interface BusiestDay {
  readonly date: string
  readonly settled_spend_minor: number
}

export interface CallAttempt {
  readonly sequence: number
  readonly target: string
  readonly sip_call_id: string | null
  readonly address: string | null
  readonly transport: string
  readonly started_at: string
  readonly provisional_at: string | null
  readonly ended_at: string | null
  readonly sip_code: number | null
  readonly result: 'answered' | 'refused' | 'failed' | 'canceled' | 'no_answer' | null
  readonly reason: string | null
}

export interface CallDecision {
  readonly attempts: readonly CallAttempt[]
  readonly decision: Readonly<Record<string, unknown>> | null
  readonly price: Readonly<Record<string, unknown>> | null
  readonly words: readonly string[]
}

export interface CallDetail {
  readonly id: string
  readonly account_sid: string | null
  readonly application_id: string | null
  readonly direction: 'inbound' | 'outbound-api' | 'outbound-dial' | 'outbound'
  readonly duration_seconds: number | null
  readonly ended_at: string | null
  readonly ended_by: 'caller' | 'called' | 'platform' | 'api' | null
  readonly from: string
  readonly number_id: string | null
  readonly origin: 'carrier' | 'trunk' | 'client' | 'rest' | 'dial' | 'test'
  readonly parent_call_id: string | null
  readonly queued_at: string
  readonly reason: string | null
  readonly sip_code: number | null
  readonly start_time: string | null
  readonly status: 'queued' | 'ringing' | 'in-progress' | 'completed' | 'busy' | 'no-answer' | 'canceled' | 'failed'
  readonly to: string
  readonly trunk_id: string | null
  readonly attempts: readonly CallAttempt[]
  readonly carrier_id: string | null
  readonly diverters: readonly CallDiverter[]
  readonly events: readonly CallEvent[]
  readonly first_diverter: string | null
  readonly initiated_at: string | null
  readonly last_diverter: string | null
  readonly media: CallFigures | null
  readonly price: CallPrice | null
  readonly price_explanation: readonly string[] | null
  readonly record: CallRecord | null
  readonly recordings: readonly Recording[]
  readonly ringing_at: string | null
  readonly sip_call_id: string | null
}

export interface CallDiverter {
  readonly counter: number
  readonly number: string
  readonly private: boolean
  readonly reason: string
}

export interface CallEvent {
  readonly at: string
  readonly detail: Readonly<Record<string, unknown>>
  readonly kind: 'http' | 'warning' | 'error' | 'state' | 'script'
  readonly number: number | null
}

export interface CallExport {
  readonly id: string
  readonly state: 'queued' | 'running' | 'completed' | 'failed'
  readonly format: 'csv' | 'jsonl'
  readonly filter: Readonly<Record<string, string>>
  readonly progress_percent: number
  readonly rows: number
  readonly bytes: number
  readonly error: string | null
  readonly begun_by: string
  readonly created_at: string
  readonly finished_at: string | null
  readonly expires_at: string | null
}

export interface CallFault {
  readonly id: string
  readonly at: string
  readonly call_id: string
  readonly from: string
  readonly to: string
  readonly kind: 'document' | 'request' | 'refusal'
  readonly number: number | null
  readonly reason: string | null
  readonly request: Readonly<Record<string, unknown>> | null
  readonly response: Readonly<Record<string, unknown>> | null
  readonly sentence: string
  readonly sip_code: number | null
}

export interface CallFigures {
  readonly legs: readonly LegFigures[]
  readonly totals: MediaTotals
}

export interface CallLadder {
  readonly messages: readonly SipMessage[]
  readonly retention_days: number
  readonly text: string
  readonly unavailable: string | null
}

export interface CallMedia {
  readonly legs: readonly LegQuality[]
  readonly totals: MediaTotals
  readonly unavailable_reason: string | null
}

export interface CallPrice {
  readonly amount_minor: number
  readonly billed_seconds: number
  readonly currency: string
  readonly direction: 'outbound' | 'inbound'
  readonly sentence: string
}

export interface CallRecord {
  readonly duration_seconds: number
  readonly ended_at: string
  readonly media: Readonly<Record<string, unknown>> | null
  readonly pdd_ms: number | null
  readonly started_at: string
}

export interface CallSeries {
  readonly as_of: string
  readonly ceilings: SeriesCeilings
  readonly failures: readonly FailedCalls[]
  readonly now: SeriesNow
  readonly series: readonly CallSeriesStep[]
  readonly step_seconds: number
  readonly subject: SeriesSubject
  readonly total: CallSeriesTotal
  readonly window_hours: number
}

export interface CallSeriesStep {
  readonly acd_seconds: number | null
  readonly answered: number
  readonly attempts: number
  readonly mos: number | null
  readonly pdd_p95_ms: number | null
  readonly at: string
  readonly concurrent_calls_max: number
  readonly failures: readonly FailedCalls[]
}

export interface CallSeriesTotal {
  readonly acd_seconds: number | null
  readonly answered: number
  readonly attempts: number
  readonly mos: number | null
  readonly pdd_p95_ms: number | null
}

export interface CallSummary {
  readonly id: string
  readonly account_sid: string | null
  readonly application_id: string | null
  readonly direction: 'inbound' | 'outbound-api' | 'outbound-dial' | 'outbound'
  readonly duration_seconds: number | null
  readonly ended_at: string | null
  readonly ended_by: 'caller' | 'called' | 'platform' | 'api' | null
  readonly from: string
  readonly number_id: string | null
  readonly origin: 'carrier' | 'trunk' | 'client' | 'rest' | 'dial' | 'test'
  readonly parent_call_id: string | null
  readonly queued_at: string
  readonly reason: string | null
  readonly sip_code: number | null
  readonly start_time: string | null
  readonly status: 'queued' | 'ringing' | 'in-progress' | 'completed' | 'busy' | 'no-answer' | 'canceled' | 'failed'
  readonly to: string
  readonly trunk_id: string | null
}

export interface CallingWindow {
  readonly days: readonly ('monday' | 'tuesday' | 'wednesday' | 'thursday' | 'friday' | 'saturday' | 'sunday')[]
  readonly from: string
  readonly to: string
}

export interface CarrierRequest {
  readonly name: string
  readonly enabled?: boolean
  readonly codecs?: readonly ('PCMA' | 'PCMU' | 'G722' | 'G729' | 'OPUS')[]
  readonly redirects?: 'off' | 'same_host' | 'listed'
  readonly sources: readonly string[]
  readonly confirm_wide_sources?: boolean
  readonly targets: readonly CarrierTargetRequest[]
  readonly routes: readonly CarrierRouteRequest[]
}

export interface CarrierRouteRequest {
  readonly prefix: string
  readonly priority?: number
  readonly cost_minor?: number
}

export interface CarrierTargetRequest {
  readonly sip_uri: string
  readonly transport?: 'udp' | 'tcp' | 'tls'
  readonly priority?: number
  readonly weight?: number
  readonly tls_verification?: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint?: string
}

export interface ClientToken {
  readonly allowed: readonly ('in' | 'out')[]
  readonly caller: string | null
  readonly domain: string
  readonly expires_at: string
  readonly identity: string
  readonly password: string | null
  readonly sip_uri: string
  readonly username: string
  readonly ws_port: number
}

export interface Conference {
  readonly id: string
  readonly name: string
  readonly status: 'init' | 'in-progress' | 'completed'
  readonly created_at: string
  readonly started_at: string | null
  readonly ended_at: string | null
  readonly reason_ended: string | null
  readonly call_id_ending: string | null
}

export interface ConferenceParticipant {
  readonly id: string
  readonly conference_id: string
  readonly label: string | null
  readonly from: string
  readonly to: string
  readonly status: 'queued' | 'ringing' | 'connected' | 'complete' | 'failed'
  readonly muted: boolean
  readonly hold: boolean
  readonly speaking: boolean
  readonly coached_call_id: string | null
  readonly start_on_enter: boolean
  readonly end_on_exit: boolean
  readonly created_at: string
  readonly joined_at: string | null
  readonly revision: number
}

export interface ConsoleSession {
  readonly csrf_token: string
  readonly member: SignedInMember
  readonly organization: SignedInOrganization
  readonly projects: readonly SignedInProject[]
}

export interface Containment {
  readonly case_ref: string
  readonly expires_at: string
  readonly id: string
  readonly notified_at: string | null
  readonly notified_event: string | null
  readonly prefix: string
  readonly reason_category: 'spend_velocity' | 'destination_risk' | 'account_compromise'
  readonly reason_detail: string
  readonly rejection_code: 'DESTINATION_CONTAINED'
  readonly rejection_count: number
  readonly release_request: ContainmentReleaseRequest | null
  readonly released_at: string | null
  readonly released_by: string | null
  readonly source_alert_id: string | null
  readonly starts_at: string
  readonly trunk_id: string | null
  readonly trunk_name: string | null
}

export interface ContainmentReleaseRequest {
  readonly decision_at: string | null
  readonly decision_by: string | null
  readonly decision_reason: string | null
  readonly id: string
  readonly note: string
  readonly requested_at: string
  readonly requested_by: string
  readonly state: 'pending' | 'approved' | 'rejected'
}

export interface CountPair {
  readonly child: number
  readonly parent: number
}

export interface CreatedOrganization {
  readonly organization: OperatorOrganization
  readonly project: OperatorProject
  readonly invitation: OperatorInvitationCreation
}

export interface DailySpendCeiling {
  readonly configured_minor: number | null
  readonly currency: 'NGN'
  readonly resets_at: string
  readonly used_today_minor: number
}

export interface DelegatedNumbers {
  readonly count: number
  readonly to: string | null
}

export interface Delegation {
  readonly id: string
  readonly block_id: string
  readonly start: string
  readonly end: string
  readonly size: number
  readonly status: 'pending' | 'applying' | 'applied' | 'failed' | 'detaching'
  readonly assigned_at: string
  readonly assigned_by: string
}

export interface DeniedDestination {
  readonly case_ref: string | null
  readonly label: string
  readonly match: string
  readonly source: 'customer' | 'containment'
}

export interface DestinationCountry {
  readonly calling_code: string
  readonly continent: 'africa' | 'americas' | 'asia' | 'europe' | 'oceania'
  readonly iso_code: string
  readonly name: string
  readonly shared_code: boolean
}

export interface DestinationPair {
  readonly child: readonly string[]
  readonly parent: readonly string[]
}

export interface DestinationSummary {
  readonly allowed_countries: readonly string[]
  readonly allowed_prefixes: number
  readonly denied_prefixes: number
}

export interface DigestCredential {
  readonly id: string
  readonly realm: string
  readonly username: string
  readonly enabled: boolean
  readonly created_at: string
  readonly new_applied_at: string | null
  readonly previous_retires_at: string | null
  readonly revoked_at: string | null
  readonly rotated_from_id: string | null
  readonly valid_until: string | null
}

export interface DigestCredentialSecret {
  readonly id: string
  readonly realm: string
  readonly username: string
  readonly enabled: boolean
  readonly created_at: string
  readonly new_applied_at: string | null
  readonly previous_retires_at: string | null
  readonly revoked_at: string | null
  readonly rotated_from_id: string | null
  readonly valid_until: string | null
  readonly password: string | null
  readonly secret_unavailable: boolean
}

export interface DigestIdentity {
  readonly enabled: boolean
  readonly realm: string
  readonly username: string
}

export interface DryRunPrice {
  readonly price_book_id: string
  readonly match: string
  readonly label: string
  readonly rate_minor: number
  readonly rate_unit: 'minute' | 'second'
  readonly increment_initial_seconds: number
  readonly increment_additional_seconds: number
  readonly currency: string
}

export interface EndpointEvidence {
  readonly detail: string
  readonly last_attempt_at: string | null
  readonly last_result: EndpointResult | null
  readonly priority: number
  readonly sip_uri: string
  readonly state: 'unknown' | 'idle' | 'healthy' | 'degraded'
}

export interface EndpointResult {
  readonly at: string
  readonly code: string
}

export interface EndpointSummary {
  readonly count: number
  readonly silent: number
  readonly state: 'none' | 'idle'
}

export interface FailedCalls {
  readonly calls: number
  readonly reason: string
}

export interface FieldChange {
  readonly after: string | null
  readonly before: string | null
  readonly label: string
  readonly redacted: boolean
  readonly unchanged: boolean
}

export interface GoLiveChecklist {
  readonly open: readonly ('carrier' | 'price_book' | 'number' | 'balance')[]
  readonly carriers: number
  readonly price_books: number
  readonly numbers: number
  readonly available_minor: number | null
}

export interface IpCredential {
  readonly id: string
  readonly cidr: string
  readonly enabled: boolean
  readonly selector_precedence: number
  readonly standing: 'full' | 'name_only' | 'pending_approval'
  readonly created_at: string
}

export interface LegCodec {
  readonly codec: string
  readonly from: string
}

export interface LegFigures {
  readonly answered_at: string | null
  readonly codec: string | null
  readonly codecs: readonly LegCodec[]
  readonly complete: boolean
  readonly ended_at: string
  readonly jitter_max_ms: number | null
  readonly jitter_ms: number | null
  readonly leg_id: string
  readonly mos: number | null
  readonly octets_received: number
  readonly octets_sent: number
  readonly packets_discarded: number
  readonly packets_late: number
  readonly packets_lost: number
  readonly packets_received: number
  readonly packets_sent: number
  readonly packets_unsent: number
  readonly remote_address: string | null
  readonly remote_jitter_ms: number | null
  readonly remote_mos: number | null
  readonly remote_packets_lost: number | null
  readonly remote_port: number | null
  readonly rtt_ms: number | null
  readonly seconds_without_media: number
  readonly secured: boolean
  readonly side: 'caller' | 'called' | 'application'
  readonly signalled_address: string | null
  readonly signalled_port: number | null
  readonly strangers_dropped: number
}

export interface LegQuality {
  readonly figures: LegFigures | null
  readonly leg_id: string
  readonly samples: readonly QualitySample[]
  readonly samples_kept: number
}

export interface ListedCall {
  readonly id: string
  readonly account_sid: string | null
  readonly application_id: string | null
  readonly direction: 'inbound' | 'outbound-api' | 'outbound-dial' | 'outbound'
  readonly duration_seconds: number | null
  readonly ended_at: string | null
  readonly ended_by: 'caller' | 'called' | 'platform' | 'api' | null
  readonly from: string
  readonly number_id: string | null
  readonly origin: 'carrier' | 'trunk' | 'client' | 'rest' | 'dial' | 'test'
  readonly parent_call_id: string | null
  readonly queued_at: string
  readonly reason: string | null
  readonly sip_code: number | null
  readonly start_time: string | null
  readonly status: 'queued' | 'ringing' | 'in-progress' | 'completed' | 'busy' | 'no-answer' | 'canceled' | 'failed'
  readonly to: string
  readonly trunk_id: string | null
  readonly codec: string | null
  readonly mos: number | null
  readonly price_minor: number | null
  readonly trunk_name: string | null
}

export interface Listening {
  readonly id: string
  readonly call_id: string
  readonly notice: 'tone' | 'spoken'
  readonly websocket_path: string
}

export interface LookupContainment {
  readonly case_ref: string
  readonly prefix: string
  readonly expires_at: string
}

export interface MarkupAdvice {
  readonly column: number
  readonly detail: string
  readonly level: 'error' | 'warning'
  readonly line: number
  readonly number: number | null
  readonly rule: string
  readonly suggestion: string | null
}

export interface MarkupCheck {
  readonly advice: readonly MarkupAdvice[]
  readonly ok: boolean
}

export interface MediaDiagnostics {
  readonly as_of: string
  readonly jitter_ms: number | null
  readonly mos: number | null
  readonly no_media_calls: number
  readonly one_way_calls: number
  readonly packet_loss_pct: string | null
  readonly transcoded_calls: number
  readonly unavailable_reason: string | null
  readonly window_hours: number
}

export interface MediaTotals {
  readonly octets_received: number
  readonly octets_sent: number
  readonly packets_discarded: number
  readonly packets_late: number
  readonly packets_lost: number
  readonly packets_received: number
  readonly packets_sent: number
  readonly packets_unsent: number
}

export interface Member {
  readonly id: string
  readonly email: string
  readonly role: 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'
  readonly operator: boolean
  readonly created_at: string
}

export interface MoneyCeiling {
  readonly configured_minor: number | null
  readonly currency: 'NGN'
}

export interface MoneyPair {
  readonly child_minor: number | null
  readonly parent_minor: number | null
}

export interface NodeHealth {
  readonly heartbeat_at: string
  readonly id: string
  readonly kind: string
  readonly state: 'up' | 'draining' | 'lost'
}

export interface NumberBlock {
  readonly id: string
  readonly start: string
  readonly end: string
  readonly size: number
  readonly created_at: string
  readonly consumers: readonly NumberBlockConsumer[]
  readonly delegations: readonly NumberBlockDelegation[]
}

export interface NumberBlockConsumer {
  readonly count: number
  readonly id: string
  readonly name: string
  readonly type: 'trunk' | 'subtrunk' | 'voice_application'
}

export interface NumberBlockDelegation {
  readonly id: string
  readonly subtrunk_id: string
  readonly start: string
  readonly end: string
  readonly size: number
}

export interface NumberInventory {
  readonly delegated: DelegatedNumbers
  readonly quarantined: QuarantinedNumbers
  readonly range: string | null
  readonly routed: number
}

export interface NumberOrder {
  readonly id: string
  readonly status: 'completed'
  readonly currency: 'NGN'
  readonly created_at: string
  readonly ordered: readonly string[]
  readonly numbers: readonly PhoneNumber[]
}

export interface NumberRoute {
  readonly kind: 'voice_application' | 'trunk' | 'subtrunk'
  readonly id: string
  readonly name: string
}

export interface NumberRouteSlice {
  readonly number_id: string
  readonly e164: string
  readonly routed_at: string
}

export interface OperatorAlert {
  readonly acknowledged_at: string | null
  readonly acknowledged_by: string | null
  readonly channels: readonly ('email' | 'webhook' | 'in_app' | 'sms')[]
  readonly containment_id: string | null
  readonly dedupe_key: string
  readonly evidence: readonly AlertEvidence[]
  readonly fired_at: string
  readonly id: string
  readonly kind: 'balance_low'
    | 'spend_daily'
    | 'spend_monthly'
    | 'spend_velocity'
    | 'first_seen_high_cost_destination'
    | 'new_source_ip'
    | 'endpoint_health'
    | 'trunk_apply_failed'
  readonly policy_id: string | null
  readonly policy_revision: number | null
  readonly reason: string
  readonly remediation: string
  readonly resolved_at: string | null
  readonly severity: 'critical' | 'warning' | 'info'
  readonly source_state: 'measured' | 'data_unavailable'
  readonly state: 'firing' | 'acknowledged' | 'resolved'
  readonly subject: AlertSubject
  readonly suggested_actions: readonly SuggestedAction[]
  readonly trunk_id: string | null
  readonly organization_id: string
  readonly project_id: string
  readonly project_name: string
}

export interface OperatorBalance {
  readonly project_id: string
  readonly currency: 'NGN'
  readonly payment: 'prepaid' | 'postpaid'
  readonly balance_minor: number
  readonly held_minor: number
  readonly credit_limit_minor: number
  readonly available_minor: number | null
}

export interface OperatorCarrier {
  readonly id: string
  readonly name: string
  readonly enabled: boolean
  readonly state: 'active' | 'draining' | 'drained'
  readonly live_calls: number
  readonly sandbox: boolean
  readonly codecs: readonly ('PCMA' | 'PCMU' | 'G722' | 'G729' | 'OPUS')[]
  readonly redirects: 'off' | 'same_host' | 'listed'
  readonly digest_username: string | null
  readonly sources: readonly string[]
  readonly targets: readonly OperatorCarrierTarget[]
  readonly routes: readonly OperatorCarrierRoute[]
  readonly registration: OperatorCarrierRegistration | null
  readonly revision: number
  readonly created_at: string
}

export interface OperatorCarrierDay {
  readonly day: string
  readonly attempts: number
  readonly answered: number
  readonly asr_pct: number | null
  readonly acd_seconds: number | null
  readonly pdd_ms: number | null
  readonly answered_seconds: number
  readonly charge_minor: number | null
  readonly cost_minor: number | null
  readonly margin_minor: number | null
  readonly media: OperatorCarrierMedia | null
}

export interface OperatorCarrierMedia {
  readonly legs: number
  readonly packets_received: number
  readonly packets_sent: number
  readonly octets_received: number
  readonly octets_sent: number
  readonly packets_lost: number
  readonly packets_late: number
  readonly packets_discarded: number
  readonly packets_unsent: number
  readonly jitter_ms: number | null
  readonly mos: number | null
}

export interface OperatorCarrierMetrics {
  readonly carrier_id: string
  readonly currency: 'NGN'
  readonly from: string
  readonly to: string
  readonly days: readonly OperatorCarrierDay[]
  readonly total: OperatorCarrierTotal
}

export interface OperatorCarrierRegistration {
  readonly registrar: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly username: string
  readonly contact_user: string
  readonly expires_seconds: number
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint: string | null
  readonly state: 'untried' | 'registering' | 'registered' | 'failed' | 'unregistered'
  readonly detail: string | null
  readonly expires_at: string | null
  readonly next_try_at: string | null
}

export interface OperatorCarrierRoute {
  readonly prefix: string
  readonly priority: number
  readonly cost_minor: number
}

export interface OperatorCarrierTarget {
  readonly id: string
  readonly sip_uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly priority: number
  readonly weight: number
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint: string | null
}

export interface OperatorCarrierTotal {
  readonly attempts: number
  readonly answered: number
  readonly asr_pct: number | null
  readonly acd_seconds: number | null
  readonly pdd_ms: number | null
  readonly answered_seconds: number
  readonly charge_minor: number | null
  readonly cost_minor: number | null
  readonly margin_minor: number | null
  readonly media: OperatorCarrierMedia | null
}

export interface OperatorContainment {
  readonly case_ref: string
  readonly expires_at: string
  readonly id: string
  readonly notified_at: string | null
  readonly notified_event: string | null
  readonly prefix: string
  readonly reason_category: 'spend_velocity' | 'destination_risk' | 'account_compromise'
  readonly reason_detail: string
  readonly rejection_code: 'DESTINATION_CONTAINED'
  readonly rejection_count: number
  readonly release_request: ContainmentReleaseRequest | null
  readonly released_at: string | null
  readonly released_by: string | null
  readonly source_alert_id: string | null
  readonly starts_at: string
  readonly trunk_id: string | null
  readonly trunk_name: string | null
  readonly project_id: string
  readonly project_name: string
}

export interface OperatorInvitation {
  readonly id: string
  readonly email: string
  readonly role: 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'
  readonly created_at: string
  readonly expires_at: string
}

export interface OperatorInvitationCreation {
  readonly invitation: OperatorInvitation
  readonly url: string | null
}

export interface OperatorLedgerLine {
  readonly position: number
  readonly at: string
  readonly kind: 'charge' | 'number' | 'top_up' | 'adjustment'
  readonly amount_minor: number
  readonly balance_after_minor: number
  readonly call_sid: string | null
  readonly reason: string | null
  readonly reference: string | null
}

export interface OperatorLimitedSource {
  readonly id: string
  readonly cidr: string
  readonly standing: 'full' | 'name_only' | 'pending_approval'
  readonly created_at: string
  readonly trunk_id: string
  readonly trunk_name: string
  readonly project_id: string
  readonly subaccount_id: string | null
  readonly overlaps: readonly OperatorSourceOverlap[]
  readonly carrier: OperatorOverrulingCarrier | null
}

export interface OperatorMachine {
  readonly id: string
  readonly host: string
  readonly base_url: string
  readonly sip_port: number
  readonly roles: readonly ('edge' | 'signaling' | 'media' | 'control')[]
  readonly version: string
  readonly state: 'running' | 'draining' | 'impaired' | 'cut_off' | 'down'
  readonly here: boolean
  readonly processes: readonly string[]
  readonly live_calls: number
  readonly configuration_behind: number
  readonly other_settings: readonly string[]
  readonly started_at: string
  readonly seen_at: string
}

export interface OperatorMargin {
  readonly key: string | null
  readonly calls: number
  readonly charge_minor: number
  readonly cost_minor: number
  readonly margin_minor: number
}

export interface OperatorMarginTotal {
  readonly calls: number
  readonly charge_minor: number
  readonly cost_minor: number
  readonly margin_minor: number
}

export interface OperatorMargins {
  readonly currency: 'NGN'
  readonly from: string
  readonly to: string
  readonly group_by: 'day' | 'carrier' | 'project' | 'destination' | 'call'
  readonly data: readonly OperatorMargin[]
  readonly total: OperatorMarginTotal
}

export interface OperatorMember {
  readonly id: string
  readonly organization_id: string
  readonly email: string
  readonly role: 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'
  readonly operator: boolean
  readonly second_factor: boolean
  readonly locked_at: string | null
  readonly created_at: string
}

export interface OperatorNode {
  readonly id: string
  readonly kind: 'signaling' | 'media' | 'edge' | 'control'
  readonly machine_id: string
  readonly alive: boolean
  readonly live_calls: number
  readonly started_at: string
  readonly heartbeat_at: string
  readonly draining_at: string | null
}

export interface OperatorNumber {
  readonly id: string
  readonly e164: string
  readonly status: 'available' | 'held' | 'quarantined'
  readonly project_id: string | null
  readonly quarantined_until: string | null
  readonly monthly_minor: number
  readonly offered_to: 'all' | 'project' | 'nobody'
  readonly offered_project_id: string | null
  readonly revision: number
  readonly created_at: string
  readonly updated_at: string
}

export interface OperatorOrganization {
  readonly id: string
  readonly name: string
  readonly time_zone: string
  readonly contact_email: string | null
  readonly status: 'active' | 'suspended'
  readonly revision: number
  readonly created_at: string
}

export interface OperatorOverrulingCarrier {
  readonly cidr: string
  readonly name: string
}

export interface OperatorPasswordReset {
  readonly member_id: string
  readonly email: string
  readonly expires_at: string
  readonly url: string | null
}

export interface OperatorPortRange {
  readonly first: number
  readonly last: number
}

export interface OperatorPriceBook {
  readonly project_id: string | null
  readonly id: string
  readonly name: string
  readonly direction: 'outbound' | 'inbound'
  readonly currency: 'NGN'
  readonly effective_from: string
  readonly revision: number
  readonly rates: number
  readonly created_at: string
}

export interface OperatorPriceDifference {
  readonly against: OperatorPriceBook | null
  readonly added: number
  readonly changed: number
  readonly ended: number
  readonly same: number
  readonly lines: readonly string[]
  readonly leaps: readonly string[]
}

export interface OperatorProject {
  readonly id: string
  readonly organization_id: string
  readonly name: string
  readonly status: 'active' | 'disabled'
  readonly sandbox: boolean
  readonly currency: 'NGN'
  readonly payment: 'prepaid' | 'postpaid'
  readonly credit_limit_minor: number
  readonly ceilings: OperatorProjectCeilings
  readonly risk: OperatorProjectRisk
  readonly revision: number
  readonly created_at: string
}

export interface OperatorProjectCeilings {
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_cap_minor: number | null
  readonly velocity_cap_minor: number | null
  readonly max_call_duration_seconds: number | null
  readonly max_destination_rate_minor: number | null
}

export interface OperatorProjectRisk {
  readonly open: readonly ('satellite'
    | 'international-networks'
    | 'international-premium'
    | 'north-american-premium'
    | 'cuba'
    | 'latvia'
    | 'national-premium'
    | 'caribbean')[]
  readonly closed: readonly ('satellite'
    | 'international-networks'
    | 'international-premium'
    | 'north-american-premium'
    | 'cuba'
    | 'latvia'
    | 'national-premium'
    | 'caribbean')[]
}

export interface OperatorRate {
  readonly prefix: string
  readonly label: string
  readonly rate_micro: number
  readonly rate_unit: 'minute' | 'second'
  readonly increment_initial_seconds: number
  readonly increment_additional_seconds: number
}

export interface OperatorRegistration {
  readonly carrier_id: string
  readonly carrier_name: string
  readonly registrar: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly username: string
  readonly contact_user: string
  readonly expires_seconds: number
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint: string | null
  readonly state: 'untried' | 'registering' | 'registered' | 'failed' | 'unregistered'
  readonly detail: string | null
  readonly expires_at: string | null
  readonly next_try_at: string | null
}

export interface OperatorReleaseRequest {
  readonly decision_at: string | null
  readonly decision_by: string | null
  readonly decision_reason: string | null
  readonly id: string
  readonly note: string
  readonly requested_at: string
  readonly requested_by: string
  readonly state: 'pending' | 'approved' | 'rejected'
  readonly containment: OperatorContainment | null
}

export interface OperatorSettings {
  readonly base_url: string
  readonly domain: string
  readonly host: string
  readonly sip_port: number
  readonly sips_port: number
  readonly ws_port: number
  readonly rtp_ports: OperatorPortRange
  readonly edge: 'embedded' | 'drachtio'
  readonly operator_sources: readonly string[]
  readonly allow_private_webhooks: readonly string[]
  readonly recordings_quota_bytes: number | null
  readonly recordings: 'data_folder' | 'object_store'
  readonly email: boolean
  readonly sms: boolean
}

export interface OperatorSourceOverlap {
  readonly cidr: string
  readonly trunk_name: string
  readonly project_id: string
  readonly subaccount_id: string | null
}

export interface OperatorVoiceAccount {
  readonly account_sid: string
  readonly project_id: string
  readonly status: 'pending' | 'active' | 'revoked'
  readonly call_event_history: 'enabled' | 'disabled'
  readonly voice_api: 'spec' | 'extended'
  readonly revision: number
}

export interface Organization {
  readonly id: string
  readonly name: string
  readonly time_zone: string
  readonly listening_notice: 'tone' | 'spoken'
  readonly created_at: string
}

export interface OutboundPolicyDetail {
  readonly id: string
  readonly name: string
  readonly status: 'active' | 'archived'
  readonly system_default: boolean
  readonly revision: number
  readonly currency: 'NGN'
  readonly applied_services: number
  readonly attached_services: number
  readonly attachments: readonly PolicyAttachmentSummary[]
  readonly calling_hours: readonly CallingWindow[] | null
  readonly ceilings: PolicyCeilings
  readonly destination_summary: DestinationSummary
  readonly recording: PolicyRecording
  readonly billing_group: string
  readonly created_at: string
  readonly created_by: string | null
  readonly as_of: string
  readonly destinations: PolicyDestinations
}

export interface OutboundPolicySummary {
  readonly id: string
  readonly name: string
  readonly status: 'active' | 'archived'
  readonly system_default: boolean
  readonly revision: number
  readonly currency: 'NGN'
  readonly applied_services: number
  readonly attached_services: number
  readonly attachments: readonly PolicyAttachmentSummary[]
  readonly calling_hours: readonly CallingWindow[] | null
  readonly ceilings: PolicyCeilings
  readonly destination_summary: DestinationSummary
  readonly recording: PolicyRecording
}

export interface ParentLimits {
  readonly concurrency: number
  readonly cps: number
  readonly max_call_duration_seconds: number
}

export interface PhoneNumber {
  readonly id: string
  readonly e164: string
  readonly status: 'available' | 'held' | 'quarantined'
  readonly route: NumberRoute | null
  readonly fallback: NumberRoute | null
  readonly quarantined_until: string | null
  readonly monthly_minor: number
  readonly revision: number
  readonly created_at: string
  readonly updated_at: string
}

export interface PlacedTestCall {
  readonly call_id: string
}

export interface PlatformEndpoints {
  readonly as_of: string
  readonly media_anchors: readonly string[]
  readonly media_cidrs: readonly string[]
  readonly rtp_port_range: string
  readonly rtp_ports: RtpPorts
  readonly signaling_fqdn: string
  readonly signaling_nodes: readonly string[]
  readonly signaling_port: number
  readonly transports: readonly PlatformTransport[]
  readonly tls: PlatformTls
  readonly version: number
}

export interface PlatformTls {
  readonly realm: string
  readonly trust_chain: readonly string[]
}

export interface PlatformTransport {
  readonly port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
}

export interface PolicyAttachment {
  readonly applied_at: string | null
  readonly apply_state: 'applied' | 'pending'
  readonly attached_at: string
  readonly calls_in_flight: number
  readonly id: string
  readonly limits: AttachmentLimits
  readonly note: string | null
  readonly outbound_enabled: boolean
  readonly parent_name: string | null
  readonly service_id: string
  readonly service_name: string
  readonly service_type: 'trunk' | 'subtrunk' | 'voice_application' | 'automation'
}

export interface PolicyAttachmentSummary {
  readonly note: string | null
  readonly service_name: string
  readonly service_type: 'trunk' | 'subtrunk' | 'voice_application' | 'automation'
}

export interface PolicyCeiling {
  readonly configured: number | null
  readonly unit: string
}

export interface PolicyCeilings {
  readonly concurrency: PolicyCeiling
  readonly cps: PolicyCeiling
  readonly max_call_duration: PolicyCeiling
  readonly daily_spend: DailySpendCeiling
  readonly max_destination_rate: MoneyCeiling
}

export interface PolicyDestinations {
  readonly allowed: readonly AllowedDestination[]
  readonly denied: readonly DeniedDestination[]
}

export interface PolicyRecording {
  readonly applied: boolean
  readonly channels: number
  readonly consent: RecordingConsent
  readonly mode: 'off' | 'all'
  readonly retention_days: number
}

export interface PriceBook {
  readonly id: string
  readonly name: string
  readonly effective_from: string
}

export interface ProjectMetrics {
  readonly answered: number
  readonly as_of: string
  readonly attempts: number
  readonly nodes: readonly NodeHealth[]
  readonly now: ProjectNow
  readonly series: readonly ProjectStep[]
  readonly step_seconds: number
  readonly window_hours: number
}

export interface ProjectNow {
  readonly calls_last_minute: number
  readonly live_calls: number
  readonly spend_caps: readonly SpendCap[]
  readonly spend_today_minor: number
}

export interface ProjectStep {
  readonly answered: number
  readonly at: string
  readonly attempts: number
  readonly concurrent_calls_max: number
  readonly concurrent_calls_mean: number
}

export interface QualitySample {
  readonly at: string
  readonly stats: Readonly<Record<string, unknown>>
}

export interface QuarantinedNumbers {
  readonly count: number
  readonly until: string | null
}

export interface Queue {
  readonly id: string
  readonly name: string
  readonly waiting: number
  readonly max_size: number
  readonly average_wait_seconds: number
  readonly created_at: string
  readonly updated_at: string
  readonly revision: number
}

export interface QueueMember {
  readonly call_id: string
  readonly queue_id: string
  readonly position: number
  readonly wait_seconds: number
  readonly enqueued_at: string
}

export interface Rate {
  readonly match: string
  readonly label: string
  readonly rate_minor: number
  readonly rate_unit: 'minute' | 'second'
  readonly increment_initial_seconds: number
  readonly increment_additional_seconds: number
}

export interface RateListRequest {
  readonly csv: string
  readonly direction?: 'outbound' | 'inbound'
  readonly currency?: 'NGN'
  readonly effective_from?: string
  readonly project_id?: string | null
}

export interface RateLookup {
  readonly as_of: string
  readonly containment: LookupContainment | null
  readonly covered: boolean
  readonly currency: 'NGN'
  readonly destination_number: string
  readonly direction: 'inbound' | 'outbound'
  readonly gap: string | null
  readonly price_book: PriceBook | null
  readonly rate: Rate | null
}

export interface Recording {
  readonly audio_href: string | null
  readonly bytes: number | null
  readonly call_id: string
  readonly conference_id: string | null
  readonly channels: number
  readonly created_at: string
  readonly duration_ms: number | null
  readonly error_number: number | null
  readonly expires_at: string | null
  readonly from: string | null
  readonly id: string
  readonly pauses: readonly RecordingPause[]
  readonly sha256: string | null
  readonly source: string
  readonly started_at: string
  readonly status: 'in-progress' | 'paused' | 'stopped' | 'processing' | 'completed' | 'absent'
  readonly to: string | null
  readonly track: 'both' | 'inbound' | 'outbound'
}

export interface RecordingConsent {
  readonly accepted: boolean
  readonly accepted_at: string | null
  readonly accepted_by: string | null
  readonly terms_version: string
}

export interface RecordingPause {
  readonly at_ms: number
  readonly length_ms: number | null
  readonly behavior: 'skip' | 'silence'
  readonly by: 'api' | 'document' | 'key'
}

export interface RecoveryCodes {
  readonly recovery_codes: readonly string[]
}

export interface RefusalCount {
  readonly count: number
  readonly reason: string
}

export interface RtpPorts {
  readonly start: number
  readonly end: number
}

export interface SeriesCeilings {
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_cap_minor: number | null
}

export interface SeriesNow {
  readonly calls_last_second: number | null
  readonly live_calls: number
  readonly spend_today_minor: number | null
}

export interface SeriesSubject {
  readonly id: string
  readonly kind: 'project' | 'subaccount' | 'trunk' | 'application'
}

export interface SignedInMember {
  readonly id: string
  readonly email: string
  readonly role: 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'
  readonly operator: boolean
  readonly totp_enabled: boolean
  readonly recovery_codes_left: number
  readonly scopes: readonly ('organization:read'
    | 'call_history:read'
    | 'live_calls:read'
    | 'call_diagnostics:read'
    | 'service_configuration:read'
    | 'service_configuration:write'
    | 'numbers:manage'
    | 'numbers:order'
    | 'billing:read'
    | 'recordings:manage'
    | 'developers:manage'
    | 'tests:manage'
    | 'subaccounts:read'
    | 'subaccounts:write'
    | 'audit:read')[]
}

export interface SignedInOrganization {
  readonly id: string
  readonly name: string
  readonly time_zone: string
}

export interface SignedInProject {
  readonly id: string
  readonly name: string
  readonly sandbox: boolean
  readonly status: string
}

export interface SipMessage {
  readonly at: string
  readonly direction: 'in' | 'out'
  readonly local: string
  readonly protocol: string
  readonly remote: string
  readonly retransmission: boolean
  readonly sip_call_id: string
  readonly text: string
}

export interface SpendCap {
  readonly cap_minor: number
  readonly kind: 'outbound_policy'
  readonly name: string
  readonly used_minor: number
}

export interface StockedNumbers {
  readonly added: number
  readonly first: string
  readonly last: string
}

export interface Subaccount {
  readonly created_at: string
  readonly currency: 'NGN'
  readonly daily_spend_cap_minor: number | null
  readonly max_call_duration_seconds: number | null
  readonly max_concurrent: number | null
  readonly max_cps: number | null
  readonly max_destination_rate_minor: number | null
  readonly id: string
  readonly live_calls: number
  readonly name: string
  readonly policy_ceilings: readonly SubaccountPolicyCeilings[]
  readonly revision: number
  readonly status: 'enabled' | 'suspended'
  readonly updated_at: string
  readonly usage_30d: SubaccountUsage
}

export interface SubaccountPolicyCeilings {
  readonly acknowledged_at: string | null
  readonly currency: 'NGN'
  readonly daily_spend_cap_minor: number | null
  readonly max_call_duration_seconds: number | null
  readonly max_concurrent: number | null
  readonly max_cps: number | null
  readonly max_destination_rate_minor: number | null
  readonly policy_id: string
  readonly policy_name: string
  readonly policy_revision: number
  readonly runtime_revision: number
  readonly trunk_id: string
  readonly trunk_name: string
}

export interface SubaccountUsage {
  readonly answered_calls: number
  readonly as_of: string
  readonly call_attempts: number
  readonly currency: 'NGN'
  readonly live_calls: number
  readonly pending_spend_minor: number
  readonly refusals: readonly RefusalCount[]
  readonly settled_spend_minor: number
  readonly window_from: string
  readonly busiest_day: BusiestDay | null
  readonly peak_concurrent: number
  readonly peak_concurrent_at: string | null
}

export interface SubtrunkConfiguration {
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_cap_minor: number | null
  readonly velocity_cap_minor: number | null
  readonly max_call_duration_seconds: number | null
  readonly max_destination_rate_minor: number | null
}

export interface SubtrunkDetail {
  readonly configuration: SubtrunkConfiguration
  readonly delegations: readonly Delegation[]
  readonly id: string
  readonly inheritance: SubtrunkInheritance
  readonly name: string
  readonly organization_id: string
  readonly outbound_policy: AttachedPolicy | null
  readonly revision: number
  readonly status: 'draft' | 'enabled' | 'disabled' | 'releasing' | 'released'
  readonly trunk_id: string
  readonly usage: SubtrunkUsage
}

export interface SubtrunkInheritance {
  readonly organization_allowed_destinations: readonly string[]
  readonly parent_limits: ParentLimits
}

export interface SubtrunkLimits {
  readonly concurrency: CountPair
  readonly delegated: number
  readonly destinations: DestinationPair
  readonly daily_spend_cap: MoneyPair
}

export interface SubtrunkSummary {
  readonly currency: 'NGN'
  readonly id: string
  readonly limits: SubtrunkLimits
  readonly name: string
  readonly parent_trunk_id: string
  readonly parent_trunk_name: string
  readonly status: 'enabled' | 'disabled' | 'releasing'
}

export interface SubtrunkUsage {
  readonly answered_calls: number
  readonly as_of: string
  readonly call_attempts: number
  readonly currency: 'NGN'
  readonly live_calls: number
  readonly pending_spend_minor: number
  readonly refusals: readonly RefusalCount[]
  readonly settled_spend_minor: number
  readonly window_from: string
  readonly refused_calls: number
}

export interface SuggestedAction {
  readonly href: string
  readonly label: string
}

export interface TerminationTargetInput {
  readonly sip_uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly enabled?: boolean
  readonly priority?: number
  readonly weight?: number
  readonly tls_verification?: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint?: string | null
  readonly redirects?: 'off' | 'same_host' | 'listed'
  readonly digest_username?: string | null
  readonly digest_password?: string
}

export interface TimelineEntry {
  readonly at: string
  readonly text: string
}

export interface TopFailure {
  readonly calls: number
  readonly platform_reason: string
  readonly share_pct: string
  readonly sip_code: number | null
}

export interface TotpSetUp {
  readonly secret: string
  readonly uri: string
}

export interface TransferCallRequest {
  readonly to: string
  readonly from?: string
}

export interface TrunkAuthentication {
  readonly mode: 'ip_allow_list' | 'digest'
  readonly require_tls: boolean
  readonly source_validation: 'relaxed' | 'strict'
  readonly sources: readonly TrunkSource[]
  readonly digest_identities: readonly DigestIdentity[]
}

export interface TrunkCeiling {
  readonly configured: number
  readonly unit: string
}

export interface TrunkCreation {
  readonly digest_password: string | null
  readonly trunk: TrunkDetail
}

export interface TrunkDetail {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly status: 'draft' | 'enabled' | 'disabled' | 'releasing' | 'released'
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly revision: number
  readonly concurrency_limit: number
  readonly concurrency_used: number
  readonly cps: string | null
  readonly currency: 'NGN'
  readonly daily_spend_cap_minor: number | null
  readonly max_call_duration_seconds: number
  readonly max_destination_rate_minor: number | null
  readonly numbers: number
  readonly parent_name: string | null
  readonly signaling_fqdn: string | null
  readonly subaccount_id: string | null
  readonly subaccount_name: string | null
  readonly endpoints: EndpointSummary
  readonly as_of: string
  readonly authentication: TrunkAuthentication
  readonly transfers: 'consume' | 'pass' | 'refuse'
  readonly endpoint_evidence: readonly EndpointEvidence[]
  readonly limits: TrunkLimits
  readonly media: TrunkMedia
  readonly number_inventory: NumberInventory
  readonly outbound_policy: AttachedPolicy | null
  readonly routes: readonly TrunkRoute[]
  readonly apply: Apply
}

export interface TrunkDiagnostics {
  readonly media: MediaDiagnostics
}

export interface TrunkLimits {
  readonly concurrency: TrunkCeiling
  readonly cps: TrunkCeiling
  readonly max_call_duration: TrunkCeiling
}

export interface TrunkMedia {
  readonly codecs: readonly ('PCMA' | 'PCMU' | 'G722' | 'G729' | 'OPUS')[]
  readonly security: 'rtp' | 'sdes_srtp_required'
}

export interface TrunkMetrics {
  readonly acd_reason: string | null
  readonly acd_seconds: number | null
  readonly answered: number
  readonly as_of: string
  readonly asr_7d_pct: string | null
  readonly attempts: number
  readonly failed: number
  readonly pdd_ms: number | null
  readonly pdd_reason: string | null
  readonly top_failures: readonly TopFailure[]
  readonly window_hours: number
}

export interface TrunkRoute {
  readonly enabled: boolean
  readonly id: string
  readonly digest_username: string | null
  readonly priority: number
  readonly redirects: 'off' | 'same_host' | 'listed'
  readonly sip_uri: string
  readonly tls_fingerprint: string | null
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly weight: number
}

export interface TrunkSource {
  readonly cidr: string
  readonly enabled: boolean
  readonly id: string
  readonly standing: 'full' | 'name_only' | 'pending_approval'
}

export interface TrunkSummary {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly status: 'draft' | 'enabled' | 'disabled' | 'releasing' | 'released'
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly revision: number
  readonly concurrency_limit: number
  readonly concurrency_used: number
  readonly cps: string | null
  readonly currency: 'NGN'
  readonly daily_spend_cap_minor: number | null
  readonly max_call_duration_seconds: number
  readonly max_destination_rate_minor: number | null
  readonly numbers: number
  readonly parent_name: string | null
  readonly signaling_fqdn: string | null
  readonly subaccount_id: string | null
  readonly subaccount_name: string | null
  readonly endpoints: EndpointSummary
}

export interface TrunkTestCheck {
  readonly duration_ms: number | null
  readonly id: string
  readonly node_id: string | null
  readonly occurred_at: string | null
  readonly sequence: number
  readonly state: 'waiting' | 'passed' | 'failed' | 'skipped'
  readonly summary: string | null
  readonly target_ref: string | null
}

export interface TrunkTestDetail {
  readonly destination: string | null
  readonly next_sequence: number
  readonly requested_kind: 'config_validation' | 'rtp_reachability' | 'test_call'
  readonly requested_revision: number
  readonly run: TrunkTestRun
}

export interface TrunkTestHistory {
  readonly as_of: string
  readonly data: readonly TrunkTestRun[]
  readonly retention_days: number
  readonly scheduled_check: boolean
}

export interface TrunkTestRun {
  readonly call_id: string | null
  readonly call_summary: string | null
  readonly checks: readonly TrunkTestCheck[]
  readonly configuration_revision: number | null
  readonly finding: string | null
  readonly finished_at: string | null
  readonly id: string
  readonly result: 'running' | 'passed' | 'failed'
  readonly run_by: string
  readonly scheduled: boolean
  readonly started_at: string
}

export interface Usage {
  readonly as_of: string
  readonly currency: 'NGN'
  readonly data: readonly UsageLine[]
  readonly from: string
  readonly group_by: 'day' | 'trunk' | 'destination'
  readonly to: string
  readonly total: UsageTotal
}

export interface UsageLine {
  readonly answered_calls: number
  readonly billed_seconds: number
  readonly calls: number
  readonly pending_spend_minor: number
  readonly settled_spend_minor: number
  readonly day: string | null
  readonly destination: string | null
  readonly trunk_id: string | null
  readonly trunk_name: string | null
}

export interface UsageTotal {
  readonly answered_calls: number
  readonly billed_seconds: number
  readonly calls: number
  readonly pending_spend_minor: number
  readonly settled_spend_minor: number
}

export interface VoiceAccount {
  readonly account_sid: string
  readonly auth_token_masked: string
  readonly call_event_history: 'enabled' | 'disabled'
  readonly desired_revision: number
  readonly effective_revision: number
  readonly key_id: string
  readonly outbound_policy: AttachedPolicy | null
  readonly project_id: string
  readonly provisioning_status: 'pending' | 'applying' | 'applied' | 'partially_applied' | 'failed'
  readonly voice_api: 'spec' | 'extended'
  readonly status: 'pending' | 'active' | 'revoked'
}

export interface VoiceApplication {
  readonly created_at: string
  readonly desired_revision: number
  readonly effective_revision: number
  readonly fallback_method: 'GET' | 'POST'
  readonly fallback_url: string | null
  readonly id: string
  readonly name: string
  readonly numbers_pointed: number
  readonly outbound_policy: AttachedPolicy | null
  readonly project_id: string
  readonly provisioning_status: 'pending' | 'applying' | 'applied' | 'partially_applied' | 'failed'
  readonly revision: number
  readonly status_callback_method: 'GET' | 'POST'
  readonly status_callback_url: string | null
  readonly stt: string | null
  readonly tts: string | null
  readonly updated_at: string
  readonly voice_method: 'GET' | 'POST'
  readonly voice_url: string
}

export interface WebhookDelivery {
  readonly id: string
  readonly event_id: string
  readonly event_kind: string
  readonly state: 'pending' | 'delivered' | 'failed'
  readonly attempts: number
  readonly next_attempt_at: string | null
  readonly last_attempt_at: string | null
  readonly last_status: number | null
  readonly last_error: string | null
  readonly delivered_at: string | null
  readonly payload: Readonly<Record<string, unknown>>
  readonly created_at: string
}

export interface WebhookEndpoint {
  readonly id: string
  readonly url: string
  readonly description: string | null
  readonly event_kinds: readonly ('call.initiated'
    | 'call.ringing'
    | 'call.answered'
    | 'call.ended'
    | 'trunk.created'
    | 'trunk.updated'
    | 'trunk.released'
    | 'trunk.applied'
    | 'trunk.apply_failed'
    | 'number.ordered'
    | 'number.routed'
    | 'number.released'
    | 'recording.completed'
    | 'recording.deleted'
    | 'alert.fired'
    | 'alert.acknowledged'
    | 'alert.resolved'
    | 'containment.opened'
    | 'containment.released'
    | 'endpoint.test')[]
  readonly enabled: boolean
  readonly previous_secret_retires_at: string | null
  readonly revision: number
  readonly created_at: string
  readonly updated_at: string
}

export interface WebhookEndpointCreation {
  readonly endpoint: WebhookEndpoint
  readonly signing_secret: string | null
}

export interface WebhookSecret {
  readonly signing_secret: string
  readonly previous_secret_retires_at: string
}
