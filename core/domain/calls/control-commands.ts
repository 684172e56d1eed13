import type { PauseBehavior } from './recording-pauses.ts'

/** What the APIs ask of the node that runs a call: the payloads of its rows in `call_command`. */

/** A document or a sound, by URL. */
export interface Sound {
  readonly url: string
  readonly method: 'GET' | 'POST'
}

/** Changes what runs in a conference. Absent members stay as they are. */
export type ConferenceCommand =
  /** Everybody leaves, and the conference is over. */
  | { readonly act: 'end'; readonly conference_sid: string }
  /** Plays a sound to one participant, or to all. */
  | {
      readonly act: 'announce'
      readonly conference_sid: string
      readonly call_sid: string | null
      readonly sound: Sound
    }
  /** Takes a participant out. Its document goes on, so that a call without further verbs ends. */
  | { readonly act: 'kick'; readonly conference_sid: string; readonly call_sid: string }
  | {
      readonly act: 'change'
      readonly conference_sid: string
      readonly call_sid: string
      readonly muted?: boolean
      /** A participant on hold neither hears the others nor is heard. `hold_sound` null is the usual music. */
      readonly hold?: boolean
      readonly hold_sound?: Sound | null
      /** The call of the only participant who hears this one; null ends the coaching. */
      readonly coached_call_sid?: string | null
      readonly end_on_exit?: boolean
      readonly beep_on_exit?: boolean
    }

/** Takes a caller out of its queue, who then runs the document. */
export interface DequeueCommand extends Sound {
  readonly queue_sid: string
}

/** Begins a recording of a call whose row is written, or changes one that runs. */
export type RecordingCommand =
  | {
      readonly act: 'start'
      readonly sid: string
      readonly file: string
      readonly channels: 1 | 2
      readonly track: 'both' | 'inbound' | 'outbound'
      readonly trim: boolean
      readonly callback: (Sound & { readonly events: readonly string[] }) | null
    }
  | { readonly act: 'stop' | 'resume'; readonly sid: string }
  | { readonly act: 'pause'; readonly sid: string; readonly behavior: PauseBehavior }
