import t from '../../support/harness/index.ts'
import { functionsOf, lengthFindings } from '../../tidy/lengths.ts'

// The tidy rule about long functions.

const lines = (count: number): string => '  go()\n'.repeat(count)

t.test('the lines of a function inside another count once', async t => {
  const text = `function outer() {\n${lines(3)}  const inner = () => {\n${lines(5)}  }\n}\n`
  t.same(functionsOf('core/a.ts', text), [
    { name: 'inner', own: 7, whole: 7 },
    { name: 'outer', own: 6, whole: 12 },
  ])
})

t.test('a function over 60 lines is found, and so is an exception that is short by now', async t => {
  const source = (path: string, count: number) => ({ path, text: `function f() {\n${lines(count)}}\n`, imports: [] })
  t.same(lengthFindings([source('core/a.ts', 58), source('test/a.ts', 99)], {}), [])
  t.same(lengthFindings([source('core/a.ts', 59)], {}), ['core/a.ts f: 61 lines of its own, more than 60'])
  const nested = `function f() {\n${`  const g = () => {\n${lines(30)}  }\n`.repeat(3)}}\n`
  t.same(lengthFindings([{ path: 'core/a.ts', text: nested, imports: [] }], {}), [
    'core/a.ts f: 98 lines with the functions in it, more than 95',
  ])
  t.same(lengthFindings([source('core/a.ts', 59)], { 'core/a.ts f': 'why' }), [])
  t.same(lengthFindings([source('core/a.ts', 9)], { 'core/a.ts f': 'why' }), [
    'test/tidy/lengths.ts: core/a.ts f is short now: take it from the list',
  ])
})
