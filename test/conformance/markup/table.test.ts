import t from 'tap'
import { attributeRows, markdownTable, testsOf } from '../../../markup/verbs/table.ts'
import { testTexts } from './fixtures.ts'

t.test('every verb, noun and attribute of the registry is written in some test', async t => {
  const known = testTexts()
  const missing = attributeRows().filter(row => testsOf(row, known).length === 0)
  t.strictSame(
    missing.map(({ element, attribute }) => `${element} ${attribute ?? ''}`.trim()),
    [],
  )
})

t.test('the table has a line for each row and nothing that breaks a cell', async t => {
  const lines = markdownTable(testTexts()).trimEnd().split('\n')
  t.equal(lines.length, attributeRows().length + 2)
  for (const line of lines) t.equal(line.split(/(?<!\\)\|/).length, 9, line)
})

t.test('a row is matched by its own element only', async t => {
  const row = attributeRows().find(r => r.element === 'Dial > Number' && r.attribute === 'url')
  if (!row) throw new Error('no such row')
  t.strictSame(testsOf(row, [{ name: 'a', text: '<Dial><Number a="1" url="x">1</Number></Dial>' }]), ['a'])
  t.strictSame(testsOf(row, [{ name: 'a', text: '<Dial url="x"><Number>1</Number></Dial>' }]), [])
  t.strictSame(testsOf(row, [{ name: 'a', text: '<Number url="x">1</Number>' }]), [])
})
