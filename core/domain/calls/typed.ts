import { maskCards, maskDigits } from '../ladder/cards.ts'

/** What people type and say, as requests about their call carry it. Decision 0580 says who gets it and who does not. */

/** It does not tell how long the value is. */
const SECRET = '[secret]'
/** Fewer keys are no card number. More need no check digit: a card with its expiry date, or one that was mistyped. */
const SHORTEST_CARD = 13
const ENTERED = ['Digits', 'SpeechResult', 'UnstableSpeechResult', 'StableSpeechResult']
/** Telephone numbers and ids of our own, which may pass Luhn. */
const OURS = /^(?:From|To|Caller|Called|ForwardedFrom|CalledVia|\w*Sid|\w*CallId)$/

type Parameters = Readonly<Record<string, string>>

/** Parameters as they are kept, shown, and told to whoever did not ask for them. `secret`: names. */
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

/** Facts of an event of the call: its sentences and URLs are shown as they may be, its numbers and ids as they are. */
export function shownFacts(facts: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, shownFact(name, value)]))
}

function shownFact(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (name === 'url') return shownUrl(value)
  return name === 'detail' || name === 'text' ? maskCards(value) : value
}

/**
 * A URL as it is kept: a GET and its redirects carry parameters in the query, where nothing tells any more whether
 * they were secret. The parameters are kept beside it.
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
