import { checkDocument } from '../../../markup/check.ts'
import t from '../../support/harness/index.ts'
import { BASE } from '../../unit/markup/phone.ts'
import { type Bad, fixtures, type Good, runFixture } from './fixtures.ts'

t.test('each good document gives exactly the commands of its fixture', async t => {
  const good = fixtures<Good>('good')
  t.ok(good.length >= 60, 'at least sixty')
  for (const { name, text, expected } of good) {
    const phone = runFixture(t, text, expected.facts)
    const commands = phone.all.slice(expected.facts.inline ? 0 : 1)
    t.strictSame(commands, expected.commands, name)
    t.strictSame(phone.notes(), [], `${name} has no faults`)
  }
})

t.test('each bad document has exactly the faults of its fixture, by number, line and column', async t => {
  const bad = fixtures<Bad>('bad')
  t.ok(bad.length >= 60, 'at least sixty')
  for (const { name, text, expected } of bad) {
    const phone = runFixture(t, text, expected.facts)
    const noted = phone.all.flatMap(c => (c.type === 'note' ? [c] : []))
    const found = noted.map(({ number, line, column }) => ({ number, line: line ?? 0, column: column ?? 0 }))
    t.strictSame(found.sort(byPlace), [...expected.faults].sort(byPlace), name)
    t.equal(
      noted.some(note => note.level === 'error'),
      expected.fatal,
      `${name} is ${expected.fatal ? '' : 'not '}fatal`,
    )
  }
})

t.test('the static check lists every fault of the bad documents that shows without an engine', async t => {
  const dynamic = new Set([13511, 13512, 13343])
  for (const { name, text, expected } of fixtures<Bad>('bad')) {
    const { kind = 'call', inline = false } = expected.facts
    const listed = checkDocument(text, { kind, url: inline ? null : BASE }).advice
    for (const { number, line, column } of expected.faults.filter(fault => !dynamic.has(fault.number))) {
      t.ok(
        listed.some(a => a.number === number && a.line === line && a.column === column),
        `${name}: ${number} at ${line}:${column}`,
      )
    }
  }
})

t.test('the static check finds no error in the good documents', async t => {
  for (const { name, text, expected } of fixtures<Good>('good')) {
    const { kind = 'call', inline = false } = expected.facts
    t.equal(checkDocument(text, { kind, url: inline ? null : BASE }).ok, true, name)
  }
})

function byPlace(a: { line: number; column: number }, b: { line: number; column: number }): number {
  return a.line - b.line || a.column - b.column
}
