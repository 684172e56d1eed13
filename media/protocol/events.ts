// What signaling is told by the media worker.
import Type, { type TSchema } from 'typebox'
import { Id, LegStats, orNull, words } from './values.ts'

const event = <const P extends Record<string, TSchema>>(fields: P) => Type.Object(fields)

export const EVENTS = {
  'play.ended': event({
    leg_id: Id,
    play_id: Id,
    /** `failed`: not one source could be played. Single failures are listed whatever the reason. */
    reason: words('finished', 'stopped', 'failed'),
    detail: Type.Optional(Type.String()),
    failures: Type.Array(
      Type.Object({
        /** Of the source in the list. */
        index: Type.Integer(),
        reason: words('fetch_failed', 'audio_unsupported', 'speech_failed', 'file_refused'),
        detail: Type.String(),
      }),
    ),
  }),
  'digits.sent': event({ leg_id: Id, send_id: Id }),
  /**
   * One for each key press, when the key is known (not when it is released): `duration_ms` is what was heard so far.
   */
  dtmf: event({
    leg_id: Id,
    digit: Type.String(),
    duration_ms: Type.Integer(),
    source: words('rfc4733', 'inband'),
  }),
  /**
   * Exactly one for each record.start that was not refused. `duration_ms`, `bytes`, `sha256` are of the finished
   * file.
   */
  'record.ended': event({
    recording_id: Id,
    reason: words('stopped', 'silence', 'key', 'max_length', 'leg_closed', 'disk_full', 'failed'),
    key: Type.Optional(Type.String()),
    duration_ms: Type.Integer(),
    bytes: Type.Integer(),
    /** Lower-case hex; null when there is no file (`failed`). */
    sha256: orNull(Type.String()),
    /** Nothing but silence, or nothing at all after trimming. */
    empty: Type.Boolean(),
    detail: Type.Optional(Type.String()),
  }),
  'fork.started': event({ leg_id: Id, fork_id: Id }),
  /** `code`: the number of voice-compat.md §12.5; each number once for a stream. */
  'fork.warning': event({ leg_id: Id, fork_id: Id, code: Type.Integer(), detail: Type.String() }),
  'fork.ended': event({
    leg_id: Id,
    fork_id: Id,
    /** `failed`: it was never connected. */
    reason: words('stopped', 'leg_closed', 'closed_by_server', 'failed'),
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
    /** False: may still change. */
    final: Type.Boolean(),
    language: orNull(Type.String()),
  }),
  /** `fault`: why it ended by itself; null when it was stopped or the leg is closed. */
  'recognize.ended': event({ leg_id: Id, recognize_id: Id, fault: orNull(Type.String()) }),
  'transcription.ended': event({
    recording_id: Id,
    /** Null: there is none, for the reason in `fault`. */
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
    /** What the verdict rests on. */
    evidence: Type.Array(
      Type.Object({ kind: words('speech', 'tone'), from_ms: Type.Integer(), to_ms: Type.Integer() }),
    ),
  }),
  'leg.latched': event({ leg_id: Id, address: Type.String(), port: Type.Integer() }),
  'leg.first_packet': event({ leg_id: Id }),
  /** No RTP received for 10 s; repeated each 10 s. Not sent while the peer holds us or sends nothing by its SDP. */
  'leg.silent': event({ leg_id: Id, for_ms: Type.Integer() }),
  /** SRTP was required and for 5 s not one packet was good, or the DTLS handshake of a browser's leg failed. */
  'leg.srtp_failed': event({ leg_id: Id }),
  'leg.stats': event({ leg_id: Id, session_id: Id, stats: LegStats }),
} as const
