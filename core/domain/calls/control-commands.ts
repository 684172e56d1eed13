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

type Track = 'inbound_track' | 'outbound_track' | 'both_tracks'

/** What a program may start on a call, with what it needs. The nouns of <Start> have the same settings. */
export type ActivityStart =
  | {
      readonly kind: 'stream'
      readonly url: string
      readonly track: Track
      readonly parameters: Readonly<Record<string, string>>
      readonly callback: Sound | null
    }
  | {
      readonly kind: 'siprec'
      /** A configured recording server; null is the first. */
      readonly connector: string | null
      readonly track: Track
      readonly parameters: Readonly<Record<string, string>>
      readonly callback: Sound | null
    }
  | {
      readonly kind: 'transcription'
      readonly track: Track
      readonly language: string
      readonly inbound_label: string | null
      readonly outbound_label: string | null
      readonly partial_results: boolean
      readonly model: string | null
      readonly hints: readonly string[]
      readonly profanity_filter: boolean
      readonly punctuation: boolean
      readonly engine: string | null
      readonly callback: Sound | null
    }
  /** Sends the messages of the call's client to the callback. */
  | { readonly kind: 'subscription'; readonly callback: Sound }

/** Starts what has a row already, stops it, or sends a message to the client of the call. */
export type ActivityCommand =
  | (ActivityStart & { readonly act: 'start'; readonly sid: string; readonly name: string | null })
  | { readonly act: 'stop'; readonly sid: string }
  /** Lets a person of the organization hear the call. `spoken`: what the parties are told; null is a tone. */
  | { readonly act: 'listen'; readonly listener_id: string; readonly spoken: string | null }
  | { readonly act: 'message'; readonly sid: string; readonly content: string }
