import type { DocumentTarget } from '../../markup/interpreter/types.ts'
import type { Leg } from '../b2bua/leg.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import { queueCallback } from './tell.ts'

/** Answering-machine detection on a leg that has just been answered (voice-compat.md §12.4). */

interface DetectionSettings {
  readonly mode: 'Enable' | 'DetectMessageEnd'
  readonly timeout_seconds: number
  readonly speech_threshold_ms: number
  readonly speech_end_threshold_ms: number
  readonly silence_timeout_ms: number
}

interface Detected {
  readonly AnsweredBy: string
  /** In milliseconds, as text. */
  readonly MachineDetectionDuration: string
}

/** Resolves with the result; null when there is none, because the worker refused or the call ended first. */
export function detectMachine(call: ScriptedCall, leg: Leg, settings: DetectionSettings): Promise<Detected | null> {
  return new Promise(resolve => {
    const done = (detected: Detected | null): void => {
      unwatch()
      resolve(detected)
    }
    const unwatch = call.watchMedia(event => {
      if (event.event === 'amd.result' && event.leg_id === leg.id)
        done({ AnsweredBy: event.answered_by, MachineDetectionDuration: String(event.duration_ms) })
    })
    call.onEnd(() => done(null))
    leg.session.hub
      .request('amd.start', {
        leg_id: leg.id,
        mode: settings.mode === 'Enable' ? 'enable' : 'message_end',
        timeout_ms: settings.timeout_seconds * 1000,
        speech_threshold_ms: settings.speech_threshold_ms,
        speech_end_threshold_ms: settings.speech_end_threshold_ms,
        silence_timeout_ms: settings.silence_timeout_ms,
      })
      .catch(err => {
        call.log.info({ err }, 'answering-machine detection could not run')
        done(null)
      })
  })
}

/** Sends the callback of an asynchronous detection. */
export const tellDetected = (call: ScriptedCall, detected: Detected, callback: DocumentTarget): void =>
  void queueCallback(call, callback, { CallSid: call.sid, AccountSid: call.facts.account_sid, ...detected })

/** Reads the settings that the API stored in the call's request; null when there are none. */
export function readDetection(
  value: Readonly<Record<string, unknown>> | null | undefined,
): (DetectionSettings & { readonly asynchronous: boolean; readonly callback: DocumentTarget | null }) | null {
  if (!value || (value['mode'] !== 'Enable' && value['mode'] !== 'DetectMessageEnd')) return null
  const number = (name: string, fallback: number): number =>
    typeof value[name] === 'number' ? (value[name] as number) : fallback
  const url = value['callback']
  return {
    mode: value['mode'],
    timeout_seconds: number('timeout_seconds', 30),
    speech_threshold_ms: number('speech_threshold_ms', 2400),
    speech_end_threshold_ms: number('speech_end_threshold_ms', 1200),
    silence_timeout_ms: number('silence_timeout_ms', 5000),
    asynchronous: value['asynchronous'] === true,
    callback: typeof url === 'string' ? { url, method: value['callback_method'] === 'GET' ? 'GET' : 'POST' } : null,
  }
}
