import t from '../../support/harness/index.ts'
import { moduleStateFindings } from '../../tidy/module-state.ts'

const source = (path: string, text: string) => ({ path, text, imports: [] })

t.test('a variable or a collection that a module keeps needs a reason', async t => {
  const text =
    'let one = 1\nconst two = new Map<string, number>()\ntwo.set("a", 1)\nexport const three = boundedMap(3)\n'
  t.same(moduleStateFindings([source('core/a.ts', `${text}three.set("a", 1)\n`)], { 'core/a.ts one': 'a reason' }), [
    'core/a.ts two: a module keeps it; make it the property of an object that has an owner',
    'core/a.ts three: a module keeps it; make it the property of an object that has an owner',
  ])
})

t.test('constants, owned state and the pages of the console need none', async t => {
  const constant = 'const NAMES: ReadonlyMap<string, string> = new Map([["a", "b"]])\n'
  const owned =
    'class A {\n  readonly #all = new Map()\n}\nfunction f() {\n  let a = 1\n  const b = new Set()\n  b.add(a)\n}\n'
  const sources = [source('core/a.ts', constant + owned), source('control/console/b.ts', 'let page = 1\n')]
  t.same(moduleStateFindings(sources, {}), [])
})

t.test('what is gone leaves the list', async t => {
  t.same(moduleStateFindings([], { 'core/a.ts one': 'a reason' }), [
    'test/tidy/module-state.ts: core/a.ts one is gone: take it from the list',
  ])
})
