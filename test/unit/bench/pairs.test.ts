import { compare, figuresOf, turnOf } from '../../../bench/pairs.ts'
import t from '../../support/harness/index.ts'

t.test('four pairs cover each combination of core and starting order once, so neither biases a comparison', async t => {
  const turns = [0, 1, 2, 3].map(index => JSON.stringify(turnOf(index)))
  t.equal(new Set(turns).size, 4)
  // A machine whose core 1 takes 10 % more time, and where the tree that starts second takes 8 % more.
  const times = (index: number): [number, number] => {
    const { before_core, starts_first } = turnOf(index)
    const time = (core: number, first: boolean) => 100 * (core === 1 ? 1.1 : 1) * (first ? 1 : 1.08)
    return [time(before_core, starts_first === 'before'), time(1 - before_core, starts_first === 'now')]
  }
  t.ok(Math.abs(compare(Array.from({ length: 8 }, (_, index) => times(index))).change_percent) < 1e-9)
})

t.test('reports a slowdown of 20 % with the standard error of the pairs', async t => {
  const same = compare([
    [100, 120],
    [300, 360],
  ])
  t.ok(Math.abs(same.change_percent - 20) < 1e-9)
  t.ok(same.error_percent < 1e-9)
  t.equal(same.before, 200)
  const noisy = compare([
    [100, 110],
    [100, 90],
    [100, 110],
    [100, 90],
  ])
  t.ok(
    noisy.error_percent > Math.abs(noisy.change_percent),
    'the error exceeds the change, so the change is not significant',
  )
  t.throws(() => compare([[1, 2]]), /two pairs/)
})

t.test('the figures of a result are its numbers by path', async t => {
  const results = { at: '2026-11-23', full: { take_us: 280, name: 'x' }, held: 400, within_limits: true, none: null }
  t.same(
    [...figuresOf(results)],
    [
      ['full.take_us', 280],
      ['held', 400],
    ],
  )
})
