import { readFileSync } from 'node:fs'
import { checkDocument } from '../../../markup/check.ts'
import { VERBS } from '../../../markup/verbs/index.ts'
import t from '../../support/harness/index.ts'
import { call } from '../../unit/markup/phone.ts'
import { carryOn } from '../../unit/markup/world.ts'
import { SPEECH } from './effects.ts'
import { examples } from './examples.ts'

/** What a run needs that a call has not by itself. */
const FACTS: Readonly<Record<string, object>> = { reject: { answered: false }, leave: { kind: 'queue_wait' } }

t.test('every verb has an example in the published page, which runs as written and has no fault', async t => {
  const page = readFileSync('docs/markup.md', 'utf8')
  const all = examples()
  for (const { name, text } of all) {
    t.ok(page.includes(`\`\`\`xml\n${text}\`\`\``), `${name} is on the page`)
    const facts = FACTS[name] ?? {}
    t.strictSame(checkDocument(text, { kind: name === 'leave' ? 'queue_wait' : 'call', url: null }).advice, [], name)
    const phone = call(t, text, { ...facts, speech: { ...SPEECH, languages: ['en'] } })
    carryOn(phone.commands, event => phone.send(event))
    t.strictSame(phone.notes(), [], `${name} runs without a warning`)
    t.ok(phone.all.length > 1, `${name} does something`)
  }
  const written = all.map(({ text }) => text).join('\n')
  const supported = VERBS.filter(verb => verb.unsupported === null).map(verb => verb.name)
  t.strictSame(
    supported.filter(name => !new RegExp(`<${name}[\\s/>]`).test(written)),
    [],
  )
})
