import { maskCards } from '../../../../../core/domain/ladder/cards.ts'
import { redactSip } from '../../../../../core/domain/ladder/redact.ts'
import t from '../../../../support/harness/index.ts'

t.test('masks all but the last four digits of card-like numbers, and leaves other numbers', async t => {
  const cases: [given: string, shown: string][] = [
    ['pay 4111111111111111 now', 'pay ************1111 now'],
    ['4111 1111 1111 1111', '**** **** **** 1111'],
    ['3782-822463-10005', '****-******-*0005'],
    ['+4111111111111111', '+************1111'],
    [
      '{"transcript":"no card","confidence":0.4111111111111111}',
      '{"transcript":"no card","confidence":0.4111111111111111}',
    ],
    ['on 1.1.4111111111111111', 'on 1.1.************1111'],
    ['+79991234567894', '+79991234567894'],
    ['CA41111111111111110000000000abcdef', 'CA41111111111111110000000000abcdef'],
    ['41111111-1111-4111-8111-1111222233ff', '41111111-1111-4111-8111-1111222233ff'],
    ['4111111111111112', '4111111111111112'],
    ['+2348030000001', '+2348030000001'],
    ['411111111111', '411111111111'],
    ['41111111111111111111111', '41111111111111111111111'],
  ]
  for (const [given, shown] of cases) t.equal(maskCards(given), shown, given)
})

t.test('removes typed keys and card numbers from the body of a SIP message', async t => {
  const message = (type: string, body: string) => `INFO sip:a SIP/2.0\r\nContent-Type: ${type}\r\n\r\n${body}`
  const body = (type: string, text: string) => redactSip(message(type, text)).split('\r\n\r\n')[1]
  t.equal(body('application/dtmf', '5'), '…')
  t.equal(body('application/dtmf-relay', 'Signal=5\r\nDuration=160'), 'Signal=…\r\nDuration=160')
  t.equal(body('text/plain', 'card 4111111111111111'), 'card ************1111')
  t.equal(body('application/sdp', 'o=- 4111111111111111 1 IN IP4 x'), 'o=- 4111111111111111 1 IN IP4 x')
})
