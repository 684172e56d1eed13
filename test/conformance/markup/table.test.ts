import { attributeRows, markdownTable, onLiveCalls, type TestText, testsOf } from '../../../markup/verbs/table.ts'
import t from '../../support/harness/index.ts'
import { shownRows } from './effects.ts'
import { testTexts, withConstants } from './fixtures.ts'

t.test(
  'every verb, noun and attribute of the registry occurs in a test of a live call and in another test',
  async t => {
    const known = testTexts()
    const without = (tests: readonly TestText[]): string[] =>
      attributeRows()
        .filter(row => testsOf(row, tests).length === 0)
        .map(({ element, attribute }) => `${element} ${attribute ?? ''}`.trim())
    t.strictSame(without(known.filter(({ name }) => onLiveCalls(name))), [])
    t.strictSame(without(known.filter(({ name }) => !onLiveCalls(name))), [])
  },
)

t.test('a constant of a file is inserted where a template uses it', async t => {
  const place = (name: string): string => `<Say $\{${name}}>`
  const constant = `const a = 'x="1"'\n`
  t.equal(withConstants(constant + place('a') + place('b')), `${constant}<Say x="1">${place('b')}`)
})

t.test('the table has a line for each row and nothing that breaks a cell', async t => {
  const lines = markdownTable(testTexts(), shownRows()).trimEnd().split('\n')
  t.equal(lines.length, attributeRows().length + 2)
  for (const line of lines) t.equal(line.split(/(?<!\\)\|/).length, 11, line)
})

t.test('a row is matched by its own element only', async t => {
  const row = attributeRows().find(r => r.element === 'Dial > Number' && r.attribute === 'url')
  if (!row) throw new Error('no such row')
  t.strictSame(testsOf(row, [{ name: 'a', text: '<Dial><Number a="1" url="x">1</Number></Dial>' }]), ['a'])
  t.strictSame(testsOf(row, [{ name: 'a', text: '<Dial url="x"><Number>1</Number></Dial>' }]), [])
  t.strictSame(testsOf(row, [{ name: 'a', text: '<Number url="x">1</Number>' }]), [])
})
