import t from '../../support/harness/index.ts'
import { nameFindings } from '../../tidy/names.ts'

const source = (path: string, text: string) => ({ path, text, imports: [] })

t.test('a name that two files export needs another one, unless it is listed', async t => {
  const both = [source('core/a.ts', 'export const one = 1\n'), source('media/b.ts', 'export type one = 2\n')]
  t.same(nameFindings(both, new Set()), ['core/a.ts and media/b.ts export the name one: give one thing another name'])
  t.same(nameFindings(both, new Set(['one'])), [])
  const others = [
    source('core/a.ts', 'export const one = 1\nexport { two } from "./b.ts"\nconst three = 3\n'),
    source('core/b.ts', 'export const two = 1\n'),
    source('control/console/c.ts', 'export const one = 1\n'),
    source('test/d.ts', 'export const two = 1\n'),
  ]
  t.same(nameFindings(others, new Set()), [], 're-exports, the console and tests have their own words')
})

t.test('a listed name that one file exports leaves the list', async t => {
  t.same(nameFindings([source('core/a.ts', 'export const one = 1\n')], new Set(['one'])), [
    'test/tidy/names.ts: one file exports one now: take it from the list',
  ])
})
