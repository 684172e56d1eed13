import type { Tables } from '../create-tables.ts'

/** Organizations, members, keys and sessions, and the audit trail. */
export const PEOPLE: Tables = {
  organization: {
    key: 'id',
    columns: 'id name time_zone contact_email? status revision:int created_at',
    defaults: { status: 'active', revision: '1' },
  },
  project: {
    key: 'id',
    columns:
      'id organization_id name status currency billing_account_id billing_effective_from created_at ' +
      'sandbox:int billing_assignment_revision:int suspended:int revision:int',
    defaults: { suspended: '0', revision: '1' },
  },
  member: {
    key: 'id',
    columns: 'id organization_id email password_hash role created_at operator:int',
    unique: {
      member_email: 'email',
    },
  },
  member_security: {
    key: 'member_id',
    columns: 'member_id totp_sealed? totp_enabled:int totp_last_step:int',
  },
  subaccount: {
    key: 'id',
    columns:
      'id project_id name status currency created_at updated_at max_concurrent:int? max_cps:int? ' +
      'daily_spend_cap_minor:int? max_call_duration_seconds:int? max_destination_rate_minor:int? revision:int',
    indexes: {
      subaccount_project: 'project_id name',
    },
  },
  voice_account: {
    key: 'project_id',
    columns: 'project_id account_sid auth_token_sealed key_id status call_event_history created_at revision:int',
    unique: {
      voice_account_sid: 'account_sid',
    },
  },
  api_key: {
    key: 'id',
    columns:
      'id project_id public_id secret_hash name role scopes created_at subaccount_id? expires_at? retires_at? ' +
      'rotated_from_id? revoked_at? last_used_at?',
    unique: {
      api_key_public_id: 'public_id',
    },
  },
  member_invitation: {
    key: 'id',
    columns: 'id token_hash organization_id email role created_at expires_at',
    indexes: {
      member_invitation_organization: 'organization_id',
    },
    unique: {
      member_invitation_token: 'token_hash',
    },
  },
  operator_key: {
    key: 'id',
    columns: 'id public_id secret_hash name scopes created_at expires_at? revoked_at? last_used_at?',
    unique: {
      operator_key_public_id: 'public_id',
    },
  },
  console_session: {
    key: 'id_hash',
    columns: 'id_hash member_id csrf_hash created_at last_seen_at expires_at address',
    indexes: {
      console_session_member: 'member_id',
    },
  },
  idempotency: {
    key: 'scope_hash',
    columns: 'scope_hash request_hash state created_at expires_at body? headers? status:int?',
    indexes: {
      idempotency_expiry: 'expires_at',
    },
  },
  audit_event: {
    counted: 'position',
    columns:
      'id organization_id project_id? at actor_type actor_id? actor_name actor_detail? category kind action ' +
      'summary detail? resource_type resource_id resource_name resource_href? trunk_id? request_id? changes ' +
      'previous_hash hash from_revision:int? to_revision:int?',
    indexes: {
      audit_event_organization: 'organization_id position',
    },
    unique: {
      audit_event_id: 'id',
    },
  },
  audit_head: {
    key: 'organization_id',
    columns: 'organization_id hash events:int',
  },
}
