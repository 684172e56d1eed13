import { getCountries, getCountryCallingCode, Metadata } from 'libphonenumber-js/max'
import metadata from 'libphonenumber-js/metadata.max.json'
import { highRiskOf } from '../../../../../core/domain/fraud/high-risk.ts'
import { parseNumber } from '../../../../../core/domain/numbers/parse.ts'
import t from '../../../../support/harness/index.ts'

// The ranges of high risk, against the plans of all countries that libphonenumber knows.

const nameOf = (e164: string): string | null => {
  const number = parseNumber(e164, 'NG')
  return number && (highRiskOf(number)?.name ?? null)
}

t.test('every code without a country is of high risk, but what is free or shares its cost', async t => {
  const ordinary = ['800', '808']
  for (const code of Object.keys(metadata.nonGeographic)) {
    const risk = highRiskOf({ digits: `${code}1234567`, kind: 'global' })
    t.equal(risk === null, ordinary.includes(code), `+${code}`)
  }
})

t.test(
  'an area code of zone 1 is of high risk when its country is neither a domestic one nor a US territory',
  async t => {
    const ordinary = ['US', 'CA', 'PR', 'VI', 'GU', 'AS', 'MP']
    const plans = getCountries()
      .filter(country => getCountryCallingCode(country) === '1' && !['US', 'CA'].includes(country))
      .map(country => {
        const plan = new Metadata()
        plan.selectNumberingPlan(country)
        return { country, leading: new RegExp(`^(?:${plan.numberingPlan?.leadingDigits()})`) }
      })
    for (let code = 200; code < 900; code++) {
      const country = plans.find(({ leading }) => leading.test(`${code}5`))?.country ?? 'US'
      const risk = highRiskOf({ digits: `1${code}5550123`, kind: 'ordinary' })
      t.equal(risk?.name ?? null, ordinary.includes(country) ? null : 'caribbean', `+1 ${code}, ${country}`)
    }
  },
)

t.test('a number is of the most special class; premium rates of every country are of high risk', async t => {
  const cases = [
    ['+881612345678', 'satellite'],
    ['+8821612345678', 'satellite'],
    ['+88299912345', 'international-networks'],
    ['+979123456789', 'international-premium'],
    ['+19005550123', 'north-american-premium'],
    ['+5352345678', 'cuba'],
    ['+37120123456', 'latvia'],
    ['+37190001234', 'latvia'],
    ['+18765550123', 'caribbean'],
    ['+449098790123', 'national-premium'],
    ['+499001234567', 'national-premium'],
    ['+33899123456', 'national-premium'],
    ['+441212345678', null],
    ['+2348030000001', null],
    ['+12015550123', null],
  ] as const
  for (const [e164, name] of cases) t.equal(nameOf(e164), name, e164)
})
