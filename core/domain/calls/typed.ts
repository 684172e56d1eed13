import { maskCards, maskDigits } from '../ladder/cards.ts'

/** Keys and speech of callers in requests about their calls. docs/calls.md says who may see them. */

/** Replaces a secret without revealing its length. */
const SECRET = '[secret]'
/** Fewer keys are no card number. More are masked whatever their check digit: a mistyped card, or one with its date. */
const SHORTEST_CARD = 13
const ENTERED = ['Digits', 'SpeechResult', 'UnstableSpeechResult', 'StableSpeechResult']
/** Parameters with telephone numbers and ids, which may pass the Luhn check. */
const OURS = /^(?:From|To|Caller|Called|ForwardedFrom|CalledVia|\w*Sid|\w*CallId)$/

type Parameters = Readonly<Record<string, string>>

/** Returns parameters as they are stored and shown. `secret` has the names of secret ones. */
export function shownParameters(parameters: Parameters, secret: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, shownValue(name, value, secret)]))
}

function shownValue(name: string, value: string, secret: readonly string[]): string {
  if (secret.includes(name)) return SECRET
  if (OURS.test(name)) return value
  if (/^https?:/i.test(value)) return shownUrl(value)
  const long = name === 'Digits' && value.replace(/\D/g, '').length >= SHORTEST_CARD
  return long ? maskDigits(value) : maskCards(value)
}

/** Returns the facts of an event with card numbers masked in its sentences and URLs. */
export function shownFacts(facts: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, shownFact(name, value)]))
}

function shownFact(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (name === 'url') return shownUrl(value)
  return name === 'detail' || name === 'text' ? maskCards(value) : value
}

/**
 * Returns a URL as it is stored. A GET and its redirects carry parameters in the query, where secret ones can no longer
 * be recognized. The parameters are stored separately.
 */
export function shownUrl(url: string): string {
  const at = url.indexOf('?')
  if (at === -1) return maskCards(url)
  const query = url
    .slice(at + 1)
    .split('&')
    .map(shownPair)
  return `${maskCards(url.slice(0, at))}?${query.join('&')}`
}

function shownPair(pair: string): string {
  const at = pair.indexOf('=')
  if (at === -1) return maskCards(pair)
  const [name, value] = [decoded(pair.slice(0, at)), decoded(pair.slice(at + 1))]
  const shown = shownValue(name, value, ENTERED)
  return shown === value ? pair : `${pair.slice(0, at)}=${encodeURIComponent(shown)}`
}

/** Returns text with malformed percent-encoding unchanged. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
