import type { Tables } from '../create-tables.ts'

/** Callbacks and webhooks to deliver. */
export const DELIVERY: Tables = {
  outbox: {
    counted: 'id',
    columns:
      'ordering_key project_id kind url method parameters event_id next_attempt_at created_at attempts:int ' +
      'delivered:int given_up:int last_status:int? call_sid? lease_until? last_error? lease_by?',
    indexes: {
      outbox_call: 'call_sid url',
      outbox_due: ['next_attempt_at', 'delivered = 0 and given_up = 0'],
      outbox_waiting: ['ordering_key id', 'delivered = 0 and given_up = 0'],
    },
  },
  webhook_endpoint: {
    key: 'id',
    columns:
      'id project_id url description? event_kinds secret_sealed previous_secret_sealed? ' +
      'previous_secret_retires_at? created_at updated_at deleted_at? enabled:int revision:int',
    indexes: {
      webhook_endpoint_project: 'project_id',
    },
  },
  webhook_delivery: {
    counted: 'position',
    columns:
      'id endpoint_id project_id event_id event_kind payload state next_attempt_at lease_until? last_error? ' +
      'last_attempt_at? delivered_at? expires_at created_at attempts:int last_status:int?',
    indexes: {
      webhook_delivery_endpoint: 'endpoint_id position',
      webhook_delivery_waiting: ['next_attempt_at', "state = 'pending'"],
    },
    unique: {
      webhook_delivery_id: 'id',
    },
  },
  told_event: {
    key: 'name',
    columns: 'name position:int',
  },
}
