import { ssmlAttribute, ssmlRules } from '../../core/domain/speech/ssml.ts'
import { escapeXml } from '../../core/domain/text/xml.ts'
import type { Turn } from '../interpreter/turn.ts'
import type { Element, PlayItem } from '../interpreter/types.ts'
import { loop, text } from './attributes.ts'
import { playItems } from './playing.ts'
import type { Node, Report } from './shape.ts'
import { next, verb } from './verb.ts'

const MAX_CHARACTERS = 4096

const ATTRIBUTES = {
  voice: text({ max: 100, number: 13511 }),
  language: text({ max: 35, number: 13512 }),
  loop: loop(13510),
}

export const say = verb('Say', ATTRIBUTES, {
  kinds: ['call', 'whisper', 'queue_wait', 'conference_wait'],
  content: 'tree',
  inspect(node, report) {
    inspectSsml(node.element, report)
    const length = plain(node.element).length
    const about = { place: node.element, element: 'Say', rule: 'content' } as const
    if (length === 0) report({ ...about, number: 13520, detail: '<Say> has no text; it is skipped' })
    if (length > MAX_CHARACTERS) {
      report({ ...about, number: 13521, detail: `the text has ${length} characters; it is cut at ${MAX_CHARACTERS}` })
    }
  },
  begin(node, turn) {
    const item = speechItem(node, turn)
    return item ? playItems(turn, [item]) : next
  },
  ...playItems.steps,
})

/** Returns the speech of a Say; null without text. Checks voice and language against the run's speech engines. */
export function speechItem(node: Node<typeof ATTRIBUTES>, turn: Turn): PlayItem | null {
  const whole = plain(node.element)
  if (whole === '') return null
  const cut = whole.length > MAX_CHARACTERS
  const tagged = node.element.children.some(child => typeof child !== 'string')
  return {
    kind: 'speech',
    text: cut ? whole.slice(0, MAX_CHARACTERS) : whole,
    // Cutting SSML could break its tags, so a text that is too long is spoken without them.
    ssml: tagged && !cut ? `<speak>${serialise(node.element)}</speak>` : null,
    ...chooseVoice(node.attributes.voice, node.attributes.language, turn),
    loop: node.attributes.loop,
  }
}

function chooseVoice(wanted: string | null, language: string | null, turn: Turn): { voice: string; language: string } {
  const { voices, languages, default_voice, default_language } = turn.facts.speech
  const spoken = language ?? (wanted === null ? null : languageOf(wanted)) ?? default_language
  const known = languages.length === 0 || languages.some(tag => covers(tag, spoken))
  if (!known) turn.warn(13512, `language "${spoken}" is not available; "${default_language}" is used`)
  const basic = wanted !== null && /^(man|woman|alice)$/i.test(wanted)
  const usable = wanted === null || basic || voices.length === 0 || voices.some(known => coversVoice(known, wanted))
  if (!usable) turn.warn(13511, `voice "${wanted}" is not available; the default voice of the language is used`)
  return { voice: usable ? (wanted ?? default_voice) : default_voice, language: known ? spoken : default_language }
}

/** Reports whether a known voice covers the wanted one. `Polly.*` covers every voice with that prefix. */
function coversVoice(known: string, wanted: string): boolean {
  const [name, voice] = [known.toLowerCase(), wanted.toLowerCase()]
  return name.endsWith('*') ? voice.startsWith(name.slice(0, -1)) : voice === name
}

/** Returns the language in a voice's name, as in `Google.en-GB-Standard-A`; null for most provider voices. */
function languageOf(voice: string): string | null {
  return /^[A-Za-z]+\.([a-z]{2,3}-[A-Z]{2})\b/.exec(voice)?.[1] ?? null
}

/** Reports whether tags match, case-insensitively. `en` covers `en-GB` and the reverse. */
function covers(known: string, wanted: string): boolean {
  const [a, b] = [known.toLowerCase(), wanted.toLowerCase()]
  return a === b || a === b.split('-')[0] || a.split('-')[0] === b
}

function inspectSsml(element: Element, report: Report): void {
  for (const child of element.children) {
    if (typeof child === 'string') continue
    const about = { number: 12200, element: child.name }
    const rules = ssmlRules(child.name)
    if (!rules) {
      const detail = `<${child.name}> is not a speech element; its text is spoken`
      report({ ...about, rule: 'unknown_element', detail, place: child })
    }
    for (const [name, { value, ...place }] of Object.entries(child.attributes)) {
      const shape = rules && Object.hasOwn(rules, name) ? rules[name] : undefined
      if (!rules || shape?.test(value)) continue
      const rule = shape ? 'bad_value' : 'unknown_attribute'
      report({ ...about, rule, detail: `${name} of <${child.name}> is dropped`, place })
    }
    inspectSsml(child, report)
  }
}

/** Returns the text without tags, with `sub` replaced by its alias and white space collapsed. */
function plain(element: Element): string {
  return collapse(rawText(element))
}

function rawText(element: Element): string {
  const alias = element.name === 'sub' ? element.attributes['alias']?.value : undefined
  if (alias !== undefined) return alias
  const words = element.children.map(child => (typeof child === 'string' ? child : rawText(child))).join('')
  return ['break', 'p', 's'].includes(element.name) ? ` ${words} ` : words
}

function collapse(words: string): string {
  return words.replace(/\s+/g, ' ').trim()
}

/**
 * Serialises only known elements and valid attributes: the engine gets nothing that `inspectSsml` reports as dropped.
 */
function serialise(element: Element): string {
  return element.children
    .map(child => {
      if (typeof child === 'string') return escapeXml(child.replace(/\s+/g, ' '))
      if (!ssmlRules(child.name)) return serialise(child)
      const attributes = Object.entries(child.attributes)
        .map(([name, { value }]) => ssmlAttribute(child.name, name, value))
        .join('')
      const inside = serialise(child)
      return inside === '' ? `<${child.name}${attributes}/>` : `<${child.name}${attributes}>${inside}</${child.name}>`
    })
    .join('')
    .trim()
}
