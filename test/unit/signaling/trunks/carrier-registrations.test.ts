import { contactHost } from '../../../../signaling/trunks/carrier-registrations.ts'
import t from '../../../support/harness/index.ts'

t.test("the Contact has our address of the registrar's family, or our first one for a host name", async t => {
  const both = ['192.0.2.1', '2001:db8::1']
  t.equal(contactHost(both, 'carrier.example'), '192.0.2.1')
  t.equal(contactHost(both, '198.51.100.7'), '192.0.2.1')
  t.equal(contactHost(both, '[2001:db8::7]'), '[2001:db8::1]')
  t.equal(contactHost([...both].reverse(), '198.51.100.7'), '192.0.2.1')
  t.equal(contactHost([...both].reverse(), 'carrier.example'), '[2001:db8::1]')
  t.equal(contactHost(['192.0.2.1'], '[2001:db8::7]'), '192.0.2.1', 'our only address, although of the other family')
})
