import type { Tables } from '../create-tables.ts'

/** The configuration of customers and operators: trunks, carriers, numbers, policies, applications. */
export const CONFIGURATION: Tables = {
  trunk: {
    key: 'id',
    columns:
      'id project_id name status direction auth_mode source_validation media_security codecs signaling_fqdn ' +
      'created_at updated_at require_tls:int concurrency:int cps:int max_call_duration_seconds:int ' +
      'revision:int subaccount_id?',
    indexes: {
      trunk_project: 'project_id name',
      trunk_releasing: ['id', "status = 'releasing'"],
    },
  },
  trunk_source: {
    key: 'id',
    columns: 'id trunk_id cidr created_at enabled:int selector_precedence:int standing range_key',
    defaults: { standing: 'full', range_key: '' },
    indexes: {
      trunk_source_range: 'range_key standing enabled',
      trunk_source_trunk: 'trunk_id',
    },
  },
  digest_proof: {
    key: 'trunk_id address',
    columns: 'trunk_id address address_key day',
    indexes: {
      digest_proof_address: 'address_key',
    },
  },
  digest_credential: {
    key: 'id',
    columns:
      'id trunk_id realm username ha1_md5 ha1_sha256 created_at enabled:int new_applied_at? ' +
      'previous_retires_at? revoked_at? rotated_from_id? valid_until?',
    indexes: {
      digest_credential_trunk: 'trunk_id',
      digest_credential_unapplied: ['id', 'new_applied_at is null and revoked_at is null'],
      digest_credential_user: 'username realm',
    },
  },
  termination_target: {
    key: 'id',
    columns:
      'id trunk_id sip_uri transport created_at updated_at priority:int weight:int enabled:int ' +
      'tls_verification tls_fingerprint? redirects digest_username? digest_password_sealed?',
    defaults: { tls_verification: 'required', redirects: 'off' },
    indexes: {
      termination_target_trunk: 'trunk_id',
    },
  },
  target_evidence: {
    key: 'target_id node_id',
    columns: 'target_id node_id state misses:int last_code:int? address? checked_at',
  },
  trunk_setting: {
    key: 'trunk_id',
    columns: 'trunk_id country default_caller?',
  },
  short_code: {
    key: 'id',
    columns: 'id project_id? code sends_to',
    indexes: {
      short_code_code: 'code',
    },
  },
  trunk_test_run: {
    key: 'id',
    columns:
      'id project_id trunk_id requested_kind requested_revision:int destination? result finding? call_sid? ' +
      'call_summary? configuration_revision:int? run_by scheduled:int node_id? started_at finished_at?',
    indexes: {
      trunk_test_run_running: ['started_at', "result = 'running'"],
      trunk_test_run_trunk: 'trunk_id started_at',
    },
  },
  trunk_test_check: {
    key: 'id',
    columns: 'id run_id sequence:int state summary? target_ref? node_id? duration_ms:int? occurred_at?',
    indexes: {
      trunk_test_check_run: 'run_id sequence',
    },
  },
  carrier: {
    key: 'id',
    columns: 'id name codecs created_at enabled:int sandbox:int revision:int redirects',
    defaults: { redirects: 'off' },
  },
  carrier_credential: {
    key: 'carrier_id',
    columns: 'carrier_id username password_sealed',
  },
  carrier_source: {
    key: 'id',
    columns: 'id carrier_id cidr',
  },
  carrier_target: {
    key: 'id',
    columns: 'id carrier_id sip_uri transport priority:int weight:int enabled:int tls_verification tls_fingerprint?',
    defaults: { tls_verification: 'required' },
  },
  carrier_route: {
    key: 'id',
    columns: 'id carrier_id prefix priority:int cost_minor:int',
  },
  carrier_registration: {
    key: 'carrier_id',
    columns:
      'carrier_id registrar transport username password_sealed contact_user expires_seconds:int enabled:int ' +
      'tls_verification tls_fingerprint?',
    defaults: { tls_verification: 'required' },
  },
  carrier_registration_state: {
    key: 'carrier_id',
    columns:
      'carrier_id node_id state detail? registered_at? expires_at? next_try_at? changed_at last_code:int? ' +
      'failures:int',
  },
  number: {
    key: 'id',
    columns: 'id e164 status created_at updated_at project_id? route_kind? route_id? quarantined_until? revision:int',
    indexes: {
      number_project: 'project_id',
      number_route: 'route_kind route_id',
    },
    unique: {
      number_e164: 'e164',
    },
  },
  number_order: {
    counted: 'position',
    columns: 'id project_id numbers created_at',
    unique: {
      number_order_id: 'id',
    },
  },
  number_block: {
    key: 'id',
    columns: 'id project_id start end created_at size:int',
    indexes: {
      number_block_project: 'project_id start',
    },
  },
  delegation: {
    key: 'id',
    columns: 'id block_id subtrunk_id start end status assigned_at assigned_by size:int',
    indexes: {
      delegation_block: 'block_id',
      delegation_subtrunk: 'subtrunk_id',
    },
  },
  subtrunk: {
    key: 'id',
    columns:
      'id project_id trunk_id name status created_at updated_at concurrency:int? cps:int? ' +
      'daily_spend_cap_minor:int? velocity_cap_minor:int? max_call_duration_seconds:int? ' +
      'max_destination_rate_minor:int? revision:int',
    indexes: {
      subtrunk_releasing: ['id', "status = 'releasing'"],
      subtrunk_trunk: 'trunk_id name',
    },
  },
  outbound_policy: {
    key: 'id',
    columns:
      'id project_id name status billing_group recording_mode created_at created_by? updated_at ' +
      'system_default:int concurrency:int? cps:int? daily_spend_limit_minor:int? ' +
      'max_call_duration_seconds:int? max_destination_rate_minor:int? recording_channels:int ' +
      'recording_retention_days:int revision:int',
    indexes: {
      outbound_policy_project: 'project_id name',
    },
  },
  policy_rule: {
    key: 'id',
    columns: 'id policy_id op kind value prefix label? created_at',
    indexes: {
      policy_rule_op: 'policy_id op',
      policy_rule_prefix: 'policy_id prefix',
    },
    unique: {
      policy_rule_value: 'policy_id kind value',
    },
  },
  policy_attachment: {
    key: 'id',
    columns: 'id policy_id project_id service_type service_id note? attached_at applied_at? outbound_enabled:int',
    indexes: {
      policy_attachment_policy: 'policy_id',
      policy_attachment_unapplied: ['attached_at', 'applied_at is null'],
    },
    unique: {
      policy_attachment_service: 'service_id service_type',
    },
  },
  project_ceiling: {
    key: 'project_id',
    columns:
      'project_id updated_at concurrency:int? cps:int? daily_spend_cap_minor:int? velocity_cap_minor:int? ' +
      'max_call_duration_seconds:int? max_destination_rate_minor:int? revision:int',
  },
  voice_application: {
    key: 'id',
    columns:
      'id project_id name voice_url voice_method fallback_method status_callback_method created_at updated_at ' +
      'fallback_url? status_callback_url? deleted_at? revision:int',
    indexes: {
      voice_application_project: 'project_id name',
    },
  },
  configuration: {
    numbered: 'id',
    columns: 'revision:int',
  },
  apply_report: {
    key: 'node_id resource_id',
    columns: 'node_id resource_id state applied_at revision:int error?',
    indexes: {
      apply_report_resource: 'resource_id',
    },
  },
}
