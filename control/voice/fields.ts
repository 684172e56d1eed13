import type { Sound } from '../../core/domain/calls/control-commands.ts'
import { parseTarget } from '../../core/domain/webhooks/target.ts'
import { parse } from '../../markup/parse/parse.ts'
import { isVoiceRefusal, numbered, type VoiceNumber, type VoiceRefusal } from './errors.ts'
import type { Form } from './form.ts'

/** Form fields that creating and updating a call have in common. */

const MAX_MARKUP_CHARACTERS = 4000

/** Reads a method. Anything except GET counts as POST (spec, "Create a call"). */
export const methodOf = (form: Form, name: string): 'GET' | 'POST' =>
  form.text(name)?.toUpperCase() === 'GET' ? 'GET' : 'POST'

/** Reads an absolute http(s) URL; null when the field is missing. */
export function urlOf(form: Form, name: string, number: VoiceNumber = 21205): string | null | VoiceRefusal {
  const text = form.text(name)
  if (text === undefined) return null
  const parsed = parseTarget(text)
  return parsed.ok ? text : numbered(number, `${name} is not an absolute http or https URL: ${parsed.detail}.`)
}

/** Reads the inline markup, from `Twiml` or `InlineMarkup`; null when both are missing. */
export function inlineMarkup(form: Form): string | null | VoiceRefusal {
  const text = form.text('Twiml') ?? form.text('InlineMarkup')
  if (text === undefined) return null
  // Counts Unicode code points, not UTF-16 units: an emoji is one character.
  const characters = text.length > MAX_MARKUP_CHARACTERS ? [...text].length : text.length
  if (characters > MAX_MARKUP_CHARACTERS)
    return numbered(
      12100,
      `The inline markup has ${characters} characters and at most ${MAX_MARKUP_CHARACTERS} are allowed.`,
    )
  const parsed = parse(text)
  if (parsed.ok) return text
  const { line, column, number } = parsed.fault
  const detail = parsed.fault.detail.replace(/\.$/, '')
  return numbered(12100, `The inline markup does not parse: line ${line}, column ${column}: ${detail}.`, {
    details: { line, column, number },
  })
}

/** Parses an integer; null when the text is not one. */
export const wholeNumber = (text: string): number | null =>
  /^[+-]?[0-9]{1,15}$/.test(text.trim()) ? Number(text) : null

/** Reads a list of names: from a repeated field, or from one value that is separated by spaces or commas. */
export const namesOf = (form: Form, name: string): string[] =>
  form.all(name).flatMap(value => value.split(/[\s,]+/).filter(one => one !== ''))

/** Reads a flag, `true` or `1`; undefined when the field is missing. */
export function flagOf(form: Form, name: string): boolean | undefined {
  const text = form.text(name)
  return text === undefined ? undefined : /^(true|1)$/i.test(text)
}

/** Refuses the first of these flags that is neither true nor false. */
export function oddFlag(form: Form, names: readonly string[]): VoiceRefusal | null {
  for (const name of names) {
    const text = form.text(name)
    if (text !== undefined && !/^(true|false|1|0)$/i.test(text))
      return numbered(20001, `${name} ${text.slice(0, 60)} is neither true nor false.`)
  }
  return null
}

/** Reads one of some words, in either case; `unsaid` when the field is missing. */
export function wordOf<const W extends string>(
  form: Form,
  name: string,
  words: readonly W[],
  unsaid: NoInfer<W>,
): W | VoiceRefusal {
  const text = form.text(name) ?? unsaid
  const known = words.find(word => word.toLowerCase() === text.toLowerCase())
  return known ?? numbered(20001, `${name} ${text.slice(0, 60)} is not one of ${words.join(', ')}.`)
}

/** Reads the sound or document of `<name>Url` and `<name>Method`; null when there is none. */
export function soundIn(form: Form, name: string, unsaid: Sound['method'] = 'POST'): Sound | null | VoiceRefusal {
  const url = urlOf(form, `${name}Url`)
  if (url === null || isVoiceRefusal(url)) return url
  const given = form.text(`${name}Method`) !== undefined
  return { url, method: given ? methodOf(form, `${name}Method`) : unsaid }
}

/** Formats an amount in minor units as a decimal of the currency: `-1250` is `-12.50`. */
export const decimalOf = (minor: number): string => (minor / 100).toFixed(2)
