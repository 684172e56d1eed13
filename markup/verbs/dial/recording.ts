import type { Turn } from '../../interpreter/turn.ts'
import type { Event } from '../../interpreter/types.ts'
import { recordingCallback } from '../recording-callback.ts'
import type { DialValues, RecordingState } from './state.ts'

/** Starts the recording of a Dial. A null `child` records whatever is bridged to the leg. */
export function startDialRecording(attributes: DialValues, child: string | null, turn: Turn): RecordingState {
  const id = turn.id('recording')
  turn.emit({
    type: 'start_recording',
    id,
    source: 'DialVerb',
    name: null,
    child,
    channels: attributes.record.endsWith('-dual') ? 2 : 1,
    track: attributes.recordingTrack,
    trim: attributes.trim === 'trim-silence',
    callback: recordingCallback(attributes, turn),
  })
  return { id, sid: null, url: null, duration_seconds: null, stopping: false, ended: false }
}

/** Applies an event to the recording's state; returns undefined when the event is about something else. */
export function onRecording(state: RecordingState | null, event: Event): RecordingState | undefined {
  if (event.type !== 'recording_started' && event.type !== 'recording_ended' && event.type !== 'activity_ended') {
    return undefined
  }
  if (state?.id !== event.id) return undefined
  if (event.type === 'recording_started') return { ...state, sid: event.sid, url: event.url }
  if (event.type === 'activity_ended') return { ...state, ended: true }
  if (event.recording === null) return { ...state, sid: null, url: null, ended: true }
  return { ...state, ...event.recording, ended: true }
}

/** Stops the recording, once. */
export function stopRecording(state: RecordingState | null, turn: Turn): RecordingState | null {
  if (!state || state.ended || state.stopping) return state
  turn.emit({ type: 'stop_recording', id: state.id })
  return { ...state, stopping: true }
}

export function dialRecordingParameters(state: RecordingState | null): Record<string, string> {
  if (state?.sid == null || state.url === null) return {}
  return {
    RecordingSid: state.sid,
    RecordingUrl: state.url,
    ...(state.duration_seconds === null ? {} : { RecordingDuration: String(state.duration_seconds) }),
  }
}
