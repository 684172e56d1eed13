// The events that the media worker sends to signaling.
import Type, { type TSchema } from 'typebox'
import { Id, LegStats, orNull, words } from './values.ts'

const event = <const P extends Record<string, TSchema>>(fields: P) => Type.Object(fields)

export const EVENTS = {
  'play.ended': event({
    leg_id: Id,
    play_id: Id,
    /** `failed`: no source could be played. `failures` lists each source that failed, whatever the reason. */
    reason: words('finished', 'stopped', 'failed'),
    detail: Type.Optional(Type.String()),
    failures: Type.Array(
      Type.Object({
        /** The index of the source in the list. */
        index: Type.Integer(),
        /** `voice_unknown`: the source was spoken, by the engine's default voice. */
        reason: words('fetch_failed', 'audio_unsupported', 'speech_failed', 'file_refused', 'voice_unknown'),
        detail: Type.String(),
      }),
    ),
  }),
  'digits.sent': event({ leg_id: Id, send_id: Id }),
  /**
   * Sent once for each key press, as soon as the key is recognised and before it is released. `duration_ms` is the
   * duration heard so far.
   */
  dtmf: event({
    leg_id: Id,
    digit: Type.String(),
    duration_ms: Type.Integer(),
    source: words('rfc4733', 'inband'),
  }),
  /**
   * Sent exactly once for each record.start that was not refused. `duration_ms`, `bytes` and `sha256` describe the
   * finished file.
   */
  'record.ended': event({
    recording_id: Id,
    reason: words('stopped', 'silence', 'key', 'max_length', 'leg_closed', 'disk_full', 'failed'),
    key: Type.Optional(Type.String()),
    duration_ms: Type.Integer(),
    bytes: Type.Integer(),
    /** Lower-case hex; null when there is no file (`failed`). */
    sha256: orNull(Type.String()),
    /** The file holds only silence, or nothing after trimming. */
    empty: Type.Boolean(),
    detail: Type.Optional(Type.String()),
    /** Where each pause begins in the file, and how long it lasted. Absent when there was none. */
    pauses: Type.Optional(
      Type.Array(Type.Object({ at_ms: Type.Integer(), length_ms: Type.Integer(), silent: Type.Boolean() })),
    ),
  }),
  'fork.started': event({ leg_id: Id, fork_id: Id }),
  /** `code` is a number of voice-compat.md §12.5. Each number is sent at most once per stream. */
  'fork.warning': event({ leg_id: Id, fork_id: Id, code: Type.Integer(), detail: Type.String() }),
  'fork.ended': event({
    leg_id: Id,
    fork_id: Id,
    /** `failed`: the stream never connected. */
    reason: words('stopped', 'leg_closed', 'closed_by_server', 'failed'),
    error_code: orNull(Type.Integer()),
    detail: Type.String(),
  }),
  /** `code` is a number of voice-compat.md §15. Each number is sent at most once per session. */
  'relay.warning': event({ leg_id: Id, relay_id: Id, code: Type.Integer(), detail: Type.String() }),
  /**
   * The times between the end of the caller's speech and the first sound of the answer, in milliseconds: until the
   * detector was sure of the end, until its text was sent, until the application's first phrase was complete, until it
   * was speech, and until it was played.
   */
  'relay.turn': event({
    leg_id: Id,
    relay_id: Id,
    detector_ms: Type.Integer(),
    recognizer_ms: Type.Integer(),
    customer_ms: Type.Integer(),
    voice_ms: Type.Integer(),
    playout_ms: Type.Integer(),
    total_ms: Type.Integer(),
  }),
  'relay.ended': event({
    leg_id: Id,
    relay_id: Id,
    /** `ended`: by the application's `end`. `failed`: `error_code` and `detail` say why. */
    reason: words('stopped', 'ended', 'failed'),
    hand_off: orNull(Type.String()),
    error_code: orNull(Type.Integer()),
    detail: Type.String(),
  }),
  'recognize.started': event({ leg_id: Id, recognize_id: Id, track: words('inbound', 'outbound') }),
  'recognize.result': event({
    leg_id: Id,
    recognize_id: Id,
    track: words('inbound', 'outbound'),
    text: Type.String(),
    /** 0 to 1. */
    confidence: Type.Number(),
    /** False when the text may still change. */
    final: Type.Boolean(),
    language: orNull(Type.String()),
  }),
  /** The engine serves otherwise than it was asked to, for example by another model. Sent once at most. */
  'recognize.warning': event({ leg_id: Id, recognize_id: Id, detail: Type.String() }),
  /** `fault` is why the recognition failed; null when it was stopped or its leg was closed. */
  'recognize.ended': event({ leg_id: Id, recognize_id: Id, fault: orNull(Type.String()) }),
  'transcription.ended': event({
    recording_id: Id,
    /** Null when there is none. `fault` is the reason. */
    text: orNull(Type.String()),
    confidence: Type.Number(),
    fault: orNull(Type.String()),
  }),
  'leg.voice': event({ leg_id: Id, speaking: Type.Boolean() }),
  'amd.result': event({
    leg_id: Id,
    answered_by: words(
      'human',
      'fax',
      'unknown',
      'machine_start',
      'machine_end_beep',
      'machine_end_silence',
      'machine_end_other',
    ),
    duration_ms: Type.Integer(),
    /** The segments of audio on which the verdict is based. */
    evidence: Type.Array(
      Type.Object({ kind: words('speech', 'tone'), from_ms: Type.Integer(), to_ms: Type.Integer() }),
    ),
  }),
  'leg.latched': event({ leg_id: Id, address: Type.String(), port: Type.Integer() }),
  'leg.first_packet': event({ leg_id: Id }),
  /**
   * No RTP arrived for 10 s. Repeated every 10 s. Not sent while the peer's SDP puts us on hold or announces no media.
   * Of a browser also, with `no_consent`, each 5 s from the 30th on in which it has sent no ICE check, on hold too, and
   * with 0 when it sends them again.
   */
  'leg.silent': event({ leg_id: Id, for_ms: Type.Integer(), no_consent: Type.Optional(Type.Literal(true)) }),
  /** SRTP is required and no packet was authentic for 5 s, or the DTLS handshake of a browser's leg failed. */
  'leg.srtp_failed': event({ leg_id: Id }),
  /** What the reader of SDP forgave in the peer's description, a sentence each. No note comes twice. */
  'leg.sdp_notes': event({ leg_id: Id, notes: Type.Array(Type.String()) }),
  'leg.stats': event({ leg_id: Id, session_id: Id, stats: LegStats }),
} as const
