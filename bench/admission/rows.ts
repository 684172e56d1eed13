import type * as state from '../../core/state/index.ts'

/** The rows of one project that admission needs, for benchmarks and tests. */

export const ROWS_AT = '2026-03-01T00:00:00.000Z'

type Row<Table, Given extends keyof state.NewRow<Table>> = Pick<state.NewRow<Table>, Given> &
  Partial<state.NewRow<Table>>

export const organizationRow = (id: string, name: string): state.NewRow<state.OrganizationTable> => ({
  id,
  name,
  time_zone: 'Africa/Lagos',
  created_at: ROWS_AT,
})

export const projectRow = (
  given: Row<state.ProjectTable, 'id' | 'organization_id' | 'name' | 'billing_account_id'>,
): state.NewRow<state.ProjectTable> => ({
  status: 'active',
  currency: 'NGN',
  sandbox: 0,
  billing_assignment_revision: 1,
  billing_effective_from: ROWS_AT,
  created_at: ROWS_AT,
  ...given,
})

/** Returns a prepaid account. */
export const accountRow = (
  given: Row<state.BillingAccountTable, 'id' | 'balance_minor'>,
): state.NewRow<state.BillingAccountTable> => ({
  name: 'Payer',
  currency: 'NGN',
  prepaid: 1,
  credit_minor: 0,
  held_minor: 0,
  ...given,
})

/** Returns a policy without ceilings. */
export const policyRow = (
  given: Row<state.OutboundPolicyTable, 'id' | 'project_id' | 'name'>,
): state.NewRow<state.OutboundPolicyTable> => ({
  status: 'active',
  system_default: 0,
  billing_group: 'standard',
  concurrency: null,
  cps: null,
  daily_spend_limit_minor: null,
  max_call_duration_seconds: null,
  max_destination_rate_minor: null,
  calling_hours: null,
  recording_mode: 'off',
  recording_channels: 2,
  recording_retention_days: 30,
  revision: 1,
  created_at: ROWS_AT,
  created_by: null,
  updated_at: ROWS_AT,
  ...given,
})

export const attachmentRow = (
  given: Row<state.PolicyAttachmentTable, 'id' | 'policy_id' | 'project_id' | 'service_type' | 'service_id'>,
): state.NewRow<state.PolicyAttachmentTable> => ({
  note: null,
  outbound_enabled: 1,
  attached_at: ROWS_AT,
  applied_at: ROWS_AT,
  ...given,
})

export const trunkRow = (
  given: Row<state.TrunkTable, 'id' | 'project_id' | 'name' | 'signaling_fqdn' | 'concurrency' | 'cps'>,
): state.NewRow<state.TrunkTable> => ({
  subaccount_id: null,
  status: 'enabled',
  direction: 'both',
  auth_mode: 'ip_allow_list',
  require_tls: 0,
  source_validation: 'relaxed',
  transfers: 'consume',
  media_security: 'rtp',
  codecs: '["PCMA","PCMU"]',
  max_call_duration_seconds: 14_400,
  revision: 1,
  created_at: ROWS_AT,
  updated_at: ROWS_AT,
  ...given,
})

export const targetRow = (
  given: Row<state.TerminationTargetTable, 'id' | 'trunk_id' | 'sip_uri'>,
): state.NewRow<state.TerminationTargetTable> => ({
  transport: 'udp',
  priority: 10,
  weight: 100,
  enabled: 1,
  created_at: ROWS_AT,
  updated_at: ROWS_AT,
  ...given,
})

/** Returns a number that the project holds. */
export const numberRow = (
  given: Row<state.NumberTable, 'id' | 'e164' | 'project_id'>,
): state.NewRow<state.NumberTable> => ({
  status: 'held',
  route_kind: null,
  route_id: null,
  quarantined_until: null,
  revision: 1,
  created_at: ROWS_AT,
  updated_at: ROWS_AT,
  ...given,
})

export const priceBookRow = (
  given: Row<state.PriceBookTable, 'id' | 'project_id'>,
): state.NewRow<state.PriceBookTable> => ({
  name: 'Standard',
  direction: 'outbound',
  currency: 'NGN',
  effective_from: '2026-01-01T00:00:00.000Z',
  revision: 1,
  created_at: ROWS_AT,
  ...given,
})

/** Returns a rate of one major unit per minute in increments of ten seconds. By default it covers all of Nigeria. */
export const rateRow = (given: Row<state.RateTable, 'id' | 'price_book_id'>): state.NewRow<state.RateTable> => ({
  prefix: '234',
  label: 'Nigeria',
  rate_micro: 60_000_000,
  rate_unit: 'minute',
  increment_initial_seconds: 10,
  increment_additional_seconds: 10,
  ...given,
})
