import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { hasTest, rowFindings, threatFindings, threatRows } from '../../tidy/threats.ts'

// Tables of the documents that name files: what they say of the code is in it.

const rowsOf = (path: string): string[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => line.startsWith('| ') && !/^\| (---|what)/.test(line))

t.test('each row of docs/limits.md is what its file says', async t => {
  const rows = rowsOf('docs/limits.md')
  t.ok(rows.length > 40)
  for (const row of rows) {
    const [, path = '', text = ''] = /`([\w./-]+\.ts)` `([^`]+)` \|$/.exec(row) ?? []
    t.ok(path !== '' && existsSync(path) && readFileSync(path, 'utf8').includes(text), row)
  }
})

t.test('each row of docs/proofs.md names tests that are there', async t => {
  const rows = rowsOf('docs/proofs.md')
  t.ok(rows.length > 30)
  for (const row of rows) {
    const paths = [...row.matchAll(/`((?:test|native|bench)\/[\w./-]+)`/g)].map(([, path = '']) => path)
    t.ok(paths.length > 0, row)
    for (const path of paths) t.ok(existsSync(path), path)
  }
})

t.test('each row of docs/threats.md names the tests that carry its threat out', async t => {
  t.ok(threatRows().length > 40)
  t.same(threatFindings(), [])
})

t.test('a row without a test, or with one that is not there or is skipped, is found', async t => {
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
