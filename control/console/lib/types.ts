/** The parts of the management API's answers that pages read; /v1/openapi.json is their source. */

export type ApplyState = 'applying' | 'applied' | 'failed'

export interface TrunkSummary {
  readonly id: string
  readonly name: string
  readonly status: 'draft' | 'enabled' | 'disabled' | 'releasing' | 'released'
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly revision: number
  readonly concurrency_limit: number
  readonly concurrency_used: number
  readonly cps: string | null
  readonly currency: string
  readonly daily_spend_cap_minor: number | null
  readonly max_call_duration_seconds: number
  readonly max_destination_rate_minor: number | null
  readonly numbers: number
  readonly parent_name: string | null
  readonly signaling_fqdn: string | null
  readonly subaccount_id: string | null
  readonly subaccount_name: string | null
  readonly endpoints: { readonly count: number; readonly state: string }
}

export interface Trunk extends TrunkSummary {
  readonly as_of: string
  readonly authentication: {
    readonly mode: 'ip_allow_list' | 'digest'
    readonly require_tls: boolean
    readonly source_validation: 'relaxed' | 'strict'
    readonly sources: readonly { readonly cidr: string; readonly enabled: boolean; readonly id: string }[]
    readonly digest_identities: readonly {
      readonly enabled: boolean
      readonly realm: string
      readonly username: string
    }[]
  }
  readonly endpoint_evidence: readonly {
    readonly detail: string
    readonly last_attempt_at: string | null
    readonly last_result: { readonly at: string; readonly code: string } | null
    readonly priority: number
    readonly sip_uri: string
    readonly state: string
  }[]
  readonly limits: Readonly<
    Record<'concurrency' | 'cps' | 'max_call_duration', { readonly configured: number; readonly unit: string }>
  >
  readonly media: { readonly codecs: readonly string[]; readonly security: 'rtp' | 'sdes_srtp_required' }
  readonly number_inventory: {
    readonly delegated: { readonly count: number; readonly to: string | null }
    readonly quarantined: { readonly count: number; readonly until: string | null }
    readonly range: string | null
    readonly routed: number
  }
  readonly outbound_policy: { readonly id: string; readonly name: string; readonly revision: number } | null
  readonly routes: readonly Target[]
  readonly apply: {
    readonly state: ApplyState
    readonly desired_revision: number
    readonly effective_revision: number
    readonly applied_at: string | null
    readonly error: string | null
  }
}

export interface Target {
  readonly id: string
  readonly sip_uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly priority: number
  readonly weight: number
  readonly enabled: boolean
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint: string | null
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
  readonly password?: string | null
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
  readonly top_failures: readonly {
    readonly calls: number
    readonly platform_reason: string
    readonly share_pct: string
    readonly sip_code: number | null
  }[]
  readonly window_hours: number
}

export interface TrunkTestRun {
  readonly id: string
  readonly result: 'running' | 'passed' | 'failed'
  readonly finding: string | null
  readonly run_by: string
  readonly scheduled: boolean
  readonly started_at: string
  readonly finished_at: string | null
  readonly configuration_revision: number | null
  readonly call_id: string | null
  readonly call_summary: string | null
  readonly checks: readonly TrunkTestCheck[]
}

export interface TrunkTestCheck {
  readonly id: string
  readonly sequence: number
  readonly state: 'waiting' | 'passed' | 'failed' | 'skipped'
  readonly summary: string | null
  readonly target_ref: string | null
  readonly node_id: string | null
  readonly duration_ms: number | null
  readonly occurred_at: string | null
}

export interface CallSummary {
  readonly id: string
  readonly direction: string
  readonly duration_seconds: number | null
  readonly ended_at: string | null
  readonly ended_by: string | null
  readonly from: string
  readonly to: string
  readonly origin: string
  readonly parent_call_id: string | null
  readonly queued_at: string
  readonly reason: string | null
  readonly sip_code: number | null
  readonly start_time: string | null
  readonly status: string
  readonly trunk_id: string | null
  readonly application_id: string | null
}

export interface Recording {
  readonly id: string
  readonly call_id: string
  readonly audio_href: string | null
  readonly bytes: number | null
  readonly channels: number
  readonly created_at: string
  readonly duration_ms: number | null
  readonly expires_at: string | null
  readonly source: string
  readonly started_at: string
  readonly status: string
  readonly track: string
}

