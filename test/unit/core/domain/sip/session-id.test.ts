import { readSessionId, sessionIdHeaders } from '../../../../../core/domain/sip/session-id.ts'
import t from '../../../../support/harness/index.ts'

const [ONE, TWO, NULL] = ['a1'.repeat(16), 'b2'.repeat(16), '0'.repeat(32)]

t.test('the UUID of the sender is read, with or without a remote one; what is no UUID says nothing', async t => {
  t.equal(readSessionId(ONE), ONE, 'RFC 7329 has no remote')
  t.equal(readSessionId(` ${ONE.toUpperCase()} ; remote=${TWO};x="y"`), ONE)
  for (const none of [null, '', NULL, `${NULL};remote=${ONE}`, `${ONE}0`, `${ONE},${TWO}`, `x${ONE}`, `${ONE} ${TWO}`])
    t.equal(readSessionId(none), null, String(none))
})

t.test('the other side stands first, the null UUID for a side that is not known, and nothing for two', async t => {
  t.strictSame(sessionIdHeaders(ONE, TWO), { 'Session-ID': `${ONE};remote=${TWO}` })
  t.strictSame(sessionIdHeaders(ONE, null), { 'Session-ID': `${ONE};remote=${NULL}` })
  t.strictSame(sessionIdHeaders(null, TWO), { 'Session-ID': `${NULL};remote=${TWO}` })
  t.strictSame(sessionIdHeaders(null, null), {})
})
