import { LabelNames, OTHERS } from '../../../../core/runtime/label-names.ts'
import t from '../../../support/harness/index.ts'

t.test('names beyond the limit share one label until a name was idle long enough', async t => {
  const gone: string[] = []
  const names = new LabelNames({ most: 2, idle_ms: 1000, gone: name => gone.push(name) })
  t.same(
    ['a', 'b', 'c'].map(name => names.labelOf(name, 0)),
    ['a', 'b', OTHERS],
  )
  t.equal(names.labelOf('a', 900), 'a')
  t.equal(names.labelOf('c', 999), OTHERS, 'b was idle for less')
  t.equal(names.labelOf('c', 1000), 'c', 'b gives its place')
  t.same(gone, ['b'])
  t.equal(names.labelOf('b', 1001), OTHERS)
  t.equal(names.labelOf('a', 5000), 'a', 'who has a place keeps it')
})
