// What signaling may ask of the media worker.
import Type, { type TSchema } from 'typebox'
import {
  CodecName,
  closed,
  Direction,
  Empty,
  Id,
  Leg,
  LegPolicy,
  LegStats,
  orNull,
  PlaySource,
  Recording,
  Sdp,
  words,
} from './values.ts'

const method = <P extends TSchema, R extends TSchema, const E extends readonly string[]>(
  params: P,
  result: R,
  refusals: E,
) => ({ params, result, refusals })

/** Which audio of a leg goes elsewhere, and whose call that is. */
const listened = {
  leg_id: Id,
  /** `inbound`: what the leg's peer says; `outbound`: what it hears. */
  tracks: words('inbound', 'outbound', 'both'),
  account_sid: Type.String({ maxLength: 64 }),
  call_sid: Type.String({ maxLength: 64 }),
}

/** Every method may also be refused with COMMON_REFUSALS. */
export const METHODS = {
  hello: method(
    Type.Object({ client: Type.String({ minLength: 1, maxLength: 128 }) }, closed),
    Type.Object(
      {
        worker_id: Type.String(),
        pid: Type.Integer(),
        features: Type.Object(
          { codecs: Type.Array(CodecName), srtp_suites: Type.Array(Type.String()), transcode: Type.Array(CodecName) },
          closed,
        ),
      },
      closed,
    ),
    [],
  ),
  /** `owner` is the project whose share of decoding and speech its prompts take; without it, the session is alone. */
  'session.open': method(Type.Object({ session_id: Id, owner: Type.Optional(Id) }, closed), Empty, [
    'session_exists',
    'media_unavailable',
  ]),
  /** Closes its legs; recordings end with `leg_closed` (their events come after this reply). */
  'session.close': method(
    Type.Object({ session_id: Id }, closed),
    Type.Object({ legs: Type.Record(Type.String(), LegStats) }, closed),
    ['session_unknown'],
  ),
  'leg.open': method(
    Type.Object(
      {
        session_id: Id,
        leg_id: Id,
        policy: LegPolicy,
        /**
         * `webrtc`: a browser's leg, with ICE and DTLS-SRTP whatever `policy.security` says. Its SDP comes and goes by
         * the same methods; a failed handshake is told as `leg.srtp_failed`. Absent: `rtp`.
         */
        kind: Type.Optional(words('rtp', 'webrtc')),
      },
      closed,
    ),
    Type.Object({ rtp_port: Type.Integer() }, closed),
    ['session_unknown', 'leg_exists', 'media_unavailable'],
  ),
  /** Stores their offer, of an INVITE or a re-INVITE. Nothing changes on the wire before `leg.local_answer`. */
  'leg.remote_offer': method(
    Type.Object({ leg_id: Id, sdp: Sdp }, closed),
    Type.Object(
      {
        /** Offered and allowed by the policy, in the policy's order. */
        codecs: Type.Array(CodecName),
        /** Encoding names as offered, in the offer's order. */
        offered: Type.Array(Type.String()),
        /** What the peer asked for, from the peer's side: `sendonly` is a hold. */
        direction: Direction,
        hold: Type.Boolean(),
        secured: Type.Boolean(),
      },
      closed,
    ),
    ['leg_unknown', 'sdp_malformed', 'no_common_codec', 'srtp_required'],
  ),
  /**
   * The answer to the stored offer; called again without a new offer it gives the same text (183, then 200).
   * `prefer_leg` chooses that leg's settled codec when the offer allows it, so that the bridge is a relay; else comes
   * the policy's first codec that can be decoded here.
   */
  'leg.local_answer': method(
    Type.Object({ leg_id: Id, prefer_leg: Type.Optional(Id) }, closed),
    Type.Object({ sdp: Type.String(), codec: CodecName, direction: Direction }, closed),
    ['leg_unknown', 'offer_missing', 'no_common_codec', 'srtp_required'],
  ),
  /**
   * A first offer, or a re-offer with the o= version raised when anything changed (RFC 3264 §8). `prefer_leg` puts in
   * front what that leg has settled, or what its offer that waits for an answer allows.
   */
  'leg.local_offer': method(
    Type.Object({ leg_id: Id, prefer_leg: Type.Optional(Id), direction: Type.Optional(Direction) }, closed),
    Type.Object({ sdp: Type.String() }, closed),
    ['leg_unknown'],
  ),
  /** Their answer to our last offer; may come again (183, then 200, forked answers). */
  'leg.remote_answer': method(
    Type.Object({ leg_id: Id, sdp: Sdp }, closed),
    Type.Object({ codec: CodecName, direction: Direction, hold: Type.Boolean() }, closed),
    ['leg_unknown', 'offer_missing', 'sdp_malformed', 'codec_not_offered', 'srtp_required'],
  ),
  /** An offer, ours or theirs, was refused: back to the last settled state. */
  'leg.rollback': method(Leg, Empty, ['leg_unknown']),
  'leg.stats': method(Leg, LegStats, ['leg_unknown']),
  'leg.close': method(Leg, LegStats, ['leg_unknown']),

  /**
   * Joins two legs of one session both ways, replacing earlier bridges of either; redone by itself after re-INVITEs. A
   * leg joined with itself hears its own echo.
   */
  bridge: method(
    Type.Object({ a: Id, b: Id }, closed),
    Type.Object({ mode: words('relay', 'transcode'), codecs: Type.Tuple([CodecName, CodecName]) }, closed),
    ['leg_unknown', 'leg_not_ready', 'session_mismatch', 'transcode_unavailable'],
  ),
  unbridge: method(Leg, Empty, ['leg_unknown']),

  /**
   * Plays the sources one after the other, `loop` times (0: for ever). A play already running on the leg ends as
   * `stopped`.
   */
  'play.start': method(
    Type.Object(
      {
        leg_id: Id,
        play_id: Id,
        sources: Type.Array(PlaySource, { minItems: 1, maxItems: 100 }),
        loop: Type.Integer({ minimum: 0, maximum: 1000 }),
      },
      closed,
    ),
    Empty,
    ['leg_unknown', 'leg_not_ready'],
  ),
  /** Without `play_id`: whatever plays. Stopping what has ended already is no error. */
  'play.stop': method(Type.Object({ leg_id: Id, play_id: Type.Optional(Id) }, closed), Empty, ['leg_unknown']),
  /** `w` waits 0.5 s, `W` 1 s. By RFC 4733 when negotiated, else in-band. Several sends queue. */
  'digits.send': method(
    Type.Object({ leg_id: Id, send_id: Id, digits: Type.String({ pattern: '^[0-9A-D*#wW]{1,256}$' }) }, closed),
    Empty,
    ['leg_unknown', 'leg_not_ready'],
  ),
  /** Whether keys pass through a bridge (from the start: yes). */
  'dtmf.relay': method(Type.Object({ leg_id: Id, enabled: Type.Boolean() }, closed), Empty, ['leg_unknown']),
  /**
   * In-band detection; key events then have source `inband`. Without a word it is on for legs whose peer takes no
   * telephone-event while they are not bridged.
   */
  'inband.detect': method(Type.Object({ leg_id: Id, enabled: Type.Boolean() }, closed), Empty, ['leg_unknown']),

  'record.start': method(
    Type.Object(
      {
        session_id: Id,
        recording_id: Id,
        /** Absolute path ending in .wav inside the data folder. */
        file: Type.String({ minLength: 1, maxLength: 4096, pattern: '^/.*\\.wav$' }),
        /**
         * 2: left channel is what `left` sends, right is what `right` sends (null: what we play to `left`). 1: one
         * mix.
         */
        channels: Type.Union([Type.Literal(1), Type.Literal(2)]),
        left: orNull(Id),
        right: orNull(Id),
        /** `received`: only what `left` sends; `both`: the other channel or what we play as well. */
        what: words('received', 'both'),
        max_ms: orNull(Type.Integer({ minimum: 1, maximum: 86_400_000 })),
        /** Ends after so much silence on the left leg. */
        silence_ms: orNull(Type.Integer({ minimum: 100, maximum: 3_600_000 })),
        /** Keys of the left leg that end it; '' for none. */
        finish_keys: Type.String({ pattern: '^[0-9A-D*#]{0,16}$' }),
        beep: Type.Boolean(),
        /** Cuts leading and trailing silence off the finished file. */
        trim: Type.Boolean(),
      },
      closed,
    ),
    Empty,
    ['session_unknown', 'leg_unknown', 'leg_not_ready', 'recording_exists', 'file_refused', 'recording_unavailable'],
  ),
  'record.stop': method(Recording, Empty, ['recording_unknown']),
  /** While paused nothing is written: the paused time is not in the file. */
  'record.pause': method(Recording, Empty, ['recording_unknown']),
  'record.resume': method(Recording, Empty, ['recording_unknown']),
  /**
   * Joins a leg to a conference of this worker, or changes how it is in it. The conference is there from the first join
   * to the last leave. A bridge of the leg ends; what is played to the leg replaces the mix while it lasts.
   */
  'conference.join': method(
    Type.Object(
      {
        conference_id: Id,
        leg_id: Id,
        /** The others do not hear it. */
        muted: Type.Boolean(),
        /** It does not hear the others (hold). */
        deaf: Type.Boolean(),
        /** A leg of any session: nobody else hears this one (a coach). */
        heard_by: Type.Optional(orNull(Id)),
      },
      closed,
    ),
    Type.Object({ participants: Type.Integer() }, closed),
    ['leg_unknown', 'leg_not_ready', 'conference_full', 'transcode_unavailable'],
  ),
  'conference.leave': method(Leg, Empty, ['leg_unknown']),

  /**
   * A media stream to a WebSocket in the compatible form; its life is told by `fork.started`, `fork.warning`,
   * `fork.ended`.
   */
  'fork.start': method(
    Type.Object(
      {
        ...listened,
        fork_id: Id,
        url: Type.String({ minLength: 1, maxLength: 4096 }),
        /** The server's audio is played to the leg. */
        bidirectional: Type.Boolean(),
        stream_sid: Type.String({ maxLength: 64 }),
        /** The document's Parameter elements. */
        parameters: Type.Record(Type.String({ maxLength: 500 }), Type.String({ maxLength: 500 })),
        /** Further headers of the handshake: its signature. */
        headers: Type.Optional(Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 500 }))),
      },
      closed,
    ),
    Empty,
    ['leg_unknown', 'leg_not_ready', 'fork_exists', 'fork_limit', 'transcode_unavailable'],
  ),
  'fork.stop': method(Type.Object({ leg_id: Id, fork_id: Id }, closed), Empty, ['leg_unknown']),

  /**
   * Recognises what is said on a leg, until it is stopped: `recognize.started` at the beginning of speech,
   * `recognize.result` for each result, and at its end exactly one `recognize.ended`.
   */
  'recognize.start': method(
    Type.Object(
      {
        ...listened,
        recognize_id: Id,
        language: Type.String({ maxLength: 35 }),
        hints: Type.Array(Type.String({ maxLength: 100 }), { maxItems: 500 }),
        model: orNull(Type.String({ maxLength: 100 })),
        enhanced: Type.Boolean(),
        profanity_filter: Type.Boolean(),
        punctuation: Type.Boolean(),
        partial: Type.Boolean(),
        /** Silence that ends an utterance; null: the engine decides. */
        silence_ms: orNull(Type.Integer({ minimum: 0, maximum: 3_600_000 })),
        max_speech_ms: Type.Integer({ minimum: 1, maximum: 3_600_000 }),
      },
      closed,
    ),
    Empty,
    ['leg_unknown', 'leg_not_ready', 'recognition_exists', 'recognizer_unavailable', 'transcode_unavailable'],
  ),
  'recognize.stop': method(Type.Object({ leg_id: Id, recognize_id: Id }, closed), Empty, ['leg_unknown']),
  /** What is said in a finished file: `transcription.ended` follows, exactly once. */
  'recording.transcribe': method(
    Type.Object(
      {
        recording_id: Id,
        file: Type.String({ minLength: 1, maxLength: 4096, pattern: '^/.*\\.wav$' }),
        language: Type.String({ maxLength: 35 }),
      },
      closed,
    ),
    Empty,
    ['file_refused', 'recognizer_unavailable'],
  ),
  /** Whether `leg.voice` tells when the peer begins and ends to speak (from the start: no). */
  'voice.detect': method(Type.Object({ leg_id: Id, enabled: Type.Boolean() }, closed), Empty, ['leg_unknown']),

  /** Sends what a leg receives or sends on another leg as well, until either is closed. */
  'copy.start': method(Type.Object({ leg_id: Id, to_leg_id: Id, what: words('received', 'sent') }, closed), Empty, [
    'leg_unknown',
    'leg_not_ready',
    'transcode_unavailable',
  ]),

  /** Answering-machine detection from now on; ends with exactly one `amd.result` unless the leg closes before. */
  'amd.start': method(
    Type.Object(
      {
        leg_id: Id,
        mode: words('enable', 'message_end'),
        timeout_ms: Type.Integer({ minimum: 3000, maximum: 60_000 }),
        speech_threshold_ms: Type.Integer({ minimum: 1000, maximum: 6000 }),
        speech_end_threshold_ms: Type.Integer({ minimum: 500, maximum: 5000 }),
        silence_timeout_ms: Type.Integer({ minimum: 2000, maximum: 10_000 }),
      },
      closed,
    ),
    Empty,
    ['leg_unknown', 'leg_not_ready', 'amd_running', 'transcode_unavailable'],
  ),
  /** What a finished file holds, its header mended first when its writer was killed: for rows left over by a crash. */
  'record.inspect': method(
    Type.Object({ file: Type.String({ minLength: 1, maxLength: 4096, pattern: '^/.*\\.wav$' }) }, closed),
    Type.Object(
      { duration_ms: Type.Integer(), bytes: Type.Integer(), sha256: Type.String(), channels: Type.Integer() },
      closed,
    ),
    ['file_refused'],
  ),
} as const

/**
 * `params_invalid` names the first bad parameter; `media_unavailable` is also what the client says while the worker
 * is away.
 */
export const COMMON_REFUSALS = ['method_unknown', 'params_invalid', 'media_unavailable', 'internal'] as const
