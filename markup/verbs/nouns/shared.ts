import type { Turn } from '../../interpreter/turn.ts'
import type { DialChild, MachineDetection } from '../../interpreter/types.ts'
import { choice, events, integer, method, url, type Values } from '../attributes.ts'

/** Attributes that Number, Sip, Client and Application share: the child's whisper document and status callbacks. */
export function childAttributes(methodNumber: number) {
  return {
    url: url(),
    method: method(methodNumber),
    statusCallback: url(),
    statusCallbackMethod: method(),
    statusCallbackEvent: events(['initiated', 'ringing', 'answered', 'completed'], ['completed'], 21626),
  }
}

/** Attributes of answering-machine detection on a child (voice-compat.md §11, §12.4). */
export const DETECTION = {
  machineDetection: choice(['Enable', 'DetectMessageEnd'], { default: null, number: 21234 }),
  machineDetectionTimeout: integer({ default: 30, min: 3, max: 60, number: 21234 }),
  machineDetectionSpeechThreshold: integer({ default: 2400, min: 1000, max: 6000, number: 21234 }),
  machineDetectionSpeechEndThreshold: integer({ default: 1200, min: 500, max: 5000, number: 21234 }),
  machineDetectionSilenceTimeout: integer({ default: 5000, min: 2000, max: 10_000, number: 21234 }),
  amdStatusCallback: url(),
  amdStatusCallbackMethod: method(),
}

type ChildValues = Values<ReturnType<typeof childAttributes>>

export function statusCallback(attributes: ChildValues, turn: Turn): DialChild['status_callback'] {
  const target = turn.target(attributes.statusCallback, attributes.statusCallbackMethod, 11100)
  return target && { ...target, events: attributes.statusCallbackEvent }
}

export function machineDetection(attributes: Values<typeof DETECTION>, turn: Turn): MachineDetection | null {
  if (attributes.machineDetection === null) return null
  return {
    mode: attributes.machineDetection,
    timeout_seconds: attributes.machineDetectionTimeout,
    speech_threshold_ms: attributes.machineDetectionSpeechThreshold,
    speech_end_threshold_ms: attributes.machineDetectionSpeechEndThreshold,
    silence_timeout_ms: attributes.machineDetectionSilenceTimeout,
    callback: turn.target(attributes.amdStatusCallback, attributes.amdStatusCallbackMethod, 11100),
  }
}
