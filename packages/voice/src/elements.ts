// Made from the registry of verbs by `npm run documents`; do not edit.
// biome-ignore-all format: made by a program
import { type Element, element, render, type Ssml } from './element.ts'

/** An element that may stand directly in a document. */
export type Verb = Element<'Say' | 'Play' | 'Pause' | 'Gather' | 'Record' | 'Dial' | 'Redirect' | 'Hangup' | 'Reject' | 'Enqueue' | 'Leave' | 'Refer' | 'Connect' | 'Start' | 'Stop' | 'PauseRecording' | 'ResumeRecording' | 'Echo'>

/** Returns a document of verbs as XML. */
export const response = (...verbs: readonly Verb[]): string =>
  `<?xml version="1.0" encoding="UTF-8"?>${render(element('Response', {}, verbs))}`

export interface SayAttributes {
  /** text up to 100 characters */
  readonly voice?: string
  /** text up to 35 characters */
  readonly language?: string
  /** integer from 0; 0 until hang-up */
  readonly loop?: number
}

/** `<Say>` */
export const say = (text: string | Ssml, attributes: SayAttributes = {}): Element<'Say'> => element('Say', attributes, [text])

export interface PlayAttributes {
  /** integer from 0; 0 until hang-up */
  readonly loop?: number
  /** 0-9 A-D # * w W */
  readonly digits?: string
}

/** `<Play>` */
export const play = (text: string, attributes: PlayAttributes = {}): Element<'Play'> => element('Play', attributes, [text])

export interface PauseAttributes {
  /** integer 0 to 86400 */
  readonly length?: number
}

/** `<Pause>` */
export const pause = (attributes: PauseAttributes = {}): Element<'Pause'> => element('Pause', attributes, [])

export interface GatherAttributes {
  /** URL */
  readonly action?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
  /** dtmf, speech, dtmf speech */
  readonly input?: 'dtmf' | 'speech' | 'dtmf speech'
  /** seconds from 0, auto */
  readonly timeout?: number | 'auto'
  /** one of 0-9 # *, or empty */
  readonly finishOnKey?: string
  /** integer from 1 */
  readonly numDigits?: number
  /** true, false */
  readonly actionOnEmptyResult?: boolean
  /** seconds from 0, auto */
  readonly speechTimeout?: number | 'auto'
  /** integer 1 to 600 */
  readonly maxSpeechTime?: number
  /** BCP 47 */
  readonly language?: string
  /** up to 500 of up to 100 characters */
  readonly hints?: readonly string[]
  /** text up to 100 characters */
  readonly speechModel?: string
  /** true, false */
  readonly enhanced?: boolean
  /** true, false */
  readonly profanityFilter?: boolean
  /** true, false */
  readonly bargeIn?: boolean
  /** true, false */
  readonly noiseSuppression?: boolean
  /** true, false */
  readonly sensitive?: boolean
  /** URL */
  readonly partialResultCallback?: string
  /** GET, POST */
  readonly partialResultCallbackMethod?: 'GET' | 'POST'
}

/** `<Gather>` */
export const gather = (attributes: GatherAttributes, ...content: readonly (Element<'Say'> | Element<'Play'> | Element<'Pause'>)[]): Element<'Gather'> =>
  element('Gather', attributes, content)

export interface RecordAttributes {
  /** URL */
  readonly action?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
  /** integer 0 to 14400 */
  readonly timeout?: number
  /** any of 0-9 * #, or empty */
  readonly finishOnKey?: string
  /** integer 2 to 14400 */
  readonly maxLength?: number
  /** true, false */
  readonly playBeep?: boolean
  /** trim-silence, do-not-trim */
  readonly trim?: 'trim-silence' | 'do-not-trim'
  /** URL */
  readonly recordingStatusCallback?: string
  /** GET, POST */
  readonly recordingStatusCallbackMethod?: 'GET' | 'POST'
  /** list of in-progress, completed, absent */
  readonly recordingStatusCallbackEvent?: readonly ('in-progress' | 'completed' | 'absent')[]
  /** true, false */
  readonly transcribe?: boolean
  /** URL */
  readonly transcribeCallback?: string
}

/** `<Record>` */
export const record = (attributes: RecordAttributes = {}): Element<'Record'> => element('Record', attributes, [])

