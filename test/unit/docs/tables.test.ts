import { existsSync, readFileSync } from 'node:fs'
import t from '../../support/harness/index.ts'
import { conformanceFindings, conformanceRowFindings, conformanceRows } from '../../tidy/conformance.ts'
import { readDecision, referenceFindings, statusCell } from '../../tidy/decisions.ts'
import { hasTest, rowFindings, threatFindings, threatRows } from '../../tidy/threats.ts'

// Checks tables in the documents that refer to files against these files.

const rowsOf = (path: string): string[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => line.startsWith('| ') && !/^\| (---|what)/.test(line))

t.test('each row of docs/limits.md quotes text that its file contains', async t => {
  const rows = rowsOf('docs/limits.md')
  t.ok(rows.length > 40)
  for (const row of rows) {
    const [, path = '', text = ''] = /`([\w./-]+\.ts)` `([^`]+)` \|$/.exec(row) ?? []
    t.ok(path !== '' && existsSync(path) && readFileSync(path, 'utf8').includes(text), row)
  }
})

t.test('each row of docs/proofs.md names existing tests', async t => {
  const rows = rowsOf('docs/proofs.md')
  t.ok(rows.length > 30)
  for (const row of rows) {
    const paths = [...row.matchAll(/`((?:test|native|bench)\/[\w./-]+)`/g)].map(([, path = '']) => path)
    t.ok(paths.length > 0, row)
    for (const path of paths) t.ok(existsSync(path), path)
  }
})

t.test('docs/dependencies.md has a row for each production dependency, and none for others', async t => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: Record<string, string> }
  const rows = rowsOf('docs/dependencies.md').filter(row => row.startsWith('| `'))
  t.same(
    rows.map(row => /^\| `([^`]+)` \| [^|]+ \| [\d.]+ MB[^|]* \| [^|]+ \| [^|]+ \|$/.exec(row)?.[1]),
    Object.keys(dependencies).sort(),
  )
})

t.test('each row of docs/threats.md names the tests that carry out its threat', async t => {
  t.ok(threatRows().length > 40)
  t.same(threatFindings(), [])
})

t.test('each row of docs/conformance.md has a state, and one that claims something an existing test', async t => {
  t.ok(conformanceRows().length > 60)
  t.same(conformanceFindings(), [])
  t.match(conformanceRowFindings('| §1 | calls | done | it works |'), [/names no test/])
  t.match(conformanceRowFindings('| §1 | calls | done | `test/unit/none.test.ts` “none” |'), [/there is no test/])
  t.match(conformanceRowFindings('| §1 | calls | nearly | why |'), [/state/])
  t.same(conformanceRowFindings('| §1 | calls | not | why |'), [])
})

t.test('reports a row without a test, and one whose test is missing or skipped', async t => {
  const folder = t.testdir({
    'a.test.ts': "t.test('here', async t => {})\nt.test('skipped', { skip: true }, async t => {})\nt.comment('said')\n",
  })
  const path = `${folder}/a.test.ts`
  const known = ['here', 'skipped', 'said', 'nowhere'].map(name => hasTest(path, name))
  t.same(known, [true, false, false, false])
  t.notOk(hasTest(`${path}x`, 'here'))
  t.match(rowFindings('| somebody | by something | a test somewhere |'), [/names no test/])
  t.match(rowFindings('| somebody | by something | `test/unit/none.test.ts` “none” |'), [
    /there is no test `test\/unit\/none/,
  ])
})

t.test('the index of decisions links a superseded record to its successors', async t => {
  const old = readDecision('9001-old.md', '# 9001 An old way\n\nStatus: superseded by 9002.\n\nWhy.\n')
  const next = readDecision('9002-new.md', '# 9002 A new way\n\nWhy.\n')
  t.same(old, { number: '9001', file: '9001-old.md', title: 'An old way', status: 'superseded by 9002.' })
  t.equal(statusCell(old, [old, next]), 'superseded by [9002](9002-new.md)')
  t.equal(statusCell(next, [old, next]), 'in force')
  t.throws(() => readDecision('9003-other.md', '# 9002 A new way\n'), /first line/)
})

t.test('reports a reference to a decision that does not exist', async t => {
  const known = new Set(['9001'])
  // Built from parts: the tidy rule would check a literal reference in this file too.
  const one = 'decision'
  const text = `See ${one} 9001, ${one}s 9001 and 9004 (${one}s/9005-none.md).`
  t.same(
    referenceFindings('docs/x.md', text, known),
    ['9004', '9005'].map(number => `docs/x.md: there is no ${one} ${number}`),
  )
  t.same(referenceFindings(`docs/${one}s/9001-a.md`, 'Status: amended by 9006.', known), [
    `docs/${one}s/9001-a.md: there is no ${one} 9006`,
  ])
})
