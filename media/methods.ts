import { remoteOf } from '../core/domain/codecs/audio-line.ts'
import { CODEC_NAMES } from '../core/domain/codecs/codec.ts'
import { bridgeMode, type OtherLeg } from '../core/domain/codecs/negotiate.ts'
import { LISTENER_TOKEN } from '../core/runtime/listener-token.ts'
import { inspectRecording } from './files/repair.ts'
import type { CodecName, MediaEvent, MethodName, MethodParams, MethodRefusal, MethodResult } from './protocol/schema.ts'
import type { ClientSessions } from './session/client-sessions.ts'
import { type Conferences, MAX_PARTICIPANTS } from './session/conferences.ts'
import type { MediaLeg } from './session/leg.ts'
import type { OpenFiles } from './session/open-files.ts'
import { promptRate } from './session/plan.ts'
import type { Recognizers } from './speech/index.ts'
import type { Transcriber } from './speech/transcriber.ts'
import type { BrowserTransports } from './webrtc/browser-transports.ts'

/** The parts of the worker that methods use. */
export interface MethodContext {
  readonly sessions: ClientSessions
  readonly worker_id: string
  readonly srtp_suites: readonly string[]
  /** The codecs that this worker can decode and encode. */
  readonly transcode: readonly CodecName[]
  readonly max_sessions: number
  readonly conferences: Conferences
  readonly files: OpenFiles
  readonly browsers: BrowserTransports
  readonly recognizers: Recognizers
  /** Null when none is configured. */
  readonly transcriber: Transcriber | null
  readonly emit: (event: MediaEvent) => void
  /** Where the control plane takes what listeners hear. */
  readonly listeners_url: string
  /** The ports of our own servers. Media must not be sent to them, because that would attack ourselves. */
  readonly reserved: { readonly addresses: readonly string[]; readonly ports: readonly number[] }
  greeted(client: string): void
}

interface Refusal<R extends string> {
  readonly refused: R
  readonly detail: string
}

type Method<M extends MethodName> = (params: MethodParams<M>, context: MethodContext) => Reply<M> | Promise<Reply<M>>

type Reply<M extends MethodName> = MethodResult<M> | Refusal<MethodRefusal<M>>

const refuse = <R extends string>(refused: R, detail: string): Refusal<R> => ({ refused, detail })
const legUnknown = (leg_id: string) => refuse('leg_unknown', `no leg ${leg_id} is open here`)
const sessionUnknown = (session_id: string) => refuse('session_unknown', `no session ${session_id} is open here`)
const recordingUnknown = (id: string) => refuse('recording_unknown', `no recording ${id} is running`)
const notReady = (leg_id: string) => refuse('leg_not_ready', `leg ${leg_id} has no settled offer and answer`)

/** Wraps a method so that it gets its leg. Refuses an unknown leg. */
const withLeg =
  <P extends { leg_id: string }, R>(act: (leg: MediaLeg, params: P, context: MethodContext) => R) =>
  (params: P, context: MethodContext): R | Refusal<'leg_unknown'> => {
    const leg = context.sessions.leg(params.leg_id)
    return leg ? act(leg, params, context) : legUnknown(params.leg_id)
  }

