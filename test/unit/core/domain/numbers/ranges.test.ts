import { holds, without } from '../../../../../core/domain/numbers/ranges.ts'
import t from '../../../../support/harness/index.ts'

t.test('a range without one of its numbers is nothing, one range or two', async t => {
  const range = { start: '+2342010000009', end: '+2342010000012' }
  t.same(without(range, '+2342010000009'), [{ start: '+2342010000010', end: '+2342010000012' }])
  t.same(without(range, '+2342010000012'), [{ start: '+2342010000009', end: '+2342010000011' }])
  t.same(without(range, '+2342010000010'), [
    { start: '+2342010000009', end: '+2342010000009' },
    { start: '+2342010000011', end: '+2342010000012' },
  ])
  t.same(without({ start: '+12025550100', end: '+12025550100' }, '+12025550100'), [])
  t.same(without(range, '+2342010000013'), [range], 'a number outside changes nothing')
  t.equal(holds(range, '+23420100000100'), false, 'nor does one of another length that sorts between them')
  const longest = { start: '+999999999999998', end: '+999999999999999' }
  t.same(without(longest, '+999999999999999'), [{ start: '+999999999999998', end: '+999999999999998' }])
})
