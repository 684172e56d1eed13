import type {
  ConferenceCommand,
  DequeueCommand,
  RecordingCommand,
} from '../../../core/domain/calls/control-commands.ts'
import type { Dequeue, Enqueue, Entry, Event, JoinConference } from '../../../markup/interpreter/types.ts'
import type { LegPolicy, PlaySource } from '../../../media/protocol/schema.ts'
import type { WaitOutcome } from '../../b2bua/script-host.ts'
import type { WaitDocument } from '../wait-document.ts'

// One node keeps a conference or a queue. A call of another machine visits it: its own node goes on to run the script
// and owns the call, and the keeper's node has a guest in its place. Between both runs an internal leg: SRTP between
// the media workers, with an offer and an answer in notes between the nodes. The rules of rooms and queues hold on the
// keeper's node alone.

/** What brings a leg into a conference or a queue. */
export type Stay = JoinConference | Enqueue | Dequeue

/** Stops a recording that runs, pauses it, or lets it go on. */
export type RecordingChange = Exclude<RecordingCommand, { readonly act: 'start' }>

/** What the APIs ask of the room or the queue that a call visits. */
export type KeeperRequest =
  | { readonly kind: 'dequeue'; readonly command: DequeueCommand }
  | { readonly kind: 'conference'; readonly command: ConferenceCommand }
  /** Of the recording of a conference. */
  | { readonly kind: 'recording'; readonly command: RecordingChange }

/** What the node of a call says to the keeper. */
export type VisitorNote =
  | {
      readonly kind: 'come'
      readonly visit: string
      readonly call_sid: string
      readonly stay: Stay
      readonly sdp: string
    }
  | {
      readonly kind: 'leave'
      readonly visit: string
      readonly how: 'leave' | 'hangup'
      /** The status of the call now. */
      readonly status: string
    }
  | {
      readonly kind: 'waited'
      readonly visit: string
      readonly wait: number
      readonly outcome: WaitOutcome | 'replaced'
    }
  | { readonly kind: 'ask'; readonly visit: string; readonly ask: number; readonly asked: KeeperRequest }
  /** Repeated while visits last. The keeper ends those that are not named any more. */
  | { readonly kind: 'present'; readonly visits: readonly string[] }

/** What the keeper says to the node of a call. */
export type KeeperNote =
  | { readonly kind: 'came'; readonly visit: string; readonly sdp: string }
  | { readonly kind: 'event'; readonly visit: string; readonly event: Event }
  /** Play this to the leg until `quiet`. */
  | { readonly kind: 'hear'; readonly visit: string; readonly sources: PlaySource[] }
  | {
      readonly kind: 'run'
      readonly visit: string
      readonly wait: number
      readonly document: Pick<WaitDocument, 'kind' | 'entry'> & {
        readonly parameters: Readonly<Record<string, string>>
      }
    }
  /** What the requests of the document that runs say from now on, such as the place in the queue. */
  | { readonly kind: 'facts'; readonly visit: string; readonly parameters: Readonly<Record<string, string>> }
  | { readonly kind: 'quiet'; readonly visit: string }
  | { readonly kind: 'update'; readonly visit: string; readonly entry: Entry }
  /** The outcome, for the row of the command. */
  | { readonly kind: 'answered'; readonly visit: string; readonly ask: number; readonly outcome: string }
  /** End the call. */
  | { readonly kind: 'end'; readonly visit: string }
  /** The keeper does not have the conference or queue, or not this visit. */
  | { readonly kind: 'gone'; readonly visit: string }
  /** The answer to `present`: those of them that are here. */
  | { readonly kind: 'known'; readonly visits: readonly string[] }

/** The events after which a leg has left. */
export const LEFT: ReadonlySet<Event['type']> = new Set(['conference_left', 'queue_left', 'dequeue_ended'])

/** How often a node says which of its calls visit another machine. */
export const PRESENT_MS = 2000
/** How long a visit lasts without a sign of the other machine. */
export const SILENT_MS = 15_000

/** Only the peer's keys open the media of an internal leg, from wherever it comes. */
export const internalPolicy = (codecs: LegPolicy['codecs']): LegPolicy => ({
  codecs,
  security: 'sdes_srtp_required',
  source_validation: 'relaxed',
  sources: [],
  signalled_from: null,
  telephone_event: true,
})

/** Reads a note; undefined when it is none. A newer node may say more. */
export function readNote(text: string): (VisitorNote | KeeperNote) | undefined {
  try {
    const note: unknown = JSON.parse(text)
    return typeof note === 'object' && note !== null && 'kind' in note ? (note as VisitorNote | KeeperNote) : undefined
  } catch {
    return undefined
  }
}
