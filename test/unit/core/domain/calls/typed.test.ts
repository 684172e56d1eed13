import { shownFacts, shownParameters, shownUrl } from '../../../../../core/domain/calls/typed.ts'
import t from '../../../../support/harness/index.ts'

const CARD = '4111111111111111'

t.test('masks card numbers in parameters, typed or spoken, and keeps telephone numbers', async t => {
  const given = {
    ...{ From: CARD, CallSid: 'CA41111111111111110000000000abcdef', Digits: CARD },
    ...{ TranscriptionText: 'it is 4111 1111 1111 1111', ErrorUrl: `https://a.test/?card=${CARD}` },
  }
  t.same(shownParameters(given), {
    ...{ From: CARD, CallSid: 'CA41111111111111110000000000abcdef', Digits: '************1111' },
    ...{ TranscriptionText: 'it is **** **** **** 1111', ErrorUrl: 'https://a.test/?card=************1111' },
  })
})

t.test(
  'masks 13 or more typed keys whatever their check digit: a mistyped card, or one with its expiry date',
  async t => {
    const digits = (Digits: string) => shownParameters({ Digits })['Digits']
    t.equal(digits('4111111111111112'), '************1112')
    t.equal(digits(`${CARD}*1228`), '****************\u002a1228')
    t.equal(digits('123456789012'), '123456789012')
  },
)

t.test('the mask of a secret does not reveal its length', async t => {
  t.same(shownParameters({ Digits: '1', SpeechResult: 'one two' }, ['Digits', 'SpeechResult']), {
    Digits: '[secret]',
    SpeechResult: '[secret]',
  })
})

t.test('removes typed keys from URLs, and card numbers from every other part of them', async t => {
  const cases: [given: string, shown: string][] = [
    ['https://a.test/x?Digits=2468&b=%20', 'https://a.test/x?Digits=%5Bsecret%5D&b=%20'],
    ['https://a.test/x?card=4111+1111+1111+1111', 'https://a.test/x?card=****%20****%20****%201111'],
    ['https://a.test/x?From=%2B4915112345678&From=4111111111111111', '='],
    [`https://a.test/pay/${CARD}?a=%`, 'https://a.test/pay/************1111?a=%'],
    [`https://a.test/?${CARD}`, 'https://a.test/?************1111'],
  ]
  for (const [given, shown] of cases) t.equal(shownUrl(given), shown === '=' ? given : shown, given)
})

t.test('masks card numbers in the sentences and URLs of an event, and keeps its other facts', async t => {
  const kept = { url: null, line: 3, from: CARD, what: 'transcribed' }
  const given = { ...kept, text: `it is ${CARD}`, detail: `"${CARD}" is not a number` }
  t.same(shownFacts(given), { ...kept, text: 'it is ************1111', detail: '"************1111" is not a number' })
  t.same(shownFacts({ url: 'https://a.test/?Digits=1' }), { url: 'https://a.test/?Digits=%5Bsecret%5D' })
})
