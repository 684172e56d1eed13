import type { Entry } from '../../markup/interpreter/types.ts'
import type { WaitOutcome } from '../b2bua/script-host.ts'

/** A document that a leg hears while it waits. */
export interface WaitDocument {
  readonly kind: 'queue_wait' | 'conference_wait' | 'whisper'
  readonly entry: Entry
  /** Whether the document starts again when it finishes. */
  readonly again: boolean
  readonly parameters: () => Readonly<Record<string, string>>
  readonly done: (outcome: WaitOutcome) => void
  /** Something else replaces the document before its end. */
  readonly replaced?: () => void
}
