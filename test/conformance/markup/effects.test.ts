import { attributeRows } from '../../../markup/verbs/table.ts'
import t from '../../support/harness/index.ts'
import { commandsOf, effects, shownRows } from './effects.ts'

t.test('what the published table says to act changes what is done', async t => {
  for (const { element, attribute, shows, facts, ...document } of effects()) {
    const name = `${element} ${attribute ?? ''}`
    const done = commandsOf(t, document.with, facts)
    t.ok(done.includes(shows), `${name} gives ${shows}: ${done}`)
    t.notOk(commandsOf(t, document.without, facts).includes(shows), `${name}: without it there is no ${shows}`)
  }
})

t.test('what is read and does nothing is known, and the table has no other row without an effect', async t => {
  const known = shownRows()
  const rows = attributeRows()
  const silent = rows.filter(
    ({ element, attribute, support }) => support === 'yes' && !known.has(`${element} ${attribute ?? ''}`),
  )
  t.strictSame(
    silent.map(({ element, attribute }) => `${element} ${attribute ?? ''}`.trim()),
    [
      'Connect > Stream track',
      'Connect > ConversationRelay > Language ttsProvider',
      'Connect > ConversationRelay > Language transcriptionProvider',
    ],
    'each of these leaves a warning',
  )
  for (const name of known)
    t.ok(
      rows.some(row => `${row.element} ${row.attribute ?? ''}` === name),
      `${name} is a row`,
    )
})
