import type { Values } from '../attributes.ts'
import type { DIAL } from './attributes.ts'

export type DialValues = Values<typeof DIAL>
export type DialState = ChildrenState | RoomState | QueueState

/** State of a Dial's recording, for its action parameters. */
export interface RecordingState {
  readonly id: string
  readonly sid: string | null
  readonly url: string | null
  readonly duration_seconds: number | null
  readonly stopping: boolean
  readonly ended: boolean
}

/** One dialled child: `calling` until it answers, `digits` and `whisper` before the bridge, `over` after its end. */
export interface ChildState {
  readonly child: string
  /** Index of its noun. */
  readonly noun: number
  readonly stage: 'calling' | 'digits' | 'whisper' | 'answering' | 'bridging' | 'bridged' | 'over'
  readonly call_sid: string | null
  /** Whether `end_child` has been sent. */
  readonly ending: boolean
}

/** The end of the winner or, without one, of the last child to end. */
export interface DialOutcome {
  readonly status: 'completed' | 'busy' | 'no-answer' | 'failed' | 'canceled'
  readonly call_sid: string | null
  readonly duration_seconds: number | null
  readonly bridged: boolean
  readonly sip_code: number | null
  readonly sip_call_id: string | null
  readonly headers: Readonly<Record<string, string>>
}

export interface ChildrenState {
  readonly mode: 'children'
  readonly children: readonly ChildState[]
  /** Index of the next noun to dial. */
  readonly next: number
  readonly winner: string | null
  /** The id (`digits-…` or `answer-…`) that the winner waits for. */
  readonly awaited: string | null
  readonly ring_timer: string | null
  readonly limit_timer: string | null
  readonly ringing: boolean
  /** The child whose early media the caller hears. */
  readonly early: string | null
  readonly recording: RecordingState | null
  /** Set when the Dial is over and waits only for its recording or, after the caller's hang-up, for children. */
  readonly outcome: DialOutcome | null
  readonly gone: boolean
}

export interface RoomState {
  readonly mode: 'room'
  readonly id: string
  readonly joined: boolean
  readonly limit_timer: string | null
}

export interface QueueState {
  readonly mode: 'queue'
  readonly id: string
  readonly wait_timer: string | null
  readonly limit_timer: string | null
  readonly recording: RecordingState | null
  readonly bridged: {
    readonly queue_sid: string
    readonly call_sid: string
    readonly queue_time_seconds: number
  } | null
  readonly ended: { readonly result: string; readonly duration_seconds: number | null } | null
  readonly gone: boolean
}
