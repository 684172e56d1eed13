import {
  affordableSeconds,
  billedSeconds,
  callPrice,
  chargeMinor,
  compileRates,
  dayEnds,
  dayOf,
  daysAnywhere,
  explainPrice,
  findRate,
  minuteMinor,
  priceOf,
  type Rate,
  reservationMinor,
  type Tariff,
} from '../../../../../core/domain/rating/index.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

const tariff = (rate: number, unit: 'minute' | 'second', initial: number, additional: number): Tariff => ({
  rate_micro: rate * 1_000_000,
  rate_unit: unit,
  increment_initial_seconds: initial,
  increment_additional_seconds: additional,
})

t.test('a call is billed in increments and rounded up once', async t => {
  const cases: readonly [Tariff, number, number, number][] = [
    [tariff(60, 'minute', 60, 60), 0, 0, 0],
    [tariff(60, 'minute', 60, 60), 1, 60, 60],
    [tariff(60, 'minute', 60, 60), 60, 60, 60],
    [tariff(60, 'minute', 60, 60), 61, 120, 120],
    [tariff(60, 'minute', 30, 6), 31, 36, 36],
    [tariff(11, 'second', 1, 1), 61, 61, 671],
    [tariff(850, 'minute', 1, 1), 1, 1, 15],
    [tariff(850, 'minute', 1, 1), 6, 6, 85],
    [tariff(850, 'minute', 1, 1), 7, 7, 100],
    [{ ...tariff(0, 'second', 1, 1), rate_micro: 125_000 }, 3, 3, 1],
    [{ ...tariff(0, 'second', 1, 1), rate_micro: 125_000 }, 8, 8, 1],
    [{ ...tariff(0, 'second', 1, 1), rate_micro: 125_000 }, 9, 9, 2],
    [tariff(0, 'minute', 60, 60), 3600, 3600, 0],
    [tariff(60, 'minute', 0, 0), 7, 7, 7],
  ]
  for (const [each, seconds, billed, minor] of cases) {
    t.equal(billedSeconds(each, seconds), billed)
    t.equal(chargeMinor(each, seconds), minor)
  }
  t.equal(minuteMinor(tariff(11, 'second', 1, 1)), 660)
  t.equal(reservationMinor(tariff(60, 'minute', 30, 6)), 30)
})

const anyTariff = fc.record({
  rate_micro: fc.nat({ max: 1_000_000_000 }),
  rate_unit: fc.constantFrom('minute' as const, 'second' as const),
  increment_initial_seconds: fc.nat({ max: 120 }),
  increment_additional_seconds: fc.nat({ max: 120 }),
})

t.test('prices grow with time, and the affordable time ends exactly at an increment', async () => {
  fc.assert(
    fc.property(anyTariff, fc.nat(20_000), fc.nat(100_000), (each, seconds, budget) => {
      if (chargeMinor(each, seconds) > chargeMinor(each, seconds + 1)) return false
      const paid = affordableSeconds(each, budget)
      if (paid === null) return each.rate_micro === 0
      if (paid === 0) return budget < reservationMinor(each)
      return chargeMinor(each, paid) <= budget && chargeMinor(each, paid + 1) > budget
    }),
    { numRuns: 5000 },
  )
})

t.test('large amounts are exact, without floating point', async () => {
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 31 - 1 }), fc.nat({ max: 10_000_000 }), (rate_micro, seconds) => {
      const each: Tariff = {
        rate_micro,
        rate_unit: 'second',
        increment_initial_seconds: 1,
        increment_additional_seconds: 1,
      }
      const exact = BigInt(rate_micro) * BigInt(seconds)
      const minor = BigInt(chargeMinor(each, seconds))
      return minor * 1_000_000n >= exact && (minor === 0n || (minor - 1n) * 1_000_000n < exact)
    }),
    { numRuns: 2000 },
  )
})

const rate = (prefix: string): Rate => ({ ...tariff(1, 'minute', 60, 60), id: prefix, prefix, label: prefix })

t.test('the longest prefix gives the rate; an uncovered number has none', async t => {
  const book = compileRates(['1', '1202', '44', '447', '234'].map(rate))
  t.equal(findRate(book, '12025550123')?.prefix, '1202')
  t.equal(findRate(book, '12125550123')?.prefix, '1')
  t.equal(findRate(book, '447911123456')?.prefix, '447')
  t.equal(findRate(book, '4912345678'), null)
  t.equal(findRate(compileRates([rate('')]), '4912345678')?.prefix, '')
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.stringMatching(/^[0-9]{0,5}$/), { maxLength: 40 }),
      fc.stringMatching(/^[0-9]{7}$/),
      (prefixes, digits) => {
        const best = prefixes.filter(prefix => digits.startsWith(prefix)).sort((a, b) => b.length - a.length)[0]
        return (findRate(compileRates(prefixes.map(rate)), digits)?.prefix ?? undefined) === best
      },
    ),
  )
})

