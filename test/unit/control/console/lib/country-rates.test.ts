import { bandsOf, minuteRateOf } from '../../../../../control/console/lib/country-rates.ts'
import t from '../../../../support/harness/index.ts'

const rate = (match: string, rate_minor: number, rate_unit: 'minute' | 'second' = 'minute') => ({
  ...{ match, rate_minor, rate_unit, label: match },
  ...{ increment_initial_seconds: 60, increment_additional_seconds: 60 },
})
const nigeria = { calling_code: '234' }

t.test('a country costs what its prefixes cost, and what is around its calling code', async t => {
  t.equal(minuteRateOf(nigeria, []), null)
  t.equal(minuteRateOf(nigeria, [rate('+233', 5), rate('sip', 1)]), null, 'rates of others are none')
  t.same(minuteRateOf(nigeria, [rate('+234', 900)]), { low_minor: 900, high_minor: 900 })
  t.same(minuteRateOf(nigeria, [rate('+234', 900), rate('+234803', 700)]), { low_minor: 700, high_minor: 900 })
  t.same(
    minuteRateOf(nigeria, [rate('+2', 50), rate('+', 70)]),
    { low_minor: 50, high_minor: 50 },
    'the longest counts',
  )
  t.same(minuteRateOf(nigeria, [rate('+234', 2, 'second')]), { low_minor: 120, high_minor: 120 }, 'a minute of it')
})

t.test('bands of prices have as many prices each, and no band is empty', async t => {
  t.same(bandsOf([], 4), [])
  t.same(bandsOf([9, 9, 9], 4), [9])
  t.same(bandsOf([3, 1, 2], 4), [1, 2, 3])
  t.same(bandsOf([1, 2, 3, 4, 5, 6, 7, 8], 4), [2, 4, 6, 8])
})
