import { addressMatcher } from '../../../../../core/domain/network/address-guard.ts'
import { clientOf, type RequestFacts } from '../../../../../core/domain/network/forwarded.ts'
import t from '../../../../support/harness/index.ts'

const trusts = addressMatcher(['loopback', '10.0.0.0/8', '2001:db8:1::/48'])
const client = (headers: RequestFacts['headers'], peer = '127.0.0.1') =>
  clientOf({ peer, encrypted: false, headers }, trusts)

t.test('the client is the last hop that is no trusted proxy, whatever stands before it', async t => {
  for (const [list, address] of [
    ['203.0.113.9', '203.0.113.9'],
    ['198.51.100.1, 203.0.113.9', '203.0.113.9'],
    ['127.0.0.1, 203.0.113.9, 10.0.0.7', '203.0.113.9'],
    ['203.0.113.9:51000', '203.0.113.9'],
    ['[2001:db8:2::9]:443', '2001:db8:2::9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['10.0.0.8, 10.0.0.7', '10.0.0.8'],
  ] as const)
    t.match(client({ 'x-forwarded-for': list }), { address, forwarded: true, proved: true }, list)
  t.match(client({ 'x-forwarded-for': '203.0.113.9' }, '::ffff:10.1.2.3'), { address: '203.0.113.9', proved: true })
})

t.test('an item that is no address hides its sender: the proxy stands for it, and proves nothing', async t => {
  for (const list of ['unknown', 'unix:', '203.0.113.9, nonsense', '0x7f.1', '2130706433', '1.2.3.4.5', '[::1'])
    t.match(client({ 'x-forwarded-for': list }), { address: '127.0.0.1', forwarded: true, proved: false }, list)
  t.match(client({ via: '1.1 proxy' }), { address: '127.0.0.1', forwarded: true, proved: false })
})

t.test('a stranger’s headers change neither its address nor its scheme nor its host', async t => {
  const headers = {
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'voice.example',
    host: 'own.example',
  }
  const own = { forwarded: true, proved: false, secure: false, host: 'own.example' }
  t.match(client(headers, '203.0.113.66'), { address: '203.0.113.66', ...own })
  t.match(client(headers), { address: '127.0.0.1', proved: true, secure: true, host: 'voice.example' })
  t.match(
    client({ ...headers, 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'evil.example, voice.example' }),
    {
      secure: false,
      host: 'voice.example',
    },
  )
})

t.test('a direct request is of its socket', async t => {
  t.same(client({ host: 'a.example' }, '203.0.113.5'), {
    address: '203.0.113.5',
    forwarded: false,
    proved: true,
    secure: false,
    host: 'a.example',
  })
})
