import type { DocumentTarget } from '../facts.ts'
import type { RecordingCallback } from './background.ts'
import type { Callback } from './run.ts'

/** Commands for what several calls share: conferences and queues. */
export type SharedCommand = JoinConference | LeaveConference | Enqueue | LeaveQueue | Dequeue | StopDequeue

/**
 * Puts this leg into a conference. Answered by `conference_joined`, then by `conference_left` when the leg leaves; a
 * refused leg gets only `conference_left`. Until the conference starts, the executor runs `wait` on this leg: a
 * document as a separate `conference_wait` run, `default` music, or silence. The executor implements the conference's
 * rules, callbacks and recording.
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
  readonly wait: 'default' | 'silence' | DocumentTarget
  readonly max_participants: number
  readonly record: boolean
  /** Record this participant on a channel of its own, beside the mix. */
  readonly record_channels?: 2
  readonly trim: boolean
  readonly coach: string | null
  readonly status_callback: (DocumentTarget & { readonly events: readonly string[] }) | null
  readonly recording_callback: RecordingCallback | null
}

interface LeaveConference {
  readonly type: 'leave_conference'
  readonly id: string
}

/**
 * Puts this answered leg at the tail of a queue, which is created on first use. `queue_left` reports that the leg has
 * left. While the leg waits, the executor plays hold music or runs `wait` as a `queue_wait` run. When that run ends
 * with `leave`, the leg leaves the queue with result `leave`; when it ends with `hangup`, the call ends. After a bridge
 * to an agent the result is `bridged`, reported at the end of the bridge.
 */
export interface Enqueue {
  readonly type: 'enqueue'
  readonly id: string
  readonly name: string
  readonly max_size: number | null
  readonly wait: DocumentTarget | null
}

/** Takes this leg out of the queue, or out of the bridge with the agent. */
interface LeaveQueue {
  readonly type: 'leave_queue'
  /** The last request of the Enqueue, whose response is discarded. The executor adds `QueueTime`. */
  readonly farewell?: Callback
  readonly id: string
}

/**
 * Bridges the head caller of a queue to this leg, waiting for one while the queue is empty. `whisper` runs on the
 * queued caller's leg first, with the parameters QueueSid, CallSid, QueueTime and DequeingCallSid. Answered by
 * `dequeue_found`, `dequeue_bridged`, then `dequeue_ended`. For an unknown queue, `dequeue_ended` has result `error`.
 */
export interface Dequeue {
  readonly type: 'dequeue'
  readonly id: string
  readonly name: string
  readonly whisper: DocumentTarget | null
}

interface StopDequeue {
  readonly type: 'stop_dequeue'
  readonly id: string
}
