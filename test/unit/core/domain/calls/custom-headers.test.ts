import { applicationHeaders, customHeaders } from '../../../../../core/domain/calls/custom-headers.ts'
import t from '../../../../support/harness/index.ts'

t.test('a script gets at most 32 X- headers, and none of the platform’s own', async t => {
  t.same(customHeaders({ 'x-order': '7', 'X-Tag': 'a', 'x-strowger-callsid': 'CA1', from: '<sip:a@b>' }), {
    'x-order': '7',
    'X-Tag': 'a',
  })
  const passed = { 'session-id': 'ab30317f1a784dc48ff824d0d3715d86', 'user-to-user': '3031' }
  t.same(customHeaders(passed), { 'User-to-User': '3031' }, 'each leg has a Session-ID of its own')
  t.same(applicationHeaders(passed), { 'Session-ID': 'ab30317f1a784dc48ff824d0d3715d86', 'User-to-User': '3031' })
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`x-${index}`, 'v']))
  t.equal(Object.keys(customHeaders(many)).length, 32)
})
