import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'

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
