import type { Generated } from 'kysely'
import type { Flag, Instant } from './configuration.ts'

/** A call of the general API's sandbox. It is never placed. Its state follows from its number and age. */
export interface SimulatedCallTable {
  position: Generated<number>
  /** UUID. */
  id: string
  project_id: string
  to_number: string
  message: string
  created_at: Instant
}

/** A conference from its first participant to its end. */
export interface ConferenceTable {
  position: Generated<number>
  sid: string
  project_id: string
  account_sid: string
  friendly_name: string
  /** Null until a node has the first participant. */
  node_id: string | null
  created_at: Instant
  started_at: Instant | null
  /** Null while it runs, and when its node was lost. A conference without a live participant is over. */
  ended_at: Instant | null
  /** Why it ended, as `ReasonConferenceEnded` of its callback has it. */
  reason_ended: string | null
  call_sid_ending: string | null
  updated_at: Instant
}

/** One call in one conference. */
export interface ConferenceParticipantTable {
  conference_sid: string
  call_sid: string
  project_id: string
  label: string | null
  muted: Flag
  hold: Flag
  speaking: Flag
  coached_call_sid: string | null
  start_on_enter: Flag
  end_on_exit: Flag
  created_at: Instant
  /** Null until its call is in the conference. */
  joined_at: Instant | null
  left_at: Instant | null
  revision: number
  updated_at: Instant
}

/** A queue of callers. It stays when it is empty. Its sid follows from the project and the name. */
export interface CallQueueTable {
  position: Generated<number>
  sid: string
  project_id: string
  friendly_name: string
  max_size: number
  /** The node that keeps the queue, where machines share the state; void when it is lost. */
  node_id: string | null
  revision: number
  created_at: Instant
  updated_at: Instant
}

/** A caller in a queue. The queue is in the order of `position`. */
export interface QueueMemberTable {
  position: Generated<number>
  call_sid: string
  queue_sid: string
  project_id: string
  enqueued_at: Instant
}

/** What runs on a call beside its document, or a program's wish to hear of its messages. */
export interface CallActivityTable {
  /** `MZ`, `SR`, `GT` or `ZY`, by its kind. */
  sid: string
  call_sid: string
  project_id: string
  kind: 'stream' | 'siprec' | 'transcription' | 'subscription'
  name: string | null
  /** It is over with its call too, whoever wrote the end of the call. */
  status: 'in-progress' | 'stopped'
  created_at: Instant
  updated_at: Instant
}

/** A document of markup that the platform serves. */
export interface VoiceDocumentTable {
  /** `doc_` and a UUID. */
  id: string
  project_id: string
  name: string
  /** Markup, with `{{Parameter}}` for the parameters of the request. */
  content: string
  revision: number
  created_at: Instant
  updated_at: Instant
  /** Who saved it last, for people. */
  updated_by: string
}

/** What a document was at one of its revisions. */
export interface VoiceDocumentRevisionTable {
  document_id: string
  project_id: string
  revision: number
  name: string
  content: string
  saved_at: Instant
  saved_by: string
}