export interface DialAttributes {
  /** URL */
  readonly action?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
  /** integer 5 to 600, clamped */
  readonly timeout?: number
  /** integer 1 to 14400 */
  readonly timeLimit?: number
  /** number or token */
  readonly callerId?: string
  /** true, false */
  readonly answerOnBridge?: boolean
  /** true, false */
  readonly hangupOnStar?: boolean
  /** do-not-record, record-from-answer, record-from-ringing, record-from-answer-dual, record-from-ringing-dual */
  readonly record?: 'do-not-record' | 'record-from-answer' | 'record-from-ringing' | 'record-from-answer-dual' | 'record-from-ringing-dual'
  /** both, inbound, outbound */
  readonly recordingTrack?: 'both' | 'inbound' | 'outbound'
  /** trim-silence, do-not-trim */
  readonly trim?: 'trim-silence' | 'do-not-trim'
  /** URL */
  readonly recordingStatusCallback?: string
  /** GET, POST */
  readonly recordingStatusCallbackMethod?: 'GET' | 'POST'
  /** list of in-progress, completed, absent */
  readonly recordingStatusCallbackEvent?: readonly ('in-progress' | 'completed' | 'absent')[]
  /** country code */
  readonly ringTone?: string
  /** true, false */
  readonly sequential?: boolean
  /** URL */
  readonly referUrl?: string
  /** GET, POST */
  readonly referMethod?: 'GET' | 'POST'
}

/** `<Dial>` */
export const dial = (attributes: DialAttributes, ...content: readonly (Element<'Number'> | Element<'Sip'> | Element<'Client'> | Element<'Conference'> | Element<'Queue'> | Element<'Application'> | string)[]): Element<'Dial'> =>
  element('Dial', attributes, content)

export interface NumberAttributes {
  /** URL */
  readonly url?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
  /** URL */
  readonly statusCallback?: string
  /** GET, POST */
  readonly statusCallbackMethod?: 'GET' | 'POST'
  /** list of initiated, ringing, answered, completed */
  readonly statusCallbackEvent?: readonly ('initiated' | 'ringing' | 'answered' | 'completed')[]
  /** 0-9 A-D # * w W */
  readonly sendDigits?: string
  /** Enable, DetectMessageEnd */
  readonly machineDetection?: 'Enable' | 'DetectMessageEnd'
  /** integer 3 to 60 */
  readonly machineDetectionTimeout?: number
  /** integer 1000 to 6000 */
  readonly machineDetectionSpeechThreshold?: number
  /** integer 500 to 5000 */
  readonly machineDetectionSpeechEndThreshold?: number
  /** integer 2000 to 10000 */
  readonly machineDetectionSilenceTimeout?: number
  /** URL */
  readonly amdStatusCallback?: string
  /** GET, POST */
  readonly amdStatusCallbackMethod?: 'GET' | 'POST'
}

/** `<Number>` */
export const number = (text: string, attributes: NumberAttributes = {}): Element<'Number'> => element('Number', attributes, [text])

export interface SipAttributes {
  /** URL */
  readonly url?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
  /** URL */
  readonly statusCallback?: string
  /** GET, POST */
  readonly statusCallbackMethod?: 'GET' | 'POST'
  /** list of initiated, ringing, answered, completed */
  readonly statusCallbackEvent?: readonly ('initiated' | 'ringing' | 'answered' | 'completed')[]
  /** text up to 255 characters */
  readonly username?: string
  /** text up to 255 characters */
  readonly password?: string
  /** Enable, DetectMessageEnd */
  readonly machineDetection?: 'Enable' | 'DetectMessageEnd'
  /** integer 3 to 60 */
  readonly machineDetectionTimeout?: number
  /** integer 1000 to 6000 */
  readonly machineDetectionSpeechThreshold?: number
  /** integer 500 to 5000 */
  readonly machineDetectionSpeechEndThreshold?: number
  /** integer 2000 to 10000 */
  readonly machineDetectionSilenceTimeout?: number
  /** URL */
  readonly amdStatusCallback?: string
  /** GET, POST */
  readonly amdStatusCallbackMethod?: 'GET' | 'POST'
}

/** `<Sip>` */
export const sip = (attributes: SipAttributes, ...content: readonly (Element<'Uri'> | Element<'Headers'> | string)[]): Element<'Sip'> =>
  element('Sip', attributes, content)

