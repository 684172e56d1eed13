// The requests that signaling may send to the media worker.
import Type, { type TSchema } from 'typebox'
import {
  CodecName,
  closed,
  Direction,
  Empty,
  EngineName,
  Id,
  LegPolicy,
  LegStats,
  OfLeg,
  OfRecording,
  orNull,
  Places,
  PlaySource,
  RelayInput,
  SdpText,
  words,
} from './values.ts'

const method = <P extends TSchema, R extends TSchema, const E extends readonly string[]>(
  params: P,
  result: R,
  refusals: E,
) => ({ params, result, refusals })

/** Whether the peer may send keys by RFC 4733. */
const KeyEvents = Type.Boolean()

/** The tracks of a leg that are sent elsewhere, and the call that they belong to. */
const listened = {
  leg_id: Id,
  /** `inbound`: what the leg's peer says. `outbound`: what it hears. */
  tracks: words('inbound', 'outbound', 'both'),
  account_sid: Type.String({ maxLength: 64 }),
  call_sid: Type.String({ maxLength: 64 }),
}

/** The methods. Each may also be refused with one of COMMON_REFUSALS. */
export const MEDIA_METHODS = {
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
  /**
   * `owner` is the project whose share of decoding and speech the prompts use. Default: the session has its own share.
   */
  'session.open': method(Type.Object({ session_id: Id, owner: Type.Optional(Id) }, closed), Empty, [
    'session_exists',
    'media_unavailable',
  ]),
  /** Closes the session's legs. Recordings end with `leg_closed`; their events come after this reply. */
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
         * `webrtc`: a browser's leg, with ICE and DTLS-SRTP whatever `policy.security` says. It uses the same methods
         * for SDP. `leg.srtp_failed` reports a failed handshake. Default: `rtp`.
         */
        kind: Type.Optional(words('rtp', 'webrtc')),
      },
      closed,
    ),
    Type.Object({ rtp_port: Type.Integer() }, closed),
    ['session_unknown', 'leg_exists', 'media_unavailable'],
  ),
  /**
   * Stores the peer's offer of an INVITE or re-INVITE. Media does not change before `leg.local_answer`. Without
   * `places`, audio at a host name is refused as `address_unknown`; with them it must be among them.
   */
  'leg.remote_offer': method(
    Type.Object({ leg_id: Id, sdp: SdpText, places: Type.Optional(Places) }, closed),
    Type.Object(
      {
        /** Offered and allowed by the policy, in the policy's order. */
        codecs: Type.Array(CodecName),
        /** Encoding names as offered, in the offer's order. */
        offered: Type.Array(Type.String()),
        /** The direction in the offer, as seen by the peer: `sendonly` is a hold. */
        direction: Direction,
        hold: Type.Boolean(),
        secured: Type.Boolean(),
      },
      closed,
    ),
    ['leg_unknown', 'sdp_malformed', 'address_unknown', 'no_common_codec', 'srtp_required'],
  ),
  /**
   * Answers the stored offer. A further call without a new offer returns the same text (183, then 200). `prefer_leg`
   * selects that leg's settled codec if the offer allows it, so that the bridge is a relay. Otherwise the policy's
   * first codec that this worker can decode is selected.
   */
  'leg.local_answer': method(
    Type.Object({ leg_id: Id, prefer_leg: Type.Optional(Id) }, closed),
    Type.Object({ sdp: Type.String(), codec: CodecName, direction: Direction, key_events: KeyEvents }, closed),
    ['leg_unknown', 'offer_missing', 'no_common_codec', 'srtp_required'],
  ),
  /**
   * Makes a first offer or a re-offer. A re-offer raises the o= version if anything changed (RFC 3264 §8). `prefer_leg`
   * puts that leg's settled codec first, or the codecs of its offer that waits for an answer.
   */
  'leg.local_offer': method(
    Type.Object({ leg_id: Id, prefer_leg: Type.Optional(Id), direction: Type.Optional(Direction) }, closed),
    Type.Object({ sdp: Type.String() }, closed),
    ['leg_unknown'],
  ),
  /** Takes the peer's answer to our last offer. May be called again (183, then 200; forked answers). */
  'leg.remote_answer': method(
    Type.Object({ leg_id: Id, sdp: SdpText, places: Type.Optional(Places) }, closed),
    Type.Object({ codec: CodecName, direction: Direction, hold: Type.Boolean(), key_events: KeyEvents }, closed),
    [
      'leg_unknown',
      'offer_missing',
      'sdp_malformed',
      'address_unknown',
      'codec_not_offered',
      'srtp_required',
      'audio_refused',
    ],
  ),
  /** Returns to the last settled state after an offer of either side was refused. */
  'leg.rollback': method(OfLeg, Empty, ['leg_unknown']),
  'leg.stats': method(OfLeg, LegStats, ['leg_unknown']),
  'leg.close': method(OfLeg, LegStats, ['leg_unknown']),

  /**
   * Connects two legs of one session in both directions and replaces earlier bridges of either. The bridge follows
   * re-INVITEs automatically. A leg that is bridged with itself hears its echo.
   */
  bridge: method(
    Type.Object({ a: Id, b: Id }, closed),
    Type.Object({ mode: words('relay', 'transcode'), codecs: Type.Tuple([CodecName, CodecName]) }, closed),
    ['leg_unknown', 'leg_not_ready', 'session_mismatch', 'transcode_unavailable'],
  ),
  unbridge: method(OfLeg, Empty, ['leg_unknown']),

  /**
   * Plays the sources in sequence, `loop` times (0: until stopped). A play that already runs on the leg ends as
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
  /** Without `play_id`, stops the current play. Stopping a play that has ended is not an error. */
  'play.stop': method(Type.Object({ leg_id: Id, play_id: Type.Optional(Id) }, closed), Empty, ['leg_unknown']),
  /** Sends digits by RFC 4733 if negotiated, otherwise in-band. `w` waits 0.5 s, `W` 1 s. Further sends are queued. */
  'digits.send': method(
    Type.Object({ leg_id: Id, send_id: Id, digits: Type.String({ pattern: '^[0-9A-Da-d*#wW]{1,500}$' }) }, closed),
    Empty,
    ['leg_unknown', 'leg_not_ready'],
  ),
  /** Sets whether keys pass through a bridge. Initially true. */
  'dtmf.relay': method(Type.Object({ leg_id: Id, enabled: Type.Boolean() }, closed), Empty, ['leg_unknown']),
  /**
   * A key came by SIP INFO. It counts for recordings, streams and relays unless it came in the media too. No `dtmf`
   * follows.
   */
  'key.heard': method(Type.Object({ leg_id: Id, digit: Type.String({ pattern: '^[0-9A-D*#]$' }) }, closed), Empty, [
    'leg_unknown',
  ]),
  /**
   * Switches in-band detection of keys. Their events have source `inband`. By default it is on for an unbridged leg
   * whose peer accepts no telephone-event.
   */
  'inband.detect': method(Type.Object({ leg_id: Id, enabled: Type.Boolean() }, closed), Empty, ['leg_unknown']),

  'record.start': method(
    Type.Object(
      {
        session_id: Id,
        recording_id: Id,
        /** An absolute path inside the data folder that ends in .wav. */
        file: Type.String({ minLength: 1, maxLength: 4096, pattern: '^/.*\\.wav$' }),
        /**
         * 2: the left channel is what `left` sends, the right one is what `right` sends (null: what we play to `left`).
         * 1: a mix.
         */
        channels: Type.Union([Type.Literal(1), Type.Literal(2)]),
        left: orNull(Id),
        right: orNull(Id),
        /**
         * Records the mix of this conference until the last participant leaves, whoever leaves before. With two
         * channels the left one is what the participant `left` says, and the right one the mix.
         */
        conference_id: Type.Optional(orNull(Id)),
        /** `received`: what `left` sends. `both`: also the other channel or what we play. `sent`: what `left` hears. */
        what: words('received', 'both', 'sent'),
        max_ms: orNull(Type.Integer({ minimum: 1, maximum: 86_400_000 })),
        /** The recording ends after this much silence on the left leg. */
        silence_ms: orNull(Type.Integer({ minimum: 100, maximum: 3_600_000 })),
        /** The keys of the left leg that end the recording; '' for none. */
        finish_keys: Type.String({ pattern: '^[0-9A-D*#]{0,16}$' }),
        beep: Type.Boolean(),
        /** Removes leading and trailing silence from the finished file. */
        trim: Type.Boolean(),
      },
      closed,
    ),
    Empty,
    [
      'session_unknown',
      'leg_unknown',
      'leg_not_ready',
      'conference_unknown',
      'recording_exists',
      'file_refused',
      'recording_unavailable',
    ],
  ),
  /** Stops the recording. `record.ended` says when nothing more is recorded. */
  'record.stop': method(OfRecording, Empty, ['recording_unknown']),
  /**
   * Pauses the recording. The file has silence meanwhile with `silent`; else the paused time is not in the file. It is
   * answered when nothing more is recorded.
   */
  'record.pause': method(Type.Object({ recording_id: Id, silent: Type.Boolean() }, closed), Empty, [
    'recording_unknown',
  ]),
  'record.resume': method(OfRecording, Empty, ['recording_unknown']),
  /**
   * Adds a leg to a conference of this worker, or changes its participation. The conference exists from the first join
   * to the last leave. A bridge of the leg ends. While something is played to the leg, it replaces the mix.
   */
  'conference.join': method(
    Type.Object(
      {
        conference_id: Id,
        leg_id: Id,
        /** The others do not hear this leg. */
        muted: Type.Boolean(),
        /** This leg does not hear the others (hold). */
        deaf: Type.Boolean(),
        /** The only leg, of any session, that hears this one (a coach). */
        heard_by: Type.Optional(orNull(Id)),
      },
      closed,
    ),
    Type.Object({ participants: Type.Integer() }, closed),
    ['leg_unknown', 'leg_not_ready', 'conference_full', 'transcode_unavailable'],
  ),
  'conference.leave': method(OfLeg, Empty, ['leg_unknown']),

  /**
   * Starts a media stream to a WebSocket in the compatible form. The events `fork.started`, `fork.warning` and
   * `fork.ended` report its progress.
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
        /** Additional headers of the handshake, such as its signature. */
        headers: Type.Optional(Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 500 }))),
      },
      closed,
    ),
    Empty,
    ['leg_unknown', 'leg_not_ready', 'fork_exists', 'fork_limit', 'transcode_unavailable'],
  ),
  /**
   * Streams the leg to a listener of the control plane, in the form of a media stream, and tells all who hear it or are
   * heard by it. The events of media streams report its progress; `fork.stop` ends it.
   */
  'listen.start': method(
    Type.Object(
      {
        leg_id: Id,
        listener_id: Id,
        /** Proves to the control plane that the stream is the platform's. */
        token: Type.String({ maxLength: 128 }),
        account_sid: Type.String({ maxLength: 64 }),
        call_sid: Type.String({ maxLength: 64 }),
        /** What is said to the parties; null is a tone. */
        spoken: orNull(
          Type.Object(
            {
              text: Type.String({ maxLength: 1024 }),
              voice: Type.String({ maxLength: 64 }),
              language: Type.String({ maxLength: 32 }),
            },
            closed,
          ),
        ),
      },
      closed,
    ),
    Empty,
    ['leg_unknown', 'leg_not_ready', 'fork_exists', 'fork_limit', 'transcode_unavailable'],
  ),
  'fork.stop': method(Type.Object({ leg_id: Id, fork_id: Id }, closed), Empty, ['leg_unknown']),

  /**
   * Hands the leg to an application that exchanges text with the platform (voice-compat.md §12.6). Exactly one
   * `relay.ended` follows.
   */
  'relay.start': method(
    Type.Object(
      {
        leg_id: Id,
        relay_id: Id,
        account_sid: Type.String({ maxLength: 64 }),
        call_sid: Type.String({ maxLength: 64 }),
        url: Type.String({ minLength: 1, maxLength: 4096 }),
        /** Additional headers of the handshake, such as its signature. */
        headers: Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 500 })),
        /** The facts of the call in the `setup` message. */
        setup: Type.Record(Type.String({ maxLength: 64 }), orNull(Type.String({ maxLength: 1024 }))),
        /** The document's Parameter elements. */
        parameters: Type.Record(Type.String({ maxLength: 500 }), Type.String({ maxLength: 500 })),
        greeting: orNull(Type.String({ maxLength: 4096 })),
        greeting_interruptible: RelayInput,
        tts_language: Type.String({ maxLength: 35 }),
        transcription_language: Type.String({ maxLength: 35 }),
        voice: Type.String({ maxLength: 100 }),
        model: orNull(Type.String({ maxLength: 100 })),
        /** Settings that replace voice and model when the session changes to the language. */
        languages: Type.Array(
          Type.Object(
            {
              code: Type.String({ maxLength: 35 }),
              voice: orNull(Type.String({ maxLength: 100 })),
              model: orNull(Type.String({ maxLength: 100 })),
            },
            closed,
          ),
          { maxItems: 100 },
        ),
        interruptible: RelayInput,
        sensitivity: words('high', 'medium', 'low'),
        /** Keys are sent to the application. */
        keys: Type.Boolean(),
        /** The input that is reported although it cannot stop what is being said. */
        report: RelayInput,
        preemptible: Type.Boolean(),
        hints: Type.Array(Type.String({ maxLength: 100 }), { maxItems: 500 }),
        profanity_filter: Type.Boolean(),
        /** Steady noise of the caller's line is reduced before it is heard. */
        noise_suppression: Type.Optional(Type.Boolean()),
        /** The engines that hear and speak; none: the operator's. */
        stt_engine: Type.Optional(EngineName),
        tts_engine: Type.Optional(EngineName),
      },
      closed,
    ),
    Empty,
    ['leg_unknown', 'leg_not_ready', 'relay_exists', 'relay_limit', 'transcode_unavailable'],
  ),
  /** Ends a session. Ending one that is over is not an error. */
  'relay.stop': method(Type.Object({ leg_id: Id, relay_id: Id }, closed), Empty, ['leg_unknown']),

  /**
   * Recognises speech on a leg until it is stopped. `recognize.started` marks the beginning of speech,
   * `recognize.result` carries each result, and exactly one `recognize.ended` ends the recognition.
   */
  'recognize.start': method(
    Type.Object(
      {
        ...listened,
        recognize_id: Id,
        engine: Type.Optional(EngineName),
        noise_suppression: Type.Optional(Type.Boolean()),
        /** A stop, or the end of the leg, waits a few seconds for the results of what was said before it. */
        last_words: Type.Optional(Type.Boolean()),
        language: Type.String({ maxLength: 35 }),
        hints: Type.Array(Type.String({ maxLength: 100 }), { maxItems: 500 }),
        model: orNull(Type.String({ maxLength: 100 })),
        enhanced: Type.Boolean(),
        profanity_filter: Type.Boolean(),
        punctuation: Type.Boolean(),
        partial: Type.Boolean(),
        /** The silence that ends an utterance. Null lets the engine decide. */
        silence_ms: orNull(Type.Integer({ minimum: 0, maximum: 3_600_000 })),
        max_speech_ms: Type.Integer({ minimum: 1, maximum: 3_600_000 }),
      },
      closed,
    ),
    Empty,
    ['leg_unknown', 'leg_not_ready', 'recognition_exists', 'recognizer_unavailable', 'transcode_unavailable'],
  ),
  'recognize.stop': method(Type.Object({ leg_id: Id, recognize_id: Id }, closed), Empty, ['leg_unknown']),
  /** Transcribes a finished file of the project `owner`. Exactly one `transcription.ended` follows. */
  'recording.transcribe': method(
    Type.Object(
      {
        recording_id: Id,
        file: Type.String({ minLength: 1, maxLength: 4096, pattern: '^/.*\\.wav$' }),
        language: Type.String({ maxLength: 35 }),
        owner: Id,
      },
      closed,
    ),
    Empty,
    ['file_refused', 'recognizer_unavailable'],
  ),
  /** Sets whether `leg.voice` reports when the peer begins and stops speaking. Initially false. */
  'voice.detect': method(Type.Object({ leg_id: Id, enabled: Type.Boolean() }, closed), Empty, ['leg_unknown']),

  /** Also sends on another leg what a leg receives or sends, until either is closed. */
  'copy.start': method(Type.Object({ leg_id: Id, to_leg_id: Id, what: words('received', 'sent') }, closed), Empty, [
    'leg_unknown',
    'leg_not_ready',
    'copy_limit',
    'transcode_unavailable',
  ]),

  /** Starts answering-machine detection. Exactly one `amd.result` follows, unless the leg closes first. */
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
  /** Inspects a finished file whose row a crash left open. Repairs the header first if its writer was killed. */
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
 * The refusals common to all methods. `params_invalid` names the first bad parameter. The client itself refuses with
 * `media_unavailable` while it is not connected to the worker.
 */
export const COMMON_REFUSALS = ['method_unknown', 'params_invalid', 'media_unavailable', 'internal'] as const