export const methods: { readonly [M in MethodName]: Method<M> } = {
  hello({ client }, { worker_id, srtp_suites, transcode, greeted }) {
    greeted(client)
    return {
      worker_id,
      pid: process.pid,
      features: { codecs: [...CODEC_NAMES], srtp_suites: [...srtp_suites], transcode: [...transcode] },
    }
  },

  'session.open'({ session_id, owner }, { sessions, max_sessions }) {
    if (sessions.hasSession(session_id)) return refuse('session_exists', `session ${session_id} is open already`)
    if (sessions.sessionCount >= max_sessions) return refuse('media_unavailable', `${max_sessions} sessions are open`)
    sessions.openSession(session_id, owner ?? session_id)
    return {}
  },

  'session.close'({ session_id }, { sessions }) {
    const legs = sessions.closeSession(session_id)
    return legs ? { legs } : sessionUnknown(session_id)
  },

  async 'leg.open'({ session_id, leg_id, policy, kind }, { sessions, browsers }) {
    const browser = kind === 'webrtc' ? await browsers.prepare() : null
    if (!sessions.hasSession(session_id)) return sessionUnknown(session_id)
    if (sessions.leg(leg_id)) return refuse('leg_exists', `leg ${leg_id} is open already`)
    const leg = sessions.openLeg(session_id, leg_id, policy, browser)
    return leg ? { rtp_port: leg.stream.rtp_port } : refuse('media_unavailable', 'no RTP port is free')
  },

  'leg.remote_offer': withLeg((leg, { sdp, places }: MethodParams<'leg.remote_offer'>, { reserved }) => {
    const offer = leg.negotiation.remoteOffer(sdp, places ?? null)
    if ('refused' in offer) return offer
    leg.noteSdp()
    const line = offer.sdp.lines[offer.audio]
    const to = line && remoteOf(line, line.rtcp_mux)
    const taken = to && reservedPort(to.address, [to.rtp_port, to.rtcp_port], reserved)
    if (taken) {
      leg.negotiation.rollback()
      return notForMedia(taken)
    }
    return {
      codecs: offer.choices.map(({ codec }) => codec.name),
      offered: [...offer.offered],
      direction: offer.direction,
      hold: offer.hold,
      secured: offer.crypto !== null,
    }
  }),

  'leg.local_answer': withLeg((leg, { prefer_leg }: MethodParams<'leg.local_answer'>, context) => {
    const answer = leg.negotiation.localAnswer(related(prefer_leg, context), context.transcode)
    if ('refused' in answer) {
      return answer.refused === 'offer_missing'
        ? refuse('offer_missing', answer.detail)
        : refuse('srtp_required', answer.detail)
    }
    if (answer.fresh) leg.apply(answer.settled)
    const { codec, direction, telephone_event } = answer.settled
    return { sdp: answer.sdp, codec, direction, key_events: telephone_event !== null }
  }),

  'leg.local_offer': withLeg((leg, { prefer_leg, direction }: MethodParams<'leg.local_offer'>, context) => ({
    sdp: leg.negotiation.localOffer(related(prefer_leg, context), context.transcode, direction ?? null),
  })),

  'leg.remote_answer': withLeg((leg, { sdp, places }: MethodParams<'leg.remote_answer'>, { reserved }) => {
    const settled = leg.negotiation.remoteAnswer(sdp, places ?? null)
    if ('refused' in settled) return settled
    leg.noteSdp()
    const { address, rtp_port, rtcp_port } = settled.remote
    const taken = reservedPort(address, [rtp_port, rtcp_port], reserved)
    if (taken) {
      leg.negotiation.rollback()
      return notForMedia(taken)
    }
    leg.apply(settled)
    const { codec, direction, hold, telephone_event } = settled
    return { codec, direction, hold, key_events: telephone_event !== null }
  }),

  'leg.rollback': withLeg(leg => {
    leg.apply(leg.negotiation.rollback())
    return {}
  }),

  'leg.stats': withLeg(leg => leg.stats()),

  'leg.close'({ leg_id }, { sessions }) {
    return sessions.closeLeg(leg_id) ?? legUnknown(leg_id)
  },

  bridge({ a, b }, { sessions, transcode }) {
    const left = sessions.leg(a)
    const right = sessions.leg(b)
    if (!left || !right) return legUnknown(left ? b : a)
    const first = left.negotiation.settled
    const second = right.negotiation.settled
    if (!first || !second) return notReady(first ? b : a)
    const native = sessions.nativeSession(left.session_id)
    if (!native || left.session_id !== right.session_id)
      return refuse('session_mismatch', 'the legs of a bridge belong to one session')
    if (left === right) {
      native.echo(left.stream)
      return { mode: 'relay', codecs: [first.codec, second.codec] }
    }
    const mode = bridgeMode(first, second)
    const missing = [first.codec, second.codec].find(codec => mode === 'transcode' && !transcode.includes(codec))
    if (missing) return refuse('transcode_unavailable', `${missing} can only be relayed on this machine`)
    native.bridge(left.stream, right.stream)
    left.link(right)
    return { mode, codecs: [first.codec, second.codec] }
  },

  unbridge: withLeg((leg, _params, { sessions }) => {
    sessions.nativeSession(leg.session_id)?.unbridge(leg.stream)
    leg.unlink()
    return {}
  }),

  'play.start': withLeg((leg, { play_id, sources, loop }: MethodParams<'play.start'>) => {
    const { settled } = leg.negotiation
    if (!settled) return notReady(leg.id)
    leg.player.start({ play_id, sources, loop }, promptRate(settled))
    return {}
  }),

  'play.stop': withLeg((leg, { play_id }: MethodParams<'play.stop'>) => {
    leg.player.stop(play_id)
    return {}
  }),

  'digits.send': withLeg((leg, { send_id, digits }: MethodParams<'digits.send'>) => {
    if (!leg.negotiation.settled) return notReady(leg.id)
    leg.sendDigits(send_id, digits)
    return {}
  }),

  'dtmf.relay': withLeg((leg, { enabled }: MethodParams<'dtmf.relay'>) => {
    leg.stream.relayKeys(enabled)
    return {}
  }),

  'key.heard': withLeg((leg, { digit }: MethodParams<'key.heard'>) => {
    leg.hearKey(digit)
    return {}
  }),

  'inband.detect': withLeg((leg, { enabled }: MethodParams<'inband.detect'>) => {
    leg.detectInband(enabled)
    return {}
  }),

  'record.start'(params, context) {
    const { sessions } = context
    const native = sessions.nativeSession(params.session_id)
    if (!native) return sessionUnknown(params.session_id)
    if (sessions.recorder.has(params.recording_id))
      return refuse('recording_exists', `recording ${params.recording_id} is running already`)
    if (params.conference_id != null) return recordRoom(params.conference_id, params, context)
    const wanted = [params.left, params.right].filter(id => id !== null)
    const [left_id, right_id] = wanted
    const left = left_id === undefined ? null : sessions.leg(left_id)
    const right = right_id === undefined ? null : sessions.leg(right_id)
    if (!left || (right_id !== undefined && !right)) return legUnknown((left ? right_id : left_id) ?? 'of no name')
    if (params.channels === 2 && params.left === null)
      return refuse('params_invalid', 'left: a recording of two channels has a left leg')
    if ([left, right].some(leg => leg && leg.session_id !== params.session_id))
      return refuse('leg_unknown', `the legs belong to another session than ${params.session_id}`)
    if (params.beep && !left.negotiation.settled) return notReady(left.id)
    const detail = sessions.recorder.refuseFile(params.file)
    if (detail !== null) return refuse('file_refused', detail)
    sessions.recorder.start(params, native, left, right)
    return {}
  },

  'record.stop': ({ recording_id }, { sessions }) =>
    sessions.recorder.stop(recording_id) ? {} : recordingUnknown(recording_id),
  'record.pause': async ({ recording_id, silent }, { sessions }) =>
    (await sessions.recorder.pause(recording_id, silent ? 'silent' : 'skipped')) ? {} : recordingUnknown(recording_id),
  'record.resume': async ({ recording_id }, { sessions }) =>
    (await sessions.recorder.pause(recording_id, null)) ? {} : recordingUnknown(recording_id),

  'conference.join': withLeg((leg, params: MethodParams<'conference.join'>, context) => {
    const refusal = refuseAudio(leg, context)
    if (refusal) return refusal
    const { muted, deaf } = params
    const heard_by = params.heard_by == null ? null : context.sessions.leg(params.heard_by)
    if (params.heard_by != null && !heard_by) return legUnknown(params.heard_by)
    const participants = context.conferences.join(params.conference_id, leg, { muted, deaf, heard_by })
    leg.unlink()
    if (participants === null) return refuse('conference_full', `the conference is full with ${MAX_PARTICIPANTS}`)
    return { participants }
  }),

  'conference.leave': withLeg((leg, _params, { conferences }) => {
    conferences.leave(leg)
    return {}
  }),

  'fork.start': withLeg((leg, params: MethodParams<'fork.start'>, context) => {
    const refusal = refuseAudio(leg, context)
    if (refusal) return refusal
    if (leg.forks.has(params.fork_id)) return refuse('fork_exists', `stream ${params.fork_id} is running already`)
    if (leg.forks.size - leg.listeners.size >= MAX_FORKS)
      return refuse('fork_limit', `${MAX_FORKS} streams are running on this leg`)
    leg.startFork(params)
    return {}
  }),

  'listen.start': withLeg(async (leg, params: MethodParams<'listen.start'>, context) => {
    const { leg_id, listener_id: fork_id, token, account_sid, call_sid, spoken } = params
    const refused = (): Refusal<'leg_not_ready' | 'fork_exists' | 'fork_limit' | 'transcode_unavailable'> | null => {
      const refusal = refuseAudio(leg, context)
      if (refusal) return refusal
      if (leg.forks.has(fork_id)) return refuse('fork_exists', `listener ${fork_id} is there already`)
      return leg.listeners.size >= MAX_LISTENERS ? refuse('fork_limit', `${MAX_LISTENERS} listen to this leg`) : null
    }
    const early = refused()
    if (early) return early
    const said = spoken === null ? null : await leg.speech({ kind: 'speech', ...spoken })
    if (context.sessions.leg(leg_id) !== leg) return legUnknown(leg_id)
    const late = refused()
    if (late) return late
    const about = { leg_id, fork_id, account_sid, call_sid, stream_sid: fork_id, parameters: {} }
    const url = `${context.listeners_url}/listeners/${fork_id}`
    const headers = { [LISTENER_TOKEN]: token }
    leg.startListening({ ...about, url, headers, tracks: 'both', bidirectional: false }, said)
    return {}
  }),

  'fork.stop': withLeg((leg, { fork_id }: MethodParams<'fork.stop'>) => {
    leg.stopFork(fork_id)
    return {}
  }),

  'relay.start': withLeg((leg, params: MethodParams<'relay.start'>, context) => {
    const refusal = refuseAudio(leg, context)
    if (refusal) return refusal
    if (leg.relay) return refuse('relay_exists', 'a session is running on this leg already')
    const running = context.sessions.legs().filter(other => other.relay && other.owner === leg.owner).length
    if (running >= MAX_RELAYS) return refuse('relay_limit', `${MAX_RELAYS} sessions of the project are running`)
    leg.startRelay(params, context.recognizers(params.stt_engine))
    return {}
  }),

  'relay.stop': withLeg((leg, { relay_id }: MethodParams<'relay.stop'>) => {
    leg.stopRelay(relay_id)
    return {}
  }),

  'recognize.start': withLeg((leg, params: MethodParams<'recognize.start'>, context) => {
    const refusal = refuseAudio(leg, context)
    if (refusal) return refusal
    const recognizer = context.recognizers(params.engine)
    if (!recognizer) return refuse('recognizer_unavailable', 'no speech recognizer is configured')
    if (leg.recognitions.has(params.recognize_id) || leg.recognitions.size >= MAX_FORKS)
      return refuse('recognition_exists', `${params.recognize_id} is running, or ${MAX_FORKS} others are`)
    leg.recognize(params, recognizer)
    return {}
  }),

  'recognize.stop': withLeg((leg, { recognize_id }: MethodParams<'recognize.stop'>) => {
    leg.recognitions.get(recognize_id)?.stop()
    return {}
  }),

  'recording.transcribe'({ recording_id, file, language, owner }, { sessions, transcriber, emit }) {
    const outside = sessions.recorder.outside(file)
    if (outside !== null) return refuse('file_refused', outside)
    if (!transcriber) return refuse('recognizer_unavailable', 'no transcription engine is configured')
    void transcriber(sessions.recorder.path(file), language, owner).then(result =>
      emit({ event: 'transcription.ended', recording_id, ...result }),
    )
    return {}
  },

  'voice.detect': withLeg((leg, { enabled }: MethodParams<'voice.detect'>) => {
    leg.detectVoice(enabled)
    return {}
  }),

  'copy.start': withLeg((leg, { to_leg_id, what }: MethodParams<'copy.start'>, context) => {
    const to = context.sessions.leg(to_leg_id)
    if (!to) return legUnknown(to_leg_id)
    const refusal = refuseAudio(leg, context) ?? refuseAudio(to, context)
    if (refusal) return refusal
    if (!leg.copies.has(to) && leg.copies.size >= MAX_COPIES)
      return refuse('copy_limit', `${MAX_COPIES} copies of this leg are sent already`)
    leg.copyTo(to, what)
    return {}
  }),

  'amd.start': withLeg((leg, params: MethodParams<'amd.start'>, context) => {
    const refusal = refuseAudio(leg, context)
    if (refusal) return refusal
    if (leg.detecting) return refuse('amd_running', `detection runs already on ${leg.id}`)
    leg.startDetection(params)
    return {}
  }),

  async 'record.inspect'({ file }, { sessions, files }) {
    const outside = sessions.recorder.outside(file)
    if (outside !== null) return refuse('file_refused', outside)
    if (sessions.recorder.writes(file)) return refuse('file_refused', 'the file is being written')
    // The recording of a disconnected client may still be written to disk.
    await files.closed(file)
    return (
      (await inspectRecording(sessions.recorder.path(file))) ??
      refuse('file_refused', 'the file is missing or no WAV file')
    )
  },
}