export interface UriAttributes {
  /** text up to 255 characters */
  readonly username?: string
  /** text up to 255 characters */
  readonly password?: string
  /** integer 0 to 65535 */
  readonly priority?: number
  /** integer 0 to 65535 */
  readonly weight?: number
}

/** `<Uri>` */
export const uri = (text: string, attributes: UriAttributes = {}): Element<'Uri'> => element('Uri', attributes, [text])

/** `<Headers>` */
export const headers = (attributes: Record<string, never>, ...content: readonly (Element<'Header'>)[]): Element<'Headers'> =>
  element('Headers', attributes, content)

export interface HeaderAttributes {
  /** text up to 256 characters */
  readonly name?: string
  /** text up to 1024 characters */
  readonly value?: string
}

/** `<Header>` */
export const header = (attributes: HeaderAttributes = {}): Element<'Header'> => element('Header', attributes, [])

export interface ClientAttributes {
  /** URL */
  readonly url?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
  /** URL */
  readonly statusCallback?: string
  /** GET, POST */
  readonly statusCallbackMethod?: 'GET' | 'POST'
  /** list of initiated, ringing, answered, completed */
  readonly statusCallbackEvent?: readonly ('initiated' | 'ringing' | 'answered' | 'completed')[]
}

/** `<Client>` */
export const client = (attributes: ClientAttributes, ...content: readonly (Element<'Identity'> | Element<'Parameter'> | string)[]): Element<'Client'> =>
  element('Client', attributes, content)

/** `<Identity>` */
export const identity = (text: string): Element<'Identity'> => element('Identity', {}, [text])

export interface ParameterAttributes {
  /** text up to 500 characters */
  readonly name?: string
  /** text up to 500 characters */
  readonly value?: string
}

/** `<Parameter>` */
export const parameter = (attributes: ParameterAttributes = {}): Element<'Parameter'> => element('Parameter', attributes, [])

export interface ConferenceAttributes {
  /** true, false */
  readonly muted?: boolean
  /** true, false, onEnter, onExit */
  readonly beep?: boolean | 'onEnter' | 'onExit'
  /** true, false */
  readonly startConferenceOnEnter?: boolean
  /** true, false */
  readonly endConferenceOnExit?: boolean
  /** text up to 128 characters */
  readonly participantLabel?: string
  /** URL, or empty for silence */
  readonly waitUrl?: string
  /** GET, POST */
  readonly waitMethod?: 'GET' | 'POST'
  /** integer 2 to 250 */
  readonly maxParticipants?: number
  /** do-not-record, record-from-start */
  readonly record?: 'do-not-record' | 'record-from-start'
  /** trim-silence, do-not-trim */
  readonly trim?: 'trim-silence' | 'do-not-trim'
  /** CallSid */
  readonly coach?: string
  /** URL */
  readonly statusCallback?: string
  /** GET, POST */
  readonly statusCallbackMethod?: 'GET' | 'POST'
  /** list of start, end, join, leave, mute, hold, modify, speaker, announcement */
  readonly statusCallbackEvent?: readonly ('start' | 'end' | 'join' | 'leave' | 'mute' | 'hold' | 'modify' | 'speaker' | 'announcement')[]
  /** URL */
  readonly recordingStatusCallback?: string
  /** GET, POST */
  readonly recordingStatusCallbackMethod?: 'GET' | 'POST'
  /** list of in-progress, completed, absent */
  readonly recordingStatusCallbackEvent?: readonly ('in-progress' | 'completed' | 'absent')[]
}

/** `<Conference>` */
export const conference = (text: string, attributes: ConferenceAttributes = {}): Element<'Conference'> => element('Conference', attributes, [text])

export interface QueueAttributes {
  /** URL */
  readonly url?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
}

/** `<Queue>` */
export const queue = (text: string, attributes: QueueAttributes = {}): Element<'Queue'> => element('Queue', attributes, [text])

export interface ApplicationAttributes {
  /** URL */
  readonly url?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
  /** URL */
  readonly statusCallback?: string
  /** GET, POST */
  readonly statusCallbackMethod?: 'GET' | 'POST'
  /** list of initiated, ringing, answered, completed */
  readonly statusCallbackEvent?: readonly ('initiated' | 'ringing' | 'answered' | 'completed')[]
}

/** `<Application>` */
export const application = (attributes: ApplicationAttributes, ...content: readonly (Element<'ApplicationSid'> | Element<'Parameter'> | string)[]): Element<'Application'> =>
  element('Application', attributes, content)

