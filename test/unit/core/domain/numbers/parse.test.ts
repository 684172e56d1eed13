import { normalizeNumber, parseCalled, parseNumber } from '../../../../../core/domain/numbers/parse.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

t.test('every spelling of a number parses to the same E.164 number', async t => {
  const spellings: readonly [given: string, country: string, e164: string][] = [
    ['+2348031234567', 'NG', '+2348031234567'],
    ['002348031234567', 'NG', '+2348031234567'],
    ['2348031234567', 'NG', '+2348031234567'],
    ['08031234567', 'NG', '+2348031234567'],
    ['8031234567', 'NG', '+2348031234567'],
    ['+234 803 123 4567', 'NG', '+2348031234567'],
    ['+234-(0)803.123/4567'.replace('(0)', ''), 'NG', '+2348031234567'],
    ['\u202a+234 803\u2011123\u201345\u200b67\u202c', 'NG', '+2348031234567'],
    ['12025550123', 'NG', '+12025550123'],
    ['+1 (202) 555-0123', 'NG', '+12025550123'],
    ['(202) 555-0123', 'US', '+12025550123'],
    ['02079460123', 'GB', '+442079460123'],
    ['442079460123', 'NG', '+442079460123'],
    ['+234201000 0001', 'NG', '+2342010000001'],
    ['2342010000001', 'NG', '+2342010000001'],
    ['+390612345678', 'NG', '+390612345678'],
  ]
  for (const [given, country, e164] of spellings)
    t.equal(parseNumber(given, country)?.e164, e164, `${given} in ${country}`)
})

t.test('a national prefix behind the country code is refused in every spelling', async t => {
  const tricks: readonly [given: string, country: string][] = [
    ['+440909123456', 'NG'],
    ['+4409091234567', 'NG'],
    ['+4400909123456', 'NG'],
    ['+44 (0) 909 123 4567', 'NG'],
    ['+44-0-909-1234567', 'GB'],
    ['00440909123456', 'NG'],
    ['004400909123456', 'NG'],
    ['440909123456', 'NG'],
    ['4409091234567', 'NG'],
    ['0114400909123456', 'US'],
    ['+23408031234567', 'NG'],
    ['23408031234567', 'NG'],
    ['+2340900234567', 'NG'],
    ['+33 0 899 12 34 56', 'NG'],
    ['+4901791234567', 'NG'],
    ['+49001791234567', 'NG'],
    ['+119005550123', 'NG'],
    ['+1 1 900 555 012', 'NG'],
    ['+1 0 900 555 012', 'NG'],
    ['+784951234567', 'NG'],
    ['+360613456789', 'NG'],
    ['+5501511999999999', 'NG'],
    ['+0440909123456', 'NG'],
    ['000440909123456', 'NG'],
  ]
  for (const [given, country] of tricks) t.equal(parseNumber(given, country), null, `${given} in ${country}`)
  for (const given of [
    '+390549123456',
    '+390666982',
    '+3780549886377',
    '+2250123456789',
    '+24101234567',
    '+242061234567',
  ])
    t.equal(parseNumber(given, 'NG')?.e164, given, `${given}: the plan itself has a 0 there`)
  for (const given of ['+78001234567', '+12025550123', '+2348031234567'])
    t.equal(parseNumber(given, 'NG')?.e164, given, given)
})

t.test('no number keeps a 0 behind the country code unless it is a known one', async () => {
  const codes = ['44', '234', '49', '33', '1', '7', '39', '86', '91', '27', '55', '61', '358']
  fc.assert(
    fc.property(
      fc.constantFrom(...codes),
      fc.constantFrom('', '0', '00'),
      fc.stringMatching(/^[0-9]{5,12}$/),
      (code, zeros, rest) => {
        const parsed = parseNumber(`+${code}${zeros}${rest}`, 'NG')
        return parsed?.digits.slice(parsed.calling_code.length).startsWith('0') !== true || code === '39'
      },
    ),
    { numRuns: 2000 },
  )
})

t.test('returns null for what is not a number, and never throws', async t => {
  for (const given of [
    '',
    '+',
    'abc',
    '12ab',
    '+0123456789',
    '+999123456789',
    '123',
    '+1',
    '1'.repeat(41),
    '+234803123456789012',
    'sip:1@x',
    '٠٨٠٣١٢٣٤٥٦٧',
  ])
    t.equal(parseNumber(given, 'NG'), null, JSON.stringify(given))
  t.equal(parseNumber('08031234567', 'XX'), null, 'no national format without a country')
  fc.assert(
    fc.property(fc.string({ maxLength: 60 }), fc.constantFrom('NG', 'US', 'GB', 'XX', ''), (given, country) => {
      const parsed = parseNumber(given, country)
      return parsed === null || (/^\+[1-9][0-9]{6,14}$/.test(parsed.e164) && parsed.e164 === `+${parsed.digits}`)
    }),
    { numRuns: 3000 },
  )
})

t.test('an E.164 number parses to itself', async () => {
  fc.assert(
    fc.property(fc.stringMatching(/^\+?[0-9]{7,15}$/), given => {
      const parsed = parseNumber(given, 'NG')
      return parsed === null || parseNumber(parsed.e164, 'US')?.e164 === parsed.e164
    }),
    { numRuns: 2000 },
  )
})

t.test('premium and satellite ranges are flagged', async t => {
  const kinds: readonly [string, string][] = [
    ['+8816123456789', 'satellite'],
    ['+870771234567', 'satellite'],
    ['+8821612345678', 'satellite'],
    ['+19002345678', 'premium'],
    ['+979123456789', 'premium'],
    ['+80012345678', 'toll_free'],
    ['+18002345678', 'toll_free'],
    ['+2348031234567', 'mobile'],
    ['+442079460123', 'ordinary'],
  ]
  for (const [given, kind] of kinds) t.equal(parseNumber(given, 'NG')?.kind, kind, given)
})

t.test('short codes go only where the configuration sends them', async t => {
  const codes = new Map([['112', '+2342010000112']])
  t.match(parseCalled('112', 'NG', codes), { number: { e164: '+2342010000112' }, short_code: '112' })
  t.equal(parseCalled('112', 'NG').number, null)
  t.equal(parseCalled('911', 'NG', codes).number, null)
  t.equal(parseCalled('+2348031234567', 'NG', codes).short_code, undefined)
})

t.test('normalization removes separators and 00, and rejects letters', async t => {
  t.equal(normalizeNumber(' 00 234-803 (123) 45.67 '), '+2348031234567')
  t.equal(normalizeNumber('0800FLOWERS'), null)
  t.equal(normalizeNumber('+1\r\n2'), '+12', 'line ends are separators here and never reach a header')
})
