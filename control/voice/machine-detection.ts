import { isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { flagOf, methodOf, oddFlag, urlOf, wholeNumber } from './fields.ts'
import type { Form } from './form.ts'

/** Ranges of the compatible form fields: minimum, maximum, default. */
const RANGES = {
  MachineDetectionTimeout: [3, 59, 30],
  MachineDetectionSpeechThreshold: [1000, 6000, 2400],
  MachineDetectionSpeechEndThreshold: [500, 5000, 1200],
  MachineDetectionSilenceTimeout: [2000, 10_000, 5000],
} as const

const MODES = ['Enable', 'DetectMessageEnd'] as const
/** What programs write who do not want it. */
const OFF = ['none', 'disable', 'false']

/** Reads answering-machine detection as the call's request stores it; null when it is not requested. */
export function readMachineDetection(form: Form): Readonly<Record<string, unknown>> | null | VoiceRefusal {
  const asked = form.text('MachineDetection')?.toLowerCase()
  if (asked === undefined || OFF.includes(asked)) return null
  const mode = MODES.find(one => one.toLowerCase() === asked)
  if (mode === undefined) return numbered(21234, `MachineDetection is ${MODES.join(' or ')}.`)
  const values: Partial<Record<keyof typeof RANGES, number>> = {}
  for (const [name, [least, most, fallback]] of Object.entries(RANGES)) {
    const text = form.text(name)
    const value = text === undefined ? fallback : wholeNumber(text)
    if (value === null || value < least || value > most)
      return numbered(21234, `${name} is a whole number from ${least} to ${most}.`)
    values[name as keyof typeof RANGES] = value
  }
  const odd = oddFlag(form, ['AsyncAmd'])
  if (odd) return odd
  const callback = urlOf(form, 'AsyncAmdStatusCallback')
  if (isVoiceRefusal(callback)) return callback
  return {
    mode,
    timeout_seconds: values.MachineDetectionTimeout,
    speech_threshold_ms: values.MachineDetectionSpeechThreshold,
    speech_end_threshold_ms: values.MachineDetectionSpeechEndThreshold,
    silence_timeout_ms: values.MachineDetectionSilenceTimeout,
    asynchronous: flagOf(form, 'AsyncAmd') === true,
    callback,
    callback_method: methodOf(form, 'AsyncAmdStatusCallbackMethod'),
  }
}