/** `<ApplicationSid>` */
export const applicationSid = (text: string): Element<'ApplicationSid'> => element('ApplicationSid', {}, [text])

export interface RedirectAttributes {
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
}

/** `<Redirect>` */
export const redirect = (text: string, attributes: RedirectAttributes = {}): Element<'Redirect'> => element('Redirect', attributes, [text])

/** `<Hangup>` */
export const hangup = (): Element<'Hangup'> => element('Hangup', {}, [])

export interface RejectAttributes {
  /** rejected, busy */
  readonly reason?: 'rejected' | 'busy'
}

/** `<Reject>` */
export const reject = (attributes: RejectAttributes = {}): Element<'Reject'> => element('Reject', attributes, [])

export interface EnqueueAttributes {
  /** URL */
  readonly action?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
  /** URL */
  readonly waitUrl?: string
  /** GET, POST */
  readonly waitUrlMethod?: 'GET' | 'POST'
  /** integer 1 to 1000 */
  readonly maxQueueSize?: number
  /** text up to 64 characters */
  readonly workflowSid?: string
}

/** `<Enqueue>` */
export const enqueue = (text: string, attributes: EnqueueAttributes = {}): Element<'Enqueue'> => element('Enqueue', attributes, [text])

/** `<Leave>` */
export const leave = (): Element<'Leave'> => element('Leave', {}, [])

export interface ReferAttributes {
  /** URL */
  readonly action?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
}

/** `<Refer>` */
export const refer = (attributes: ReferAttributes, ...content: readonly (Element<'Sip'>)[]): Element<'Refer'> =>
  element('Refer', attributes, content)

export interface ConnectAttributes {
  /** URL */
  readonly action?: string
  /** GET, POST */
  readonly method?: 'GET' | 'POST'
}

/** `<Connect>` */
export const connect = (attributes: ConnectAttributes, ...content: readonly (Element<'Stream'> | Element<'ConversationRelay'>)[]): Element<'Connect'> =>
  element('Connect', attributes, content)

export interface StreamAttributes {
  /** wss:// or ws:// URL */
  readonly url?: string
  /** text up to 64 characters */
  readonly name?: string
  /** inbound_track, outbound_track, both_tracks */
  readonly track?: 'inbound_track' | 'outbound_track' | 'both_tracks'
  /** URL */
  readonly statusCallback?: string
  /** GET, POST */
  readonly statusCallbackMethod?: 'GET' | 'POST'
}

/** `<Stream>` */
export const stream = (attributes: StreamAttributes, ...content: readonly (Element<'Parameter'>)[]): Element<'Stream'> =>
  element('Stream', attributes, content)

export interface ConversationRelayAttributes {
  /** wss:// or ws:// URL */
  readonly url?: string
  /** text up to 4096 characters */
  readonly welcomeGreeting?: string
  /** none, dtmf, speech, any */
  readonly welcomeGreetingInterruptible?: 'none' | 'dtmf' | 'speech' | 'any'
  /** BCP 47 */
  readonly language?: string
  /** BCP 47 */
  readonly ttsLanguage?: string
  /** BCP 47 */
  readonly transcriptionLanguage?: string
  /** text up to 100 characters */
  readonly ttsProvider?: string
  /** text up to 100 characters */
  readonly voice?: string
  /** text up to 100 characters */
  readonly transcriptionProvider?: string
  /** text up to 100 characters */
  readonly speechModel?: string
  /** none, dtmf, speech, any */
  readonly interruptible?: 'none' | 'dtmf' | 'speech' | 'any'
  /** high, medium, low */
  readonly interruptSensitivity?: 'high' | 'medium' | 'low'
  /** true, false */
  readonly dtmfDetection?: boolean
  /** none, dtmf, speech, any */
  readonly reportInputDuringAgentSpeech?: 'none' | 'dtmf' | 'speech' | 'any'
  /** true, false */
  readonly preemptible?: boolean
  /** up to 500 of up to 100 characters */
  readonly hints?: readonly string[]
  /** true, false */
  readonly profanityFilter?: boolean
  /** true, false */
  readonly noiseSuppression?: boolean
}

