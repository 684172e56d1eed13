import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'

// Test files that run in one process (docs/decisions/0730).

type Together = { readonly together: (files: readonly string[]) => string[] }
const { together } = (await import(resolve('scripts/together.mjs'))) as Together

const FLOWS = readdirSync('build/test/flows')
  .filter(name => name.endsWith('.test.js'))
  .map(name => `build/test/flows/${name}`)
const groups = (files: readonly string[]) => files.filter(file => file.startsWith('build/test/together/'))

t.test('a group replaces its members when all of them are asked for', async t => {
  const [group = ''] = groups(together(FLOWS))
  const members = [...readFileSync(group, 'utf8').matchAll(/^import '\.\.\/flows\/(.+)'/gm)]
  const files = members.map(([, name]) => `build/test/flows/${name}`)
  t.ok(files.length > 1)
  t.same(together([...files, 'build/test/unit/x.test.js']), ['build/test/unit/x.test.js', group])
  t.same(together(files.slice(1)), files.slice(1), 'not when one is missing')
  t.same(together([group]), [], 'a group alone asks for nothing')
})

t.test('every story on a shared platform is in exactly one group', async t => {
  const imports = readdirSync('test/together').flatMap(name => [
    ...readFileSync(`test/together/${name}`, 'utf8').matchAll(/^import '\.\.\/flows\/(.+)'/gm),
  ])
  const sharing = readdirSync('test/flows').filter(name =>
    /\bsharedWorld\(/.test(readFileSync(`test/flows/${name}`, 'utf8')),
  )
  t.same(imports.map(([, name]) => name).sort(), sharing.sort())
})
