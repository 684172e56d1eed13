import { readFileSync } from 'node:fs'
import type { RunKind } from '../../../markup/interpreter/types.ts'
import type { Test } from '../../support/harness/index.ts'
import { call, response } from '../../unit/markup/phone.ts'
import { carryOn, type Habits } from '../../unit/markup/world.ts'

// The registry of effects: fixtures/markup/effects.txt names what each element and attribute changes. effects.test.ts
// shows each effect by a run, and the column "acts" of docs/markup.md is made of it.

interface Facts extends Habits {
  readonly kind?: RunKind
  readonly answered?: boolean
  readonly siprec?: readonly string[]
  /** The child asks to be transferred. */
  readonly referred?: boolean
}

interface Effect {
  readonly element: string
  /** Null for the element itself. */
  readonly attribute: string | null
  readonly without: string
  readonly with: string
  /** What the commands of a run contain only `with` it. */
  readonly shows: string
  readonly facts: Facts
}

const MARK = '§'

/** The rows of the published table whose effect is shown. */
export const shownRows = (): ReadonlySet<string> =>
  new Set(effects().map(({ element, attribute }) => `${element} ${attribute ?? ''}`))

export function effects(): readonly Effect[] {
  const found: Effect[] = []
  let element = ''
  let document = ''
  let facts: Facts = {}
  for (const line of readFileSync('fixtures/markup/effects.txt', 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const attribute = /^ {2}(\w+)=(.*?) -> (.*)$/.exec(line)
    if (attribute) {
      const [, name = '', value = '', shows = ''] = attribute
      const set = withAttribute(document, name, value)
      found.push({ element, attribute: name, without: document.replace(MARK, ''), with: set, shows, facts })
      continue
    }
    const [path = '', text = '', shows = '', given = '{}'] = line.split(' | ')
    element = path
    document = text
    facts = JSON.parse(given)
    const without = text.replace(/<\w+[^<>]*§\/>/, '')
    const alone = { element, attribute: null, with: text.replace(MARK, ''), shows: shows.trim(), facts }
    if (alone.shows !== '') found.push({ ...alone, without: without === text ? '' : without })
  }
  return found
}

/** Sets an attribute of the element with the mark; a value that the document gives is replaced. */
function withAttribute(document: string, name: string, value: string): string {
  const mark = document.indexOf(MARK)
  const tag = document.lastIndexOf('<', mark)
  const others = document.slice(tag, mark).replace(new RegExp(` ${name}="[^"]*"`), '')
  return `${document.slice(0, tag)}${others} ${name}="${value}"${document.slice(mark + MARK.length)}`
}

/** Engines as an installation with everything has them. */
export const SPEECH = {
  recognizer: true,
  transcriber: true,
  providers: { tts: 'openai', stt: 'deepgram' },
  choices: { tts: ['openai', 'espeak-ng'], stt: ['deepgram', 'pocketsphinx', 'url'] },
}

/** Runs a document with the usual answers, and returns its commands without notes, as JSON. */
export function commandsOf(t: Test, document: string, facts: Facts): string {
  const { kind = 'call', answered = true, siprec = [] } = facts
  const phone = call(t, response(document), { kind, answered, speech: SPEECH, siprec_connectors: siprec })
  if (facts.referred) {
    phone.childAnswered().bridged()
    phone.send({ type: 'refer_received', leg: phone.last('bridge').child, target: '<sip:carol@x>', headers: {} })
  } else carryOn(phone.commands, event => phone.send(event), facts)
  return JSON.stringify(phone.all.slice(1).filter(({ type }) => type !== 'note'))
}
