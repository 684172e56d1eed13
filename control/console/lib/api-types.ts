// Made from the schemas of /v1 and /operator/v1 by `npm run documents`; do not edit.
// biome-ignore-all format: made by a program

export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly request_id: string
  readonly available_projects?: readonly ({
    readonly id: string
    readonly name: string
  })[]
  readonly caused_by?: string
  readonly reason?: string
  readonly remediation?: string
  readonly expensive_filter?: string
  readonly changed_resources?: readonly string[]
  readonly errors?: readonly ({
    readonly pointer: string
    readonly message: string
  })[]
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

export interface CreateOrganizationRequest {
  readonly name: string
  readonly time_zone: string
  readonly contact_email: string
  readonly admin_email?: string
  readonly project_name?: string
}

export interface CreatedOrganization {
  readonly organization: OperatorOrganization
  readonly project: OperatorProject
  readonly invitation: OperatorInvitationCreation
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

export interface OperatorInvitationCreation {
  readonly invitation: OperatorInvitation
  readonly url: string | null
}

export interface OperatorInvitation {
  readonly id: string
  readonly email: string
  readonly role: 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'
  readonly created_at: string
  readonly expires_at: string
}

export interface UpdateOrganizationRequest {
  readonly name?: string
  readonly time_zone?: string
  readonly contact_email?: string
}

export interface SuspendOrganizationRequest {
  readonly reason: string
}

export interface ResumeOrganizationRequest {
  readonly reason: string
}

export interface InviteMemberRequest {
  readonly email: string
  readonly role?: 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'
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

export interface LockMemberRequest {
  readonly reason: string
}

export interface UnlockMemberRequest {
  readonly reason: string
}

export interface AppointOperatorRequest {
  readonly reason: string
}

export interface DismissOperatorRequest {
  readonly reason: string
}

export interface ResetSecondFactorRequest {
  readonly reason: string
}

export interface PasswordResetRequest {
  readonly member_id: string
  readonly reason: string
}

export interface OperatorPasswordReset {
  readonly member_id: string
  readonly email: string
  readonly expires_at: string
  readonly url: string | null
}

export interface CreateProjectRequest {
  readonly organization_id: string
  readonly name: string
  readonly payment?: 'prepaid' | 'postpaid'
  readonly credit_limit_minor?: number
}

export interface UpdateProjectRequest {
  readonly name?: string
  readonly payment?: 'prepaid' | 'postpaid'
  readonly credit_limit_minor?: number
  readonly risk?: ProjectRiskRequest
}

export interface ProjectRiskRequest {
  readonly open: readonly ('satellite'
    | 'international-networks'
    | 'international-premium'
    | 'north-american-premium'
    | 'cuba'
    | 'latvia'
    | 'national-premium'
    | 'caribbean')[]
}

export interface ProjectCeilingsRequest {
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_cap_minor: number | null
  readonly velocity_cap_minor: number | null
  readonly max_call_duration_seconds: number | null
  readonly max_destination_rate_minor: number | null
}

export interface DisableProjectRequest {
  readonly reason: string
}

export interface EnableProjectRequest {
  readonly reason: string
}

export interface GoLiveChecklist {
  readonly open: readonly ('carrier' | 'price_book' | 'number' | 'balance')[]
  readonly carriers: number
  readonly price_books: number
  readonly numbers: number
  readonly available_minor: number | null
}

export interface GoLiveRequest {
  readonly reason: string
}

export interface OperatorVoiceAccount {
  readonly account_sid: string
  readonly project_id: string
  readonly status: 'pending' | 'active' | 'revoked'
  readonly call_event_history: 'enabled' | 'disabled'
  readonly voice_api: 'spec' | 'extended'
  readonly revision: number
}

export interface UpdateVoiceAccountRequest {
  readonly status?: 'active' | 'revoked'
  readonly call_event_history?: 'enabled' | 'disabled'
  readonly voice_api?: 'spec' | 'extended'
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

export interface TopUpRequest {
  readonly amount_minor: number
  readonly reason: string
  readonly reference?: string
}

export interface CorrectionRequest {
  readonly amount_minor: number
  readonly reason: string
  readonly reference?: string
}

export interface OperatorMargins {
  readonly currency: 'NGN'
  readonly from: string
  readonly to: string
  readonly group_by: 'day' | 'carrier' | 'project' | 'destination' | 'call'
  readonly data: readonly OperatorMargin[]
  readonly total: OperatorMarginTotal
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

export interface OperatorCallExportRequest {
  readonly format: 'csv' | 'jsonl'
  readonly filter?: OperatorCallExportFilter
}

export interface OperatorCallExportFilter {
  readonly status?: 'queued' | 'ringing' | 'in-progress' | 'completed' | 'busy' | 'no-answer' | 'canceled' | 'failed'
  readonly direction?: 'inbound' | 'outbound-api' | 'outbound-dial' | 'outbound'
  readonly trunk_id?: string
  readonly application_id?: string
  readonly from?: string
  readonly to?: string
  readonly number?: string
  readonly reason?: string
  readonly call_id?: string
  readonly since?: string
  readonly before?: string
  readonly ended_since?: string
  readonly ended_before?: string
  readonly parent_call_id?: string
  readonly project_id?: string
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

export interface StockNumbersRequest {
  readonly first: string
  readonly last?: string
  readonly monthly_minor?: number
}

export interface StockedNumbers {
  readonly added: number
  readonly first: string
  readonly last: string
}

export interface AssignNumberRequest {
  readonly project_id: string
  readonly monthly_minor?: number
}

export interface TakeNumberBackRequest {
  readonly reason: string
}

export interface OperatorNumberImport {
  readonly id: string
  readonly name: string
  readonly state: 'preview' | 'running' | 'completed'
  readonly total: number
  readonly known: number
  readonly done: number
  readonly added: number
  readonly lines: readonly OperatorNumberLine[]
  readonly begun_by: string
  readonly created_at: string
  readonly finished_at: string | null
}

export interface OperatorNumberLine {
  readonly e164: string
  readonly monthly_minor: number
  readonly offered_to: 'all' | 'project' | 'nobody'
  readonly offered_project_id: string | null
}

export interface ImportNumbersRequest {
  readonly name: string
  readonly csv: string
}

export interface OperatorNumberOffer {
  readonly offered_to: 'all' | 'project' | 'nobody'
  readonly offered_project_id: string | null
  readonly monthly_minor: number
  readonly numbers: number
  readonly first: string
  readonly last: string
}

export interface OfferNumbersRequest {
  readonly first: string
  readonly last?: string
  readonly offered_to: 'all' | 'project' | 'nobody'
  readonly offered_project_id?: string | null
  readonly monthly_minor?: number
}

export interface OfferedNumbers {
  readonly offered: number
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

export interface OperatorCarrierTarget {
  readonly id: string
  readonly sip_uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly priority: number
  readonly weight: number
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint: string | null
}

export interface OperatorCarrierRoute {
  readonly prefix: string
  readonly priority: number
  readonly cost_minor: number
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

export interface CarrierTargetRequest {
  readonly sip_uri: string
  readonly transport?: 'udp' | 'tcp' | 'tls'
  readonly priority?: number
  readonly weight?: number
  readonly tls_verification?: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint?: string
}

export interface CarrierRouteRequest {
  readonly prefix: string
  readonly priority?: number
  readonly cost_minor?: number
}

export interface ApplyCarriersRequest {
  readonly carriers: readonly CarrierRequest[]
  readonly prune?: boolean
  readonly confirm_wide_sources?: boolean
  readonly dry_run?: boolean
}

export interface AppliedCarriers {
  readonly applied: boolean
  readonly steps: readonly string[]
}

export interface UpdateCarrierRequest {
  readonly name?: string
  readonly enabled?: boolean
  readonly codecs?: readonly ('PCMA' | 'PCMU' | 'G722' | 'G729' | 'OPUS')[]
  readonly redirects?: 'off' | 'same_host' | 'listed'
  readonly sources?: readonly string[]
  readonly confirm_wide_sources?: boolean
  readonly targets?: readonly CarrierTargetRequest[]
  readonly routes?: readonly CarrierRouteRequest[]
}

export interface CarrierCredentialsRequest {
  readonly username: string
  readonly password: string
}

export interface CarrierRegistrationRequest {
  readonly registrar: string
  readonly username: string
  readonly password: string
  readonly contact_user?: string
  readonly expires_seconds?: number
  readonly transport?: 'udp' | 'tcp' | 'tls'
  readonly tls_verification?: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint?: string
}

export interface CarrierFlowRequest {
  readonly reason?: string
}

export interface OperatorCarrierMetrics {
  readonly carrier_id: string
  readonly currency: 'NGN'
  readonly from: string
  readonly to: string
  readonly days: readonly OperatorCarrierDay[]
  readonly total: OperatorCarrierTotal
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

export interface OperatorCarrierTest {
  readonly id: string
  readonly result: 'running' | 'passed' | 'failed'
  readonly finding: string | null
  readonly checks: readonly TrunkTestCheck[]
  readonly configuration_revision: number | null
  readonly run_by: string
  readonly started_at: string
  readonly finished_at: string | null
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

export interface RateListRequest {
  readonly csv: string
  readonly direction?: 'outbound' | 'inbound'
  readonly currency?: 'NGN'
  readonly effective_from?: string
  readonly project_id?: string | null
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

export interface ImportRatesRequest {
  readonly name: string
  readonly csv: string
  readonly direction?: 'outbound' | 'inbound'
  readonly currency?: 'NGN'
  readonly effective_from?: string
  readonly project_id?: string | null
  readonly confirm_leaps?: boolean
  readonly confirm_ended?: boolean
}

export interface OperatorRate {
  readonly prefix: string
  readonly label: string
  readonly rate_micro: number
  readonly rate_unit: 'minute' | 'second'
  readonly increment_initial_seconds: number
  readonly increment_additional_seconds: number
}

export interface OperatorCostBook {
  readonly carrier_id: string
  readonly id: string
  readonly name: string
  readonly direction: 'outbound' | 'inbound'
  readonly currency: 'NGN'
  readonly effective_from: string
  readonly revision: number
  readonly rates: number
  readonly created_at: string
}

export interface CostListRequest {
  readonly csv: string
  readonly direction?: 'outbound' | 'inbound'
  readonly currency?: 'NGN'
  readonly effective_from?: string
  readonly carrier_id: string
}

export interface OperatorCostDifference {
  readonly against: OperatorCostBook | null
  readonly added: number
  readonly changed: number
  readonly ended: number
  readonly same: number
  readonly lines: readonly string[]
  readonly leaps: readonly string[]
}

export interface ImportCostsRequest {
  readonly name: string
  readonly csv: string
  readonly direction?: 'outbound' | 'inbound'
  readonly currency?: 'NGN'
  readonly effective_from?: string
  readonly carrier_id: string
  readonly confirm_leaps?: boolean
  readonly confirm_ended?: boolean
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
}

export interface AlertEvidence {
  readonly amount_minor: number | null
  readonly currency: string | null
  readonly held: boolean
  readonly label: string
  readonly note: string | null
  readonly text: string | null
}

export interface AlertSubject {
  readonly id: string
  readonly name: string
  readonly type: 'account' | 'organization' | 'trunk' | 'subaccount' | 'webhook_endpoint'
}

export interface SuggestedAction {
  readonly href: string
  readonly label: string
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

export interface ClosePrefixRequest {
  readonly prefix: string
  readonly reason_category: 'spend_velocity' | 'destination_risk' | 'account_compromise'
  readonly reason_detail: string
  readonly expires_in_seconds: number
  readonly case_ref?: string | null
  readonly trunk_id?: string
  readonly project_id?: string
}

export interface OpenPrefixRequest {
  readonly reason: string
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

export interface DecideReleaseRequest {
  readonly decision: 'approved' | 'rejected'
  readonly reason?: string | null
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

export interface OperatorSourceOverlap {
  readonly cidr: string
  readonly trunk_name: string
  readonly project_id: string
  readonly subaccount_id: string | null
}

export interface OperatorOverrulingCarrier {
  readonly cidr: string
  readonly name: string
}

export interface OperatorNumberFormat {
  readonly trunk_id: string
  readonly country: string
  readonly default_caller: string | null
}

export interface NumberFormatRequest {
  readonly country?: string
  readonly default_caller?: string | null
}

export interface OperatorShortCode {
  readonly code: string
  readonly project_id: string | null
  readonly sends_to: string | null
}

export interface ShortCodeRequest {
  readonly code: string
  readonly sends_to: string | null
  readonly project_id?: string | null
}

export interface OperatorSlotHolder {
  readonly call_sid: string
  readonly part: string
  readonly node_id: string
  readonly begun_at: string
  readonly ended_at: string | null
}

export interface OperatorSlotCorrection {
  readonly level: 'project' | 'subaccount' | 'trunk' | 'subtrunk' | 'policy'
  readonly subject_id: string
  readonly said: number
  readonly holds: number
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

export interface OperatorPortRange {
  readonly first: number
  readonly last: number
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

export interface AuditActor {
  readonly detail: string | null
  readonly name: string
  readonly type: 'user' | 'api_key' | 'operator' | 'system'
}

export interface AuditResource {
  readonly href: string | null
  readonly id: string
  readonly name: string
  readonly type: string
}

export interface AuditEventDetail {
  readonly changes: readonly FieldChange[]
  readonly event: AuditEvent
  readonly notes: readonly string[]
  readonly supersedes_at: string | null
  readonly timeline: readonly TimelineEntry[]
}

export interface FieldChange {
  readonly after: string | null
  readonly before: string | null
  readonly label: string
  readonly redacted: boolean
  readonly unchanged: boolean
}

export interface TimelineEntry {
  readonly at: string
  readonly text: string
}

export interface OperatorKey {
  readonly id: string
  readonly name: string
  readonly shown: string
  readonly scopes: readonly ('operator:read'
    | 'operator:customers'
    | 'operator:money'
    | 'operator:network'
    | 'operator:fraud')[]
  readonly created_at: string
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly last_used_at: string | null
}

export interface CreateOperatorKeyRequest {
  readonly name: string
  readonly scopes: readonly ('operator:read'
    | 'operator:customers'
    | 'operator:money'
    | 'operator:network'
    | 'operator:fraud')[]
  readonly expires_at?: string | null
}

export interface OperatorKeyCreation {
  readonly key: OperatorKey
  readonly operator_key: string | null
}

export interface Project {
  readonly id: string
  readonly name: string
  readonly status: 'active' | 'disabled'
  readonly currency: 'NGN'
  readonly billing_account_id: string
  readonly billing_assignment_revision: number
  readonly billing_effective_from: string
  readonly pending_payer: PendingPayer | null
}

export interface PendingPayer {
  readonly billing_account_id: string
  readonly billing_assignment_revision: number
  readonly effective_from: string
}

export interface Organization {
  readonly id: string
  readonly name: string
  readonly time_zone: string
  readonly created_at: string
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

export interface NodeHealth {
  readonly heartbeat_at: string
  readonly id: string
  readonly kind: string
  readonly state: 'up' | 'draining' | 'lost'
}

export interface ProjectNow {
  readonly calls_last_minute: number
  readonly live_calls: number
  readonly spend_caps: readonly SpendCap[]
  readonly spend_today_minor: number
}

export interface SpendCap {
  readonly cap_minor: number
  readonly kind: 'outbound_policy'
  readonly name: string
  readonly used_minor: number
}

export interface ProjectStep {
  readonly answered: number
  readonly at: string
  readonly attempts: number
  readonly concurrent_calls_max: number
  readonly concurrent_calls_mean: number
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

export interface SeriesCeilings {
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_cap_minor: number | null
}

export interface FailedCalls {
  readonly calls: number
  readonly reason: string
}

export interface SeriesNow {
  readonly calls_last_second: number | null
  readonly live_calls: number
  readonly spend_today_minor: number | null
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

export interface SeriesSubject {
  readonly id: string
  readonly kind: 'project' | 'subaccount' | 'trunk' | 'application'
}

export interface CallSeriesTotal {
  readonly acd_seconds: number | null
  readonly answered: number
  readonly attempts: number
  readonly mos: number | null
  readonly pdd_p95_ms: number | null
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

export interface EndpointSummary {
  readonly count: number
  readonly silent: number
  readonly state: 'none' | 'idle'
}

export interface CreateTrunkRequest {
  readonly auth_mode: 'ip_allow_list' | 'digest'
  readonly codecs: readonly ('PCMA' | 'PCMU' | 'G722' | 'G729' | 'OPUS')[]
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly media_security: 'rtp' | 'sdes_srtp_required'
  readonly name: string
  readonly require_tls: boolean
  readonly source_validation: 'relaxed' | 'strict'
  readonly transfers?: 'consume' | 'refuse'
  readonly limits?: TrunkDraftLimitsInput
  readonly subaccount_id?: string | null
  readonly sources: readonly string[]
  readonly targets: readonly TrunkTargetInput[]
  readonly number_block_ids?: readonly string[]
  readonly outbound_policy_id?: string | null
}

export interface TrunkDraftLimitsInput {
  readonly concurrency: number
  readonly cps: number
  readonly max_call_duration_seconds: number
}

export interface TrunkTargetInput {
  readonly digest_password?: string
  readonly digest_username?: string | null
  readonly priority: number
  readonly redirects?: 'off' | 'same_host' | 'listed'
  readonly sip_uri: string
  readonly tls_fingerprint?: string | null
  readonly tls_verification?: 'required' | 'pinned' | 'off'
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly weight: number
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
  readonly transfers: 'consume' | 'refuse'
  readonly endpoint_evidence: readonly EndpointEvidence[]
  readonly limits: TrunkLimits
  readonly media: TrunkMedia
  readonly number_inventory: NumberInventory
  readonly outbound_policy: AttachedPolicy | null
  readonly routes: readonly TrunkRoute[]
  readonly apply: Apply
}

export interface TrunkAuthentication {
  readonly mode: 'ip_allow_list' | 'digest'
  readonly require_tls: boolean
  readonly source_validation: 'relaxed' | 'strict'
  readonly sources: readonly TrunkSource[]
  readonly digest_identities: readonly DigestIdentity[]
}

export interface TrunkSource {
  readonly cidr: string
  readonly enabled: boolean
  readonly id: string
  readonly standing: 'full' | 'name_only' | 'pending_approval'
}

export interface DigestIdentity {
  readonly enabled: boolean
  readonly realm: string
  readonly username: string
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

export interface TrunkLimits {
  readonly concurrency: TrunkCeiling
  readonly cps: TrunkCeiling
  readonly max_call_duration: TrunkCeiling
}

export interface TrunkCeiling {
  readonly configured: number
  readonly unit: string
}

export interface TrunkMedia {
  readonly codecs: readonly ('PCMA' | 'PCMU' | 'G722' | 'G729' | 'OPUS')[]
  readonly security: 'rtp' | 'sdes_srtp_required'
}

export interface NumberInventory {
  readonly delegated: DelegatedNumbers
  readonly quarantined: QuarantinedNumbers
  readonly range: string | null
  readonly routed: number
}

export interface DelegatedNumbers {
  readonly count: number
  readonly to: string | null
}

export interface QuarantinedNumbers {
  readonly count: number
  readonly until: string | null
}

export interface AttachedPolicy {
  readonly id: string
  readonly name: string
  readonly revision: number
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

export interface Apply {
  readonly state: 'applying' | 'applied' | 'failed'
  readonly desired_revision: number
  readonly effective_revision: number
  readonly applied_at: string | null
  readonly error: string | null
}

export interface UpdateTrunkRequest {
  readonly auth_mode: 'ip_allow_list' | 'digest'
  readonly codecs: readonly ('PCMA' | 'PCMU' | 'G722' | 'G729' | 'OPUS')[]
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly media_security: 'rtp' | 'sdes_srtp_required'
  readonly name: string
  readonly require_tls: boolean
  readonly source_validation: 'relaxed' | 'strict'
  readonly transfers?: 'consume' | 'refuse'
  readonly limits?: TrunkDraftLimitsInput
  readonly subaccount_id?: string | null
}

export interface ReleaseTrunkRequest {
  readonly confirm_name: string
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

export interface TopFailure {
  readonly calls: number
  readonly platform_reason: string
  readonly share_pct: string
  readonly sip_code: number | null
}

export interface TrunkDiagnostics {
  readonly media: MediaDiagnostics
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

export interface TrunkDestinations {
  readonly since: string
  readonly before: string
  readonly complete: boolean
  readonly data: readonly TrunkDestination[]
}

export interface TrunkDestination {
  readonly prefix: string | null
  readonly label: string | null
  readonly attempts: number
  readonly answered: number
  readonly asr_pct: number | null
  readonly acd_seconds: number | null
  readonly pdd_ms: number | null
  readonly duration_seconds: number
  readonly billed_seconds: number
  readonly charge_minor: number
}

export interface TrunkTestStart {
  readonly destination?: string | null
  readonly kind: 'config_validation' | 'rtp_reachability' | 'test_call'
}

export interface TrunkTestDetail {
  readonly destination: string | null
  readonly next_sequence: number
  readonly requested_kind: 'config_validation' | 'rtp_reachability' | 'test_call'
  readonly requested_revision: number
  readonly run: TrunkTestRun
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

export interface TrunkTestHistory {
  readonly as_of: string
  readonly data: readonly TrunkTestRun[]
  readonly retention_days: number
  readonly scheduled_check: boolean
}

export interface IpCredential {
  readonly id: string
  readonly cidr: string
  readonly enabled: boolean
  readonly selector_precedence: number
  readonly standing: 'full' | 'name_only' | 'pending_approval'
  readonly created_at: string
}

export interface IpCredentialInput {
  readonly cidr: string
  readonly enabled?: boolean
  readonly selector_precedence?: number
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

export interface DigestCredentialInput {
  readonly realm: string
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

export interface TerminationTarget {
  readonly id: string
  readonly sip_uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly priority: number
  readonly weight: number
  readonly enabled: boolean
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint: string | null
  readonly redirects: 'off' | 'same_host' | 'listed'
  readonly digest_username: string | null
  readonly created_at: string
  readonly updated_at: string
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

export interface SubtrunkSummary {
  readonly currency: 'NGN'
  readonly id: string
  readonly limits: SubtrunkLimits
  readonly name: string
  readonly parent_trunk_id: string
  readonly parent_trunk_name: string
  readonly status: 'enabled' | 'disabled' | 'releasing'
}

export interface SubtrunkLimits {
  readonly concurrency: CountPair
  readonly delegated: number
  readonly destinations: DestinationPair
  readonly daily_spend_cap: MoneyPair
}

export interface CountPair {
  readonly child: number
  readonly parent: number
}

export interface DestinationPair {
  readonly child: readonly string[]
  readonly parent: readonly string[]
}

export interface MoneyPair {
  readonly child_minor: number | null
  readonly parent_minor: number | null
}

export interface CreateSubtrunkRequest {
  readonly name: string
  readonly status: 'enabled' | 'disabled'
  readonly configuration?: SubtrunkConfigurationInput
}

export interface SubtrunkConfigurationInput {
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

export interface SubtrunkConfiguration {
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_cap_minor: number | null
  readonly velocity_cap_minor: number | null
  readonly max_call_duration_seconds: number | null
  readonly max_destination_rate_minor: number | null
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

export interface SubtrunkInheritance {
  readonly organization_allowed_destinations: readonly string[]
  readonly parent_limits: ParentLimits
}

export interface ParentLimits {
  readonly concurrency: number
  readonly cps: number
  readonly max_call_duration_seconds: number
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

export interface RefusalCount {
  readonly count: number
  readonly reason: string
}

export interface UpdateSubtrunkRequest {
  readonly name?: string
  readonly configuration?: SubtrunkConfigurationInput
}

export interface ReleaseSubtrunkRequest {
  readonly confirm_name: string
}

export interface SubtrunkDelegationRequest {
  readonly block_id: string
  readonly start?: string
  readonly end?: string
}

export interface DelegateRequest {
  readonly subtrunk_id: string
  readonly start?: string
  readonly end?: string
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

export interface PolicyAttachmentSummary {
  readonly note: string | null
  readonly service_name: string
  readonly service_type: 'trunk' | 'subtrunk' | 'voice_application' | 'automation'
}

export interface CallingWindow {
  readonly days: readonly ('monday' | 'tuesday' | 'wednesday' | 'thursday' | 'friday' | 'saturday' | 'sunday')[]
  readonly from: string
  readonly to: string
}

export interface PolicyCeilings {
  readonly concurrency: PolicyCeiling
  readonly cps: PolicyCeiling
  readonly max_call_duration: PolicyCeiling
  readonly daily_spend: DailySpendCeiling
  readonly max_destination_rate: MoneyCeiling
}

export interface PolicyCeiling {
  readonly configured: number | null
  readonly unit: string
}

export interface DailySpendCeiling {
  readonly configured_minor: number | null
  readonly currency: 'NGN'
  readonly resets_at: string
  readonly used_today_minor: number
}

export interface MoneyCeiling {
  readonly configured_minor: number | null
  readonly currency: 'NGN'
}

export interface DestinationSummary {
  readonly allowed_countries: readonly string[]
  readonly allowed_prefixes: number
  readonly denied_prefixes: number
}

export interface PolicyRecording {
  readonly applied: boolean
  readonly channels: number
  readonly consent: RecordingConsent
  readonly mode: 'off' | 'all'
  readonly retention_days: number
}

export interface RecordingConsent {
  readonly accepted: boolean
  readonly accepted_at: string | null
  readonly accepted_by: string | null
  readonly terms_version: string
}

export interface OutboundPolicyRequest {
  readonly name: string
  readonly recording_channels: 2
  readonly recording_mode: 'off' | 'all'
  readonly recording_retention_days: 30 | 90 | 365
  readonly calling_hours?: readonly CallingWindow[] | null
  readonly concurrency?: number | null
  readonly cps?: number | null
  readonly daily_spend_limit_minor?: number | null
  readonly max_call_duration_seconds?: number | null
  readonly max_destination_rate_minor?: number | null
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

export interface PolicyDestinations {
  readonly allowed: readonly AllowedDestination[]
  readonly denied: readonly DeniedDestination[]
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

export interface DeniedDestination {
  readonly case_ref: string | null
  readonly label: string
  readonly match: string
  readonly source: 'customer' | 'containment'
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

export interface AttachmentLimits {
  readonly concurrency: number | null
  readonly max_destination_rate_minor: number | null
}

export interface DestinationRuleChanges {
  readonly rules: readonly DestinationRuleChange[]
}

export interface DestinationRuleChange {
  readonly kind: 'country' | 'prefix'
  readonly op: 'allow' | 'deny' | 'remove'
  readonly value: string
  readonly label?: string | null
}

export interface ServicePolicyRequest {
  readonly policy_id: string | null
  readonly note?: string | null
  readonly outbound_enabled?: boolean
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

export interface CreateVoiceApplicationRequest {
  readonly name: string
  readonly voice_method: 'GET' | 'POST'
  readonly voice_url: string
  readonly fallback_url?: string | null
  readonly fallback_method?: 'GET' | 'POST'
  readonly status_callback_url?: string | null
  readonly status_callback_method?: 'GET' | 'POST'
  readonly stt?: 'pocketsphinx' | 'url' | 'openai' | 'deepgram' | null
  readonly tts?: 'espeak-ng' | 'url' | 'openai' | 'elevenlabs' | null
}

export interface UpdateVoiceApplicationRequest {
  readonly name?: string | null
  readonly voice_url?: string | null
  readonly voice_method?: 'GET' | 'POST'
  readonly fallback_url?: string | null
  readonly fallback_method?: 'GET' | 'POST'
  readonly status_callback_url?: string | null
  readonly status_callback_method?: 'GET' | 'POST'
  readonly stt?: 'pocketsphinx' | 'url' | 'openai' | 'deepgram' | null
  readonly tts?: 'espeak-ng' | 'url' | 'openai' | 'elevenlabs' | null
}

export interface NumberRouteSlice {
  readonly number_id: string
  readonly e164: string
  readonly routed_at: string
}

export interface VoiceDocumentSummary {
  readonly id: string
  readonly name: string
  readonly revision: number
  readonly check: MarkupCheck
  readonly created_at: string
  readonly updated_at: string
  readonly updated_by: string
  readonly url: string
}

export interface MarkupCheck {
  readonly advice: readonly MarkupAdvice[]
  readonly ok: boolean
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

export interface CreateVoiceDocumentRequest {
  readonly name: string
  readonly content: string
}

export interface VoiceDocument {
  readonly id: string
  readonly name: string
  readonly revision: number
  readonly check: MarkupCheck
  readonly created_at: string
  readonly updated_at: string
  readonly updated_by: string
  readonly url: string
  readonly content: string
}

export interface UpdateVoiceDocumentRequest {
  readonly name?: string
  readonly content?: string
}

export interface VoiceDocumentRevision {
  readonly revision: number
  readonly name: string
  readonly content: string
  readonly saved_at: string
  readonly saved_by: string
}

export interface RollbackVoiceDocumentRequest {
  readonly revision: number
}

export interface CreateClientTokenRequest {
  readonly identity: string
  readonly allowed?: readonly ('in' | 'out')[]
  readonly caller?: string | null
  readonly ttl_seconds?: number
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

export interface PhoneNumber {
  readonly id: string
  readonly e164: string
  readonly status: 'available' | 'held' | 'quarantined'
  readonly route: NumberRoute | null
  readonly quarantined_until: string | null
  readonly monthly_minor: number
  readonly revision: number
  readonly created_at: string
  readonly updated_at: string
}

export interface NumberRoute {
  readonly kind: 'voice_application' | 'trunk' | 'subtrunk'
  readonly id: string
  readonly name: string
}

export interface NumberRouteRequest {
  readonly kind: 'voice_application' | 'trunk' | 'subtrunk' | null
  readonly id: string | null
}

export interface NumberOrder {
  readonly id: string
  readonly status: 'completed'
  readonly currency: 'NGN'
  readonly created_at: string
  readonly ordered: readonly string[]
  readonly numbers: readonly PhoneNumber[]
}

export interface NumberOrderRequest {
  readonly numbers: readonly string[]
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

export interface NumberBlockRequest {
  readonly start: string
  readonly end: string
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

export interface BusiestDay {
  readonly date: string
  readonly settled_spend_minor: number
}

export interface CreateSubaccountRequest {
  readonly name: string
  readonly configuration: SubaccountConfiguration
}

export interface SubaccountConfiguration {
  readonly currency: 'NGN'
  readonly daily_spend_cap_minor?: number | null
  readonly max_call_duration_seconds?: number | null
  readonly max_concurrent?: number | null
  readonly max_cps?: number | null
  readonly max_destination_rate_minor?: number | null
}

export interface UpdateSubaccountRequest {
  readonly name?: string | null
  readonly configuration?: SubaccountConfigurationChange
}

export interface SubaccountConfigurationChange {
  readonly currency?: 'NGN'
  readonly daily_spend_cap_minor?: number | null
  readonly max_call_duration_seconds?: number | null
  readonly max_concurrent?: number | null
  readonly max_cps?: number | null
  readonly max_destination_rate_minor?: number | null
}

export interface SubaccountStatusRequest {
  readonly confirm_name: string
}

export interface RateCoverage {
  readonly as_of: string
  readonly currency: 'NGN'
  readonly effective_from: string | null
  readonly data: readonly Rate[]
}

export interface Rate {
  readonly match: string
  readonly label: string
  readonly rate_minor: number
  readonly rate_unit: 'minute' | 'second'
  readonly increment_initial_seconds: number
  readonly increment_additional_seconds: number
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

export interface LookupContainment {
  readonly case_ref: string
  readonly prefix: string
  readonly expires_at: string
}

export interface PriceBook {
  readonly id: string
  readonly name: string
  readonly effective_from: string
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

export interface BillingDocumentDetail {
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
  readonly billed_seconds: number
  readonly billing_account_id: string
  readonly calls: number
  readonly closing_balance_minor: number | null
  readonly destinations: readonly StatementLine[]
  readonly due_minor: number
  readonly numbers: readonly StatementLine[]
  readonly opening_balance_minor: number | null
  readonly organization_name: string
  readonly others_minor: number
  readonly payments: readonly StatementPayment[]
  readonly payments_minor: number
  readonly project_id: string
  readonly project_name: string
  readonly trunks: readonly StatementLine[]
}

export interface StatementLine {
  readonly billed_seconds: number
  readonly calls: number
  readonly charge_minor: number
  readonly id: string | null
  readonly label: string
}

export interface StatementPayment {
  readonly amount_minor: number
  readonly at: string
  readonly kind: 'top_up' | 'adjustment'
  readonly note: string | null
}

export interface AdmissionDryRunRequest {
  readonly service_type: 'trunk' | 'subtrunk' | 'voice_application' | 'automation'
  readonly service_id: string
  readonly called: string
  readonly caller: string
  readonly transport?: 'udp' | 'tcp' | 'tls' | null
  readonly offer?: DryRunOffer | null
}

export interface DryRunOffer {
  readonly codecs: readonly string[]
  readonly sdes_srtp: boolean
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

export interface CallFigures {
  readonly legs: readonly LegFigures[]
  readonly totals: MediaTotals
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

export interface LegCodec {
  readonly codec: string
  readonly from: string
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

export interface RecordingPause {
  readonly at_ms: number
  readonly length_ms: number | null
  readonly behavior: 'skip' | 'silence'
  readonly by: 'api' | 'document' | 'key'
}

export interface CallLadder {
  readonly messages: readonly SipMessage[]
  readonly retention_days: number
  readonly text: string
  readonly unavailable: string | null
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

export interface CallDecision {
  readonly attempts: readonly CallAttempt[]
  readonly decision: Readonly<Record<string, unknown>> | null
  readonly price: Readonly<Record<string, unknown>> | null
  readonly words: readonly string[]
}

export interface CallMedia {
  readonly legs: readonly LegQuality[]
  readonly totals: MediaTotals
  readonly unavailable_reason: string | null
}

export interface LegQuality {
  readonly figures: LegFigures | null
  readonly leg_id: string
  readonly samples: readonly QualitySample[]
  readonly samples_kept: number
}

export interface QualitySample {
  readonly at: string
  readonly stats: Readonly<Record<string, unknown>>
}

export interface CallEvidence {
  readonly format: string
  readonly about: EvidenceAbout
  readonly parts: Readonly<Record<string, unknown>>
  readonly digests: Readonly<Record<string, string>>
  readonly public_key: string
  readonly signature: string
}

export interface EvidenceAbout {
  readonly call_id: string
  readonly made_at: string
  readonly made_by: string
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

export interface CallExportRequest {
  readonly format: 'csv' | 'jsonl'
  readonly filter?: CallExportFilter
}

export interface CallExportFilter {
  readonly status?: 'queued' | 'ringing' | 'in-progress' | 'completed' | 'busy' | 'no-answer' | 'canceled' | 'failed'
  readonly direction?: 'inbound' | 'outbound-api' | 'outbound-dial' | 'outbound'
  readonly trunk_id?: string
  readonly application_id?: string
  readonly from?: string
  readonly to?: string
  readonly number?: string
  readonly reason?: string
  readonly call_id?: string
  readonly since?: string
  readonly before?: string
  readonly ended_since?: string
  readonly ended_before?: string
  readonly parent_call_id?: string
}

export interface ExportLinkRequest {
  readonly valid_seconds?: number
}

export interface ExportLink {
  readonly url: string | null
  readonly expires_at: string
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

export interface HeardRequest {
  readonly url: string
  readonly method?: 'GET' | 'POST'
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

export interface UpdateParticipantRequest {
  readonly muted?: boolean
  readonly hold?: boolean
  readonly hold_url?: string | null
  readonly coached_call_id?: string | null
  readonly end_on_exit?: boolean
  readonly beep_on_exit?: boolean
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

export interface CreateQueueRequest {
  readonly name: string
  readonly max_size?: number
}

export interface UpdateQueueRequest {
  readonly max_size: number
}

export interface QueueMember {
  readonly call_id: string
  readonly queue_id: string
  readonly position: number
  readonly wait_seconds: number
  readonly enqueued_at: string
}

export interface StartRecordingRequest {
  readonly channels?: number
  readonly track?: 'both' | 'inbound' | 'outbound'
  readonly trim?: boolean
}

export interface PauseRecordingRequest {
  readonly behavior?: 'silence' | 'skip'
}

export interface RetentionRequest {
  readonly retention_days: 30 | 90 | 365
}

export interface RetentionJob {
  readonly id: string
  readonly state: 'running' | 'completed'
  readonly retention_days: 30 | 90 | 365
  readonly total: number
  readonly done: number
  readonly begun_by: string
  readonly created_at: string
  readonly updated_at: string
  readonly finished_at: string | null
}

export interface CheckMarkupRequest {
  readonly markup: string
  readonly url?: string
}

export interface AlertOverview {
  readonly alerts: readonly Alert[]
  readonly as_of: string
  readonly containments: readonly Containment[]
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

export interface AlertThreshold {
  readonly amount_minor: number | null
  readonly currency: string | null
  readonly min_events: number | null
  readonly percent: string | null
  readonly window_seconds: number | null
}

export interface AlertPolicyChanges {
  readonly channels?: readonly ('email' | 'webhook' | 'in_app' | 'sms')[] | null
  readonly enabled?: boolean | null
  readonly resolution?: AlertResolutionInput
  readonly scope?: AlertScopeInput
  readonly threshold?: AlertThresholdInput
}

export interface AlertResolutionInput {
  readonly rule: 'below_threshold'
    | 'day_rollover'
    | 'month_rollover'
    | 'acknowledged_or_24h'
    | 'consecutive_successes'
    | 'later_revision'
  readonly amount_minor?: number | null
  readonly count?: number | null
  readonly currency?: 'NGN' | null
  readonly for_seconds?: number | null
  readonly percent?: string | null
}

export interface AlertScopeInput {
  readonly id?: string | null
  readonly label: string
  readonly type: 'account' | 'organization' | 'trunk' | 'subaccount' | 'webhook_endpoint'
}

export interface AlertThresholdInput {
  readonly amount_minor?: number | null
  readonly currency?: 'NGN' | null
  readonly min_events?: number | null
  readonly percent?: string | null
  readonly window_seconds?: number | null
}

export interface AlertSettings {
  readonly email_recipients: readonly string[] | null
  readonly quiet_from: string | null
  readonly quiet_to: string | null
  readonly sms_recipients: readonly string[]
  readonly updated_at: string | null
}

export interface AlertSettingsInput {
  readonly email_recipients: readonly string[] | null
  readonly quiet_from: string | null
  readonly quiet_to: string | null
  readonly sms_recipients: readonly string[]
}

export interface ReleaseRequestInput {
  readonly note: string
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

export interface CreateWebhookEndpointRequest {
  readonly url: string
  readonly description?: string | null
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
  readonly enabled?: boolean
}

export interface WebhookEndpointCreation {
  readonly endpoint: WebhookEndpoint
  readonly signing_secret: string | null
}

export interface UpdateWebhookEndpointRequest {
  readonly url?: string
  readonly description?: string | null
  readonly event_kinds?: readonly ('call.initiated'
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
  readonly enabled?: boolean
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

export interface RtpPorts {
  readonly start: number
  readonly end: number
}

export interface PlatformTransport {
  readonly port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
}

export interface PlatformTls {
  readonly realm: string
  readonly trust_chain: readonly string[]
}

export interface DestinationCountry {
  readonly calling_code: string
  readonly continent: 'africa' | 'americas' | 'asia' | 'europe' | 'oceania'
  readonly iso_code: string
  readonly name: string
  readonly shared_code: boolean
}
