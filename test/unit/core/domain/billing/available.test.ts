import { availableMinor } from '../../../../../core/domain/billing/available.ts'
import t from '../../../../support/harness/index.ts'

t.test('an account that pays first may spend its balance and its credit, less what calls hold', async t => {
  const account = { balance_minor: 500, credit_minor: 200, held_minor: 50 }
  t.equal(availableMinor({ ...account, prepaid: 1 }), 650)
  t.equal(availableMinor({ ...account, prepaid: 1, balance_minor: -180 }), -30, 'what is overdrawn is told')
  t.equal(availableMinor({ ...account, prepaid: 0 }), null)
  t.equal(availableMinor({ ...account, prepaid: null }), null)
})
