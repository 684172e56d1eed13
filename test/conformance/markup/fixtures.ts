import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command, RunKind } from '../../../markup/interpreter/types.ts'
import type { TestText } from '../../../markup/verbs/table.ts'
import type { Test } from '../../support/harness/index.ts'
import { call, type Phone } from '../../unit/markup/phone.ts'
import { carryOn, type Habits } from '../../unit/markup/world.ts'

const FIXTURES = 'fixtures/markup'

/** Facts that a fixture needs in addition to its text. */
interface FixtureFacts extends Habits {
  readonly kind?: RunKind
  readonly inline?: boolean
  readonly answered?: boolean
  readonly transcriber?: boolean
  readonly siprec?: readonly string[]
}

export interface Good {
  readonly facts: FixtureFacts
  /** All commands after the document arrives, when each gets its usual answer. */
  readonly commands: readonly Command[]
}

export interface Bad {
  readonly facts: FixtureFacts
  readonly fatal: boolean
  readonly faults: readonly { readonly number: number; readonly line: number; readonly column: number }[]
}

/** Returns the documents of a folder, each with its expected result. */
export function fixtures<E>(folder: 'good' | 'bad'): readonly { name: string; text: string; expected: E }[] {
  const path = join(FIXTURES, folder)
  return readdirSync(path)
    .filter(name => name.endsWith('.xml'))
    .sort()
    .map(file => ({
      name: file.slice(0, -4),
      text: readFileSync(join(path, file), 'utf8'),
      expected: JSON.parse(readFileSync(join(path, `${file.slice(0, -4)}.json`), 'utf8')) as E,
    }))
}

/** Returns the tests that contain markup, and the fixtures. The published table searches them for its names. */
export function testTexts(): readonly TestText[] {
  const sources = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.test.ts'))
    .sort()
    .map(name => ({ name, text: withConstants(readFileSync(join('test', name), 'utf8')) }))
    .filter(({ text }) => text.includes('Response>') || text.includes('response('))
  const documents = [...fixtures('good'), ...fixtures('bad')].map(({ name, text }) => ({ name: `${name}.xml`, text }))
  return [...sources, ...documents]
}

/** Inserts the text constants of a file into its templates, so that assembled markup can be searched. */
export function withConstants(source: string): string {
  let text = source
  for (const [, name, , value = ''] of source.matchAll(/\bconst (\w+) =\s+(['`])([^\n]*)\2\n/g))
    text = text.replaceAll(`\${${name}}`, () => value)
  return text
}

/** Runs a document with the usual answers until it ends or fetches another one. */
export function runFixture(t: Test, text: string, facts: FixtureFacts): Phone {
  const phone = call(t, text, {
    kind: facts.kind ?? 'call',
    inline: facts.inline ?? false,
    answered: facts.answered ?? true,
    speech: { recognizer: facts.speech !== undefined, transcriber: facts.transcriber ?? false },
    siprec_connectors: facts.siprec ?? [],
  })
  carryOn(phone.commands, event => phone.send(event), facts)
  return phone
}