t.test('the explanation recomputes the price from the record, line by line', async t => {
  const inputs = {
    ...tariff(850, 'minute', 30, 6),
    billing: 'rated' as const,
    direction: 'outbound' as const,
    destination: '+2348031234567',
    currency: 'NGN',
    price_book_id: 'pbk_1',
    price_book_revision: 3,
    rate_prefix: '234803',
    rate_label: 'Nigeria mobile',
    duration_seconds: 65,
  }
  t.same(priceOf(inputs), { billed_seconds: 66, charge_minor: 935 })
  const lines = explainPrice(inputs)
  t.match(lines.join('\n'), /\+234803 Nigeria mobile of price book pbk_1, revision 3/)
  t.match(lines.join('\n'), /first 30 s, then 6 s/)
  t.match(lines.join('\n'), /billed +66 s/)
  t.match(lines.join('\n'), /price +₦8\.50\/min\n/)
  t.match(lines.join('\n'), /exact amount +₦9\.35\n/)
  t.match(lines.at(-1), /charge +₦9\.35, rounded up once/)
  const odd = explainPrice({ ...inputs, ...tariff(14, 'minute', 1, 1), duration_seconds: 4 })
  t.match(odd.join('\n'), /exact amount +a little over ₦0\.00933333\n/)
  t.same(priceOf({ ...inputs, billing: 'free' }), { billed_seconds: 66, charge_minor: 0 })
})

t.test('one sentence says how a price comes about', async t => {
  const inputs = {
    ...tariff(14, 'minute', 1, 1),
    ...{ billing: 'rated' as const, direction: 'outbound' as const, destination: '+2348031234567', currency: 'NGN' },
    ...{ price_book_id: 'pbk_1', price_book_revision: 3, rate_prefix: '234', rate_label: 'Nigeria' },
    duration_seconds: 4,
  }
  const sentence = (changes: Partial<Parameters<typeof callPrice>[0]> = {}) =>
    callPrice({ ...inputs, ...changes }).sentence
  t.equal(sentence(), '4 s × ₦0.14/min = ₦0.01')
  t.equal(
    sentence({ ...tariff(900, 'minute', 60, 60), duration_seconds: 61 }),
    '61 s, billed as 120 s, × ₦9.00/min = ₦18.00',
  )
  t.equal(
    sentence({ ...tariff(300_000_000, 'second', 1, 1), duration_seconds: 7 }),
    '7 s × ₦3,000,000.00/s = ₦21,000,000.00',
  )
  t.equal(sentence({ duration_seconds: 0 }), 'not answered = ₦0.00')
  t.equal(sentence({ billing: 'free' }), '4 s × ₦0.14/min, free of charge in the sandbox = ₦0.00')
  t.equal(sentence({ rate_prefix: null, rate_micro: 0 }), '4 s without a rate = ₦0.00')
  const sandbox = { rate_prefix: null, rate_micro: 0, billing: 'free' } as const
  t.equal(sentence(sandbox), '4 s, free of charge in the sandbox = ₦0.00')
  t.notMatch(
    explainPrice({ ...inputs, ...sandbox }).join('\n'),
    /^(price|increments|exact)/m,
    'there is no rate to tell',
  )
  t.equal(explainPrice(inputs)[0], `in short         ${sentence()}`, 'the first line of the explanation')
})

t.test('days follow the time zone and end at its midnight', async t => {
  const late = Date.parse('2026-03-02T23:30:00Z')
  t.equal(dayOf(late, 'UTC'), '2026-03-02')
  t.equal(dayOf(late, 'Africa/Lagos'), '2026-03-03')
  t.equal(new Date(dayEnds(late, 'Africa/Lagos')).toISOString(), '2026-03-03T23:00:00.000Z')
  // The day on which clocks go back has 25 hours.
  const berlin = Date.parse('2026-10-25T00:30:00+02:00')
  t.equal(new Date(dayEnds(berlin, 'Europe/Berlin')).toISOString(), '2026-10-25T23:00:00.000Z')
  t.equal(dayEnds(berlin, 'Europe/Berlin') - Date.parse('2026-10-24T22:00:00Z'), 25 * 3_600_000)
})

t.test('the day in every time zone lies between the bounds that take no time zone', async t => {
  const zones = Intl.supportedValuesOf('timeZone')
  for (const at of ['2026-03-31T23:30:00Z', '2026-04-01T09:59:59Z', '2026-12-31T10:00:00Z', '2027-01-01T11:30:00Z']) {
    const { first, last } = daysAnywhere(Date.parse(at))
    const days = zones.map(zone => dayOf(Date.parse(at), zone))
    t.same(
      days.filter(day => day < first || day > last),
      [],
      at,
    )
  }
})