const MAX_FORKS = 4
/** Those who listen to one leg. They take no place of a program's streams. */
const MAX_LISTENERS = 4
/** Those of four recording servers with both tracks. */
const MAX_COPIES = 8
/** Sessions of one project with relay applications. */
const MAX_RELAYS = 200

const notForMedia = (port: number) => refuse('sdp_malformed', `port ${port} of this host is not for media`)
/** Returns the first port that belongs to one of our own servers; undefined when none does. */
const reservedPort = (
  address: string | null,
  ports: readonly (number | null)[],
  { addresses, ports: own }: MethodContext['reserved'],
): number | undefined =>
  address !== null && addresses.includes(address) ? own.find(port => ports.includes(port)) : undefined

/** Starts the recording of a conference. */
function recordRoom(
  conference_id: string,
  params: MethodParams<'record.start'>,
  { sessions, conferences }: MethodContext,
): Reply<'record.start'> {
  const room = conferences.mix(conference_id)
  if (!room) return refuse('conference_unknown', `no conference ${conference_id} is open here`)
  const named = params.left === null ? null : sessions.leg(params.left)
  if (params.left !== null && !named) return legUnknown(params.left)
  if (params.channels === 2 && !named)
    return refuse('params_invalid', 'left: a recording of two channels names a participant')
  const detail = sessions.recorder.refuseFile(params.file)
  if (detail !== null) return refuse('file_refused', detail)
  sessions.recorder.startRoom(params, room, named)
  return {}
}

/** Refuses a leg without a settled codec that this worker can decode. Methods that process audio need one. */
function refuseAudio(
  leg: MediaLeg,
  { transcode }: MethodContext,
): Refusal<'leg_not_ready' | 'transcode_unavailable'> | null {
  if (!leg.codec) return notReady(leg.id)
  if (transcode.includes(leg.codec)) return null
  return refuse('transcode_unavailable', `${leg.codec} can only be relayed on this machine`)
}

/** Returns the current SDP state of the leg to be bridged with; null when there is no such leg. */
function related(prefer_leg: string | undefined, { sessions }: MethodContext): OtherLeg | null {
  return (prefer_leg === undefined ? null : sessions.leg(prefer_leg))?.negotiation.asOther ?? null
}
