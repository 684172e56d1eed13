import { type Interruptible, MAX_DIGITS } from './types.ts'

/** A message of the application (voice-compat.md §12.6). */
export type AppMessage =
  | {
      readonly type: 'text'
      readonly token: string
      readonly last: boolean
      readonly language: string | null
      readonly how: Manner
    }
  | { readonly type: 'play'; readonly url: string; readonly loop: number; readonly how: Manner }
  | { readonly type: 'sendDigits'; readonly digits: string }
  | { readonly type: 'language'; readonly tts: string | null; readonly transcription: string | null }
  | { readonly type: 'end'; readonly hand_off: string | null }

/** How something is said. Null leaves it to the session's settings. */
export interface Manner {
  readonly interruptible: Interruptible | null
  readonly preemptible: boolean | null
}

const MAX_TOKEN = 16_384
const MAX_HAND_OFF = 16_384
const MAX_URL = 4096
const MAX_LOOP = 1000
const TAG = /^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$/
const INPUTS: readonly unknown[] = ['none', 'dtmf', 'speech', 'any']

class Fault extends Error {}

/** Reads a message, or returns in one sentence why it cannot be used. */
export function readMessage(text: string): AppMessage | { readonly fault: string } {
  let fields: unknown
  try {
    fields = JSON.parse(text)
  } catch {
    return { fault: 'the message is not JSON' }
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    return { fault: 'the message is not a JSON object' }
  try {
    return read(fields as Record<string, unknown>)
  } catch (error) {
    if (error instanceof Fault) return { fault: error.message }
    throw error
  }
}

function read(fields: Record<string, unknown>): AppMessage {
  const { type } = fields
  switch (type) {
    case 'text': {
      const token = words(fields, 'token', MAX_TOKEN) ?? missing('text', 'token')
      return { type, token, last: flag(fields, 'last') ?? false, language: tag(fields, 'lang'), how: manner(fields) }
    }
    case 'play': {
      const url = words(fields, 'source', MAX_URL) ?? missing('play', 'source')
      if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) throw new Fault('source of play is not an http(s) URL')
      const loop = fields['loop'] ?? 1
      if (!Number.isInteger(loop) || Number(loop) < 0 || Number(loop) > MAX_LOOP)
        throw new Fault(`loop of play is not an integer from 0 to ${MAX_LOOP}`)
      return { type, url, loop: Number(loop), how: manner(fields) }
    }
    case 'sendDigits': {
      const digits = words(fields, 'digits', MAX_DIGITS) ?? missing('sendDigits', 'digits')
      if (!/^[0-9*#wW]+$/.test(digits)) throw new Fault('digits of sendDigits are not of 0-9 * # w')
      return { type, digits }
    }
    case 'language': {
      const tts = tag(fields, 'ttsLanguage')
      const transcription = tag(fields, 'transcriptionLanguage')
      if (tts === null && transcription === null)
        throw new Fault('language names no ttsLanguage or transcriptionLanguage')
      return { type, tts, transcription }
    }
    case 'end':
      return { type, hand_off: words(fields, 'handoffData', MAX_HAND_OFF) }
    default:
      throw new Fault(`unknown message type ${JSON.stringify(type ?? null).slice(0, 60)}`)
  }
}

function missing(type: string, name: string): never {
  throw new Fault(`${type} has no ${name}`)
}

function words(fields: Record<string, unknown>, name: string, max: number): string | null {
  const value = fields[name] ?? null
  if (value === null) return null
  if (typeof value !== 'string') throw new Fault(`${name} is not a string`)
  if (value.length > max) throw new Fault(`${name} is longer than ${max} characters`)
  return value
}

function flag(fields: Record<string, unknown>, name: string): boolean | null {
  const value = fields[name] ?? null
  if (value === null || typeof value === 'boolean') return value
  if (value === 'true' || value === 'false') return value === 'true'
  throw new Fault(`${name} is not true or false`)
}

function tag(fields: Record<string, unknown>, name: string): string | null {
  const value = words(fields, name, 35)
  if (value === null || TAG.test(value)) return value
  throw new Fault(`${name} is not a BCP 47 tag`)
}

function manner(fields: Record<string, unknown>): Manner {
  const { interruptible = null } = fields
  const known = typeof interruptible === 'boolean' ? (interruptible ? 'any' : 'none') : interruptible
  const input = known === 'true' ? 'any' : known === 'false' ? 'none' : known
  if (input !== null && !INPUTS.includes(input)) throw new Fault('interruptible is not none, dtmf, speech or any')
  return { interruptible: input as Interruptible | null, preemptible: flag(fields, 'preemptible') }
}
