import type { Tables } from '../create-tables.ts'

/** Calls and their records. */
export const CALLS: Tables = {
  call: {
    counted: 'position',
    columns:
      'sid project_id origin direction from_number to_number status queued_at updated_at account_sid? ' +
      'parent_call_sid? trunk_id? carrier_id? number_id? application_id? sip_call_id? source_ip? request? node_id? ' +
      'initiated_at? ringing_at? answered_at? ended_at? reason? ended_by? decision_trace? ' +
      'duration_seconds:int? sip_code:int? foreign_caller:int?',
    indexes: {
      call_account: 'account_sid position',
      call_live: ['node_id', 'ended_at is null'],
      call_parent: 'parent_call_sid',
      call_project: 'project_id position',
      call_sip_call_id: 'sip_call_id',
      call_trunk_position: 'trunk_id position',
    },
    unique: {
      call_sid: 'sid',
    },
  },
  cdr: {
    key: 'call_sid',
    columns:
      'call_sid project_id origin direction from_number to_number status started_at ended_at trunk_id? ' +
      'carrier_id? reason? ended_by? answered_at? media? duration_seconds:int sip_code:int? pdd_ms:int?',
    indexes: {
      cdr_ended: 'ended_at',
      cdr_trunk: 'trunk_id ended_at',
    },
  },
  call_attempt: {
    counted: 'id',
    columns:
      'call_sid target transport started_at sequence:int address? provisional_at? ended_at? result? reason? ' +
      'sip_code:int? sip_call_id?',
    indexes: {
      call_attempt_call: 'call_sid',
      call_attempt_sip_call_id: 'sip_call_id',
    },
  },
  call_event: {
    counted: 'id',
    columns: 'call_sid at kind detail number:int?',
    indexes: {
      call_event_call: 'call_sid',
    },
  },
  call_command: {
    counted: 'id',
    columns: 'call_sid kind payload created_at taken_by? done_at? outcome?',
    indexes: {
      call_command_waiting: ['id', 'done_at is null'],
    },
  },
  lease: {
    numbered: 'id',
    columns:
      'call_sid part node_id subtrunk_id? trunk_id? policy_id? parent_policy_id? subaccount_id? project_id ' +
      'begun_at ended_at?',
    indexes: {
      lease_live: ['node_id', 'ended_at is null'],
    },
    unique: {
      lease_call: 'call_sid part',
    },
  },
  level_use: {
    key: 'subject_id level',
    columns: 'level subject_id takes live:int',
  },
  refusal_day: {
    key: 'subject_id level day reason',
    columns: 'level subject_id day reason count:int',
  },
  sip_message: {
    counted: 'id',
    columns: 'sip_call_id at_ms:int direction protocol local remote retransmission:int text edge_id',
    defaults: { edge_id: '' },
    indexes: {
      sip_message_age: 'at_ms',
      sip_message_call: 'sip_call_id id',
    },
  },
  leg_figures: {
    key: 'call_sid leg_id',
    columns: 'call_sid leg_id ended_at figures',
  },
  media_quality: {
    counted: 'id',
    columns: 'call_sid leg_id at stats',
    indexes: {
      media_quality_call: 'call_sid',
    },
  },
  recording: {
    key: 'sid',
    columns:
      'sid call_sid project_id source track status file started_at created_at updated_at channels:int ' +
      'duration_ms:int? bytes:int? error_number:int? sha256? expires_at?',
    indexes: {
      recording_call: 'call_sid',
      recording_expiry: ['expires_at', "status = 'completed'"],
      recording_plain: ['sid', "status = 'completed' and file not like '%.sealed'"],
      recording_project: 'project_id status bytes',
      recording_project_created: 'project_id created_at sid',
    },
  },
  recording_consent: {
    key: 'project_id',
    columns: 'project_id accepted_at accepted_by terms_version',
  },
  retention_job: {
    counted: 'position',
    columns:
      'id project_id state begun_by after_created_at after_sid created_at updated_at finished_at? ' +
      'retention_days:int total:int done:int',
    unique: {
      retention_job_id: 'id',
    },
  },
  registration: {
    key: 'credential_id contact',
    columns:
      'credential_id contact trunk_id source_address source_port:int transport user_agent? registered_at ' +
      'expires_at',
    indexes: {
      registration_trunk: 'trunk_id',
    },
  },
  simulated_call: {
    counted: 'position',
    columns: 'id project_id to_number message created_at',
    indexes: {
      simulated_call_project: 'project_id position',
    },
    unique: {
      simulated_call_id: 'id',
    },
  },
  sip_dialog: {
    key: 'server dialog_id',
    columns: 'server dialog_id node_id began_at',
    indexes: {
      sip_dialog_node: 'node_id',
    },
  },
  project_load: {
    key: 'project_id step_ms begin_ms',
    columns: 'project_id step_ms:int begin_ms:int most_calls:int call_ms:int',
    clustered: true,
    indexes: {
      project_load_age: 'step_ms begin_ms',
    },
  },
  trunk_step: {
    key: 'trunk_id step_ms begin_ms',
    columns:
      'trunk_id step_ms:int begin_ms:int attempts:int answered:int answered_seconds:int pdd_calls:int ' +
      'pdd_ms:int measured_calls:int no_media_calls:int one_way_calls:int transcoded_calls:int ' +
      'packets_received:int packets_lost:int jitter_legs:int jitter_us:int mos_legs:int mos_thousandths:int',
    clustered: true,
    indexes: {
      trunk_step_age: 'step_ms begin_ms',
    },
  },
  trunk_step_failure: {
    key: 'trunk_id step_ms begin_ms platform_reason sip_code',
    columns: 'trunk_id step_ms:int begin_ms:int platform_reason sip_code:int calls:int',
    clustered: true,
    indexes: {
      trunk_step_failure_age: 'step_ms begin_ms',
    },
  },
}