/** `<ConversationRelay>` */
export const conversationRelay = (attributes: ConversationRelayAttributes, ...content: readonly (Element<'Language'> | Element<'Parameter'>)[]): Element<'ConversationRelay'> =>
  element('ConversationRelay', attributes, content)

export interface LanguageAttributes {
  /** BCP 47 */
  readonly code?: string
  /** text up to 100 characters */
  readonly ttsProvider?: string
  /** text up to 100 characters */
  readonly voice?: string
  /** text up to 100 characters */
  readonly transcriptionProvider?: string
  /** text up to 100 characters */
  readonly speechModel?: string
}

/** `<Language>` */
export const language = (attributes: LanguageAttributes = {}): Element<'Language'> => element('Language', attributes, [])

/** `<Start>` */
export const start = (attributes: Record<string, never>, ...content: readonly (Element<'Stream'> | Element<'Recording'> | Element<'Siprec'> | Element<'Transcription'>)[]): Element<'Start'> =>
  element('Start', attributes, content)

export interface RecordingAttributes {
  /** text up to 64 characters */
  readonly name?: string
  /** dual, mono */
  readonly channels?: 'dual' | 'mono'
  /** both, inbound, outbound */
  readonly track?: 'both' | 'inbound' | 'outbound'
  /** trim-silence, do-not-trim */
  readonly trim?: 'trim-silence' | 'do-not-trim'
  /** URL */
  readonly recordingStatusCallback?: string
  /** GET, POST */
  readonly recordingStatusCallbackMethod?: 'GET' | 'POST'
  /** list of in-progress, completed, absent */
  readonly recordingStatusCallbackEvent?: readonly ('in-progress' | 'completed' | 'absent')[]
}

/** `<Recording>` */
export const recording = (attributes: RecordingAttributes = {}): Element<'Recording'> => element('Recording', attributes, [])

export interface SiprecAttributes {
  /** text up to 64 characters */
  readonly name?: string
  /** text up to 64 characters */
  readonly connectorName?: string
  /** inbound_track, outbound_track, both_tracks */
  readonly track?: 'inbound_track' | 'outbound_track' | 'both_tracks'
  /** URL */
  readonly statusCallback?: string
  /** GET, POST */
  readonly statusCallbackMethod?: 'GET' | 'POST'
}

/** `<Siprec>` */
export const siprec = (attributes: SiprecAttributes, ...content: readonly (Element<'Parameter'>)[]): Element<'Siprec'> =>
  element('Siprec', attributes, content)

export interface TranscriptionAttributes {
  /** text up to 64 characters */
  readonly name?: string
  /** inbound_track, outbound_track, both_tracks */
  readonly track?: 'inbound_track' | 'outbound_track' | 'both_tracks'
  /** BCP 47 */
  readonly languageCode?: string
  /** text up to 128 characters */
  readonly inboundTrackLabel?: string
  /** text up to 128 characters */
  readonly outboundTrackLabel?: string
  /** true, false */
  readonly partialResults?: boolean
  /** text up to 64 characters */
  readonly transcriptionEngine?: string
  /** text up to 64 characters */
  readonly speechModel?: string
  /** comma list */
  readonly hints?: readonly string[]
  /** true, false */
  readonly profanityFilter?: boolean
  /** true, false */
  readonly enableAutomaticPunctuation?: boolean
  /** URL */
  readonly statusCallbackUrl?: string
  /** GET, POST */
  readonly statusCallbackMethod?: 'GET' | 'POST'
}

/** `<Transcription>` */
export const transcription = (attributes: TranscriptionAttributes = {}): Element<'Transcription'> => element('Transcription', attributes, [])

/** `<Stop>` */
export const stop = (attributes: Record<string, never>, ...content: readonly (Element<'Stream'> | Element<'Recording'> | Element<'Siprec'> | Element<'Transcription'>)[]): Element<'Stop'> =>
  element('Stop', attributes, content)

export interface PauseRecordingAttributes {
  /** silence, skip */
  readonly behavior?: 'silence' | 'skip'
}

/** `<PauseRecording>` */
export const pauseRecording = (attributes: PauseRecordingAttributes = {}): Element<'PauseRecording'> => element('PauseRecording', attributes, [])

/** `<ResumeRecording>` */
export const resumeRecording = (): Element<'ResumeRecording'> => element('ResumeRecording', {}, [])

/** `<Echo>` */
export const echo = (): Element<'Echo'> => element('Echo', {}, [])
