import { missingContacts } from '../../../../../core/domain/network/contacts.ts'
import t from '../../../../support/harness/index.ts'

const served = { hosts: ['203.0.113.10', '2001:db8::10'], sip_port: 5060, sips_port: 5061, ws_port: 5066 }

t.test('requires every listening point on each address, and accepts wss for ws', async t => {
  const told = [
    'wss/203.0.113.10:5066,tls/203.0.113.10:5061,tcp/203.0.113.10:5060,udp/203.0.113.10:5060',
    'ws/[2001:db8::10]:5066,tls/[2001:DB8:0::10]:5061,udp/[2001:db8::10]:5060',
  ].join(',')
  t.same(missingContacts(told, served), ['tcp/[2001:db8::10]:5060'])
})

t.test('another address or port does not count', async t => {
  const told = 'udp/127.0.0.1:5060,tcp/203.0.113.10:5070'
  t.same(missingContacts(told, { ...served, hosts: ['203.0.113.10'] }), [
    'udp/203.0.113.10:5060',
    'tcp/203.0.113.10:5060',
    'tls/203.0.113.10:5061',
    'ws/203.0.113.10:5066 or wss/203.0.113.10:5066',
  ])
  t.equal(missingContacts('', { ...served, hosts: ['203.0.113.10'] }).length, 4)
})
