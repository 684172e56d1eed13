import { getHeapStatistics } from 'node:v8'
import { boundedBytes, boundedMap } from '../../../../core/domain/bounded-map.ts'
import t from '../../../support/harness/index.ts'

t.test('a bounded map forgets the entry that was not used for longest', t => {
  const map = boundedMap<string, number>(3)
  for (const [index, key] of ['a', 'b', 'c'].entries()) map.set(key, index)
  map.get('a')
  map.set('a', 5)
  map.set('d', 3)
  t.strictSame([...map.entries()].sort(), [
    ['a', 5],
    ['c', 2],
    ['d', 3],
  ])
  for (let key = 0; key < 1000; key++) map.set(String(key), key)
  t.equal(map.size, 3)
  map.delete('999')
  map.set('x', 1)
  t.strictSame([...map.keys()].sort(), ['997', '998', 'x'])
  t.end()
})

t.test(
  'a map that is bounded by bytes forgets what was not used for longest, and keeps nothing that is too large',
  t => {
    const map = boundedBytes<string, string>(100, ({ length }) => length)
    map.set('a', 'a'.repeat(40))
    map.set('b', 'b'.repeat(40))
    map.get('a')
    map.set('c', 'c'.repeat(40))
    t.strictSame([...map.keys()].sort(), ['a', 'c'])
    map.set('a', 'a'.repeat(101))
    map.set('none', '')
    t.strictSame([...map.keys()].sort(), ['c', 'none'])
    t.end()
  },
)

t.test('a bounded map takes no memory for entries that it does not hold', t => {
  const before = getHeapStatistics().used_heap_size
  const maps = Array.from({ length: 100 }, () => boundedMap<string, number>(20_000))
  const grown = getHeapStatistics().used_heap_size - before
  t.ok(grown < 8_000_000, `${maps.length} empty maps take ${grown} bytes`)
  t.end()
})