export interface Attempt {
  readonly sequence: number
  readonly target: string
  readonly sip_call_id: string | null
  readonly address: string | null
  readonly transport: string
  readonly started_at: string
  readonly provisional_at: string | null
  readonly ended_at: string | null
  readonly sip_code: number | null
  readonly result: string | null
  readonly reason: string | null
}

export interface CallEvent {
  readonly at: string
  readonly kind: string
  readonly number: number | null
  readonly detail: Readonly<Record<string, unknown>>
}

export interface Call extends CallSummary {
  readonly attempts: readonly Attempt[]
  readonly carrier_id: string | null
  readonly events: readonly CallEvent[]
  readonly initiated_at: string | null
  readonly price_explanation: readonly string[] | null
  readonly record: {
    readonly duration_seconds: number
    readonly ended_at: string
    readonly media: Readonly<Record<string, unknown>> | null
    readonly pdd_ms: number | null
    readonly started_at: string
  } | null
  readonly recordings: readonly Recording[]
}

export interface LadderMessage {
  readonly at: string
  readonly direction: 'in' | 'out'
  readonly local: string
  readonly remote: string
  readonly protocol: string
  readonly retransmission: boolean
  readonly sip_call_id: string
  readonly text: string
}

export interface PhoneNumber {
  readonly id: string
  readonly e164: string
  readonly status: string
  readonly route: { readonly kind: string; readonly id: string; readonly name: string } | null
  readonly quarantined_until: string | null
  readonly revision: number
  readonly updated_at: string
}

export interface NumberBlock {
  readonly id: string
  readonly start: string
  readonly end: string
  readonly size: number
  readonly created_at: string
  readonly delegations: readonly {
    readonly id: string
    readonly subtrunk_id: string
    readonly start: string
    readonly end: string
    readonly size: number
  }[]
}

export interface Application {
  readonly id: string
  readonly name: string
  readonly created_at: string
  readonly updated_at: string
  readonly desired_revision: number
  readonly effective_revision: number
  readonly provisioning_status: string
  readonly revision: number
  readonly numbers_pointed: number
  readonly voice_url: string
  readonly voice_method: 'GET' | 'POST'
  readonly fallback_url: string | null
  readonly fallback_method: 'GET' | 'POST'
  readonly status_callback_url: string | null
  readonly status_callback_method: 'GET' | 'POST'
}

export interface PolicySummary {
  readonly id: string
  readonly name: string
  readonly status: string
  readonly system_default: boolean
  readonly revision: number
  readonly applied_services: number
  readonly attached_services: number
  readonly ceilings: {
    readonly concurrency: { readonly configured: number | null }
    readonly cps: { readonly configured: number | null }
    readonly max_call_duration: { readonly configured: number | null }
    readonly daily_spend: {
      readonly configured_minor: number | null
      readonly resets_at: string
      readonly used_today_minor: number
    }
    readonly max_destination_rate: { readonly configured_minor: number | null }
  }
  readonly destination_summary: {
    readonly allowed_countries: readonly string[]
    readonly allowed_prefixes: number
    readonly denied_prefixes: number
  }
  readonly recording: {
    readonly applied: boolean
    readonly mode: 'off' | 'all'
    readonly retention_days: 30 | 90 | 365
    readonly consent: Consent
  }
}

export interface Policy extends PolicySummary {
  readonly billing_group: string
  readonly created_at: string
  readonly created_by: string | null
  readonly destinations: {
    readonly allowed: readonly {
      readonly kind: string
      readonly label: string
      readonly match: string
      readonly rate_minor: number | null
      readonly rate_unit: string
      readonly increment_initial_seconds: number
      readonly increment_additional_seconds: number
    }[]
    readonly denied: readonly {
      readonly label: string
      readonly match: string
      readonly source: string
      readonly case_ref: string | null
    }[]
  }
}

export interface Consent {
  readonly accepted: boolean
  readonly accepted_at: string | null
  readonly accepted_by: string | null
  readonly terms_version: string
}

export interface ListOf<T> {
  readonly data: readonly T[]
}
