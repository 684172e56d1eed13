import type { EndFacts, Ending } from '../../core/domain/calls/endings.ts'
import type { CallFacts } from '../../core/domain/calls/parameters.ts'
import type { CallRequest } from '../../core/domain/calls/request.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { CallRow } from '../../core/state/calls/running-calls.ts'
import type { CallEventTable, Trx } from '../../core/state/index.ts'
import type { MediaEvent, MediaSession } from './media.ts'

/** Why the document of a call could not be run. */
export interface DocumentFailure {
  readonly number: number
  readonly detail: string
}

/** A call as the scripts on its legs see it: who calls whom, what is written about it, and its end. */
export interface ScriptedCall {
  readonly sid: string
  readonly project_id: string
  /** The call's row, with the changes that are being written. */
  readonly row_now: CallRow
  readonly request: CallRequest
  readonly facts: CallFacts
  readonly session: MediaSession
  readonly clock: Clock
  readonly log: Log
  readonly answered: boolean
  readonly ended: boolean
  /**
   * Why our number sends the caller on with the next Dial, as a reason of RFC 5806: the outcome of the Dial before it,
   * else `unconditional`.
   */
  divertsBecause: string
  /** The standard request parameters of voice-compat.md §7.2, with current values. */
  parameters(): Record<string, string>
  /** Returns the number of the next script run on this call, from 1. */
  nextRun(): number
  /** Writes in order, one transaction each. A failure is logged, and the call continues without it. */
  persist(work: (trx: Trx) => Promise<unknown>): Promise<void>
  /** Writes callbacks like `persist`, and wakes their delivery. */
  persistCallbacks(work: (trx: Trx) => Promise<unknown>): Promise<void>
  event(kind: CallEventTable['kind'], number: number | null, detail: Readonly<Record<string, unknown>>): void
  /** The document cannot be run, and nothing runs in its place; null when something does again. */
  documentFailed(failure: DocumentFailure | null): void
  /** Passes `watcher` the media events of all legs until the returned function is called. */
  watchMedia(watcher: (event: MediaEvent) => void): () => void
  onEnd(listener: (ending: Ending) => void): void
  /** Ends the call once. Repeated calls wait for the same end. */
  end(facts: Omit<EndFacts, 'answered'>): Promise<void>
}
