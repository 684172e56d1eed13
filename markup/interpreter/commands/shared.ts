import type { Target } from '../facts.ts'
import type { RecordingCallback } from './background.ts'

/** Commands of what several calls share: rooms and queues. */
export type SharedCommand = JoinConference | LeaveConference | Enqueue | LeaveQueue | Dequeue | StopDequeue

/**
 * Put this leg into a room. Answered by `conference_joined`, then `conference_left` when it is out again (also when
 * refused). Until the room starts the executor runs `wait` on this leg: a document as its own `conference_wait` run,
 * `default` music, or silence. The room's rules, callbacks and recording are the executor's.
 */
export interface JoinConference {
  readonly type: 'join_conference'
  readonly id: string
  readonly name: string
  readonly muted: boolean
  readonly beep: 'true' | 'false' | 'onEnter' | 'onExit'
  readonly start_on_enter: boolean
  readonly end_on_exit: boolean
  readonly label: string | null
  readonly wait: 'default' | 'silence' | Target
  readonly max_participants: number
  readonly record: boolean
  readonly trim: boolean
  readonly coach: string | null
  readonly jitter_buffer: 'off' | 'small' | 'medium' | 'large'
  readonly status_callback: (Target & { readonly events: readonly string[] }) | null
  readonly recording_callback: RecordingCallback | null
}

interface LeaveConference {
  readonly type: 'leave_conference'
  readonly id: string
}

/**
 * Put this (answered) leg at the tail of a queue, made on first use. Answered by `queue_left` when it is out. While it
 * waits the executor runs `wait` as a `queue_wait` run on this leg, or hold music. A wait run that is done with `leave`
 * takes it out (`leave`), with `hangup` ends the call. After a bridge to an agent: `bridged`, sent after the bridge.
 */
export interface Enqueue {
  readonly type: 'enqueue'
  readonly id: string
  readonly name: string
  readonly max_size: number | null
  readonly wait: Target | null
}

/** Take this leg out of the queue, or out of the bridge with the agent. */
interface LeaveQueue {
  readonly type: 'leave_queue'
  readonly id: string
}

/**
 * Take the head caller of a queue and bridge it to this leg; wait for one while the queue is empty. `whisper` runs
 * on the queued caller's leg first (its parameters: QueueSid, CallSid, QueueTime, DequeingCallSid). Answered by
 * `dequeue_bridged`, then `dequeue_ended`; a queue that does not exist: `dequeue_ended` with `error`.
 */
export interface Dequeue {
  readonly type: 'dequeue'
  readonly id: string
  readonly name: string
  readonly whisper: Target | null
}

interface StopDequeue {
  readonly type: 'stop_dequeue'
  readonly id: string
}
