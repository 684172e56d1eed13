import type { Turn } from '../interpreter/turn.ts'
import type { RecordingCallback } from '../interpreter/types.ts'
import { events, method, url, type Values } from './attributes.ts'

/** The recording status callback attributes of Record, Dial, Conference and Start Recording. */
export const RECORDING_CALLBACK = {
  recordingStatusCallback: url(13256),
  recordingStatusCallbackMethod: method(13256),
  recordingStatusCallbackEvent: events(['in-progress', 'completed', 'absent'], ['completed'], 13621),
}

export function recordingCallback(attributes: Values<typeof RECORDING_CALLBACK>, turn: Turn): RecordingCallback | null {
  const { recordingStatusCallback: url, recordingStatusCallbackMethod: method } = attributes
  const target = turn.target(url, method, 13256)
  return target && { ...target, events: attributes.recordingStatusCallbackEvent }
}
