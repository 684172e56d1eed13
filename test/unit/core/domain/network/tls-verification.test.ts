import {
  readFingerprint,
  readVerification,
  verificationOf,
  verificationText,
} from '../../../../../core/domain/network/tls-verification.ts'
import { type CertificateFacts, judgeDns, judgeTls } from '../../../../../core/domain/trunk-tests/index.ts'
import t from '../../../../support/harness/index.ts'

const PIN = 'ab'.repeat(32)

t.test('a row’s contact is passed to the SIP server unchanged, and an invalid one is ignored', async t => {
  for (const [tls_verification, tls_fingerprint] of [
    ['required', null],
    ['off', null],
    ['pinned', PIN],
  ] as const) {
    const read = verificationOf({ tls_verification, tls_fingerprint })
    t.same(readVerification(verificationText(read)), read, tls_verification)
  }
  t.same(readVerification('offf'), undefined)
  t.same(readVerification(undefined), undefined)
  t.same(verificationOf({ tls_verification: 'pinned', tls_fingerprint: null }), { mode: 'pinned', fingerprint: '' })
  t.equal(readFingerprint(`${'AB:'.repeat(31)}ab`), PIN)
  t.equal(readFingerprint('ab'.repeat(31)), null)
})

t.test('a trunk test of a TLS target that the SIP server cannot verify does not ask for a public address', async t => {
  const refused = 'a drachtio-server does not verify the certificate of 192.0.2.1:5061'
  t.match(judgeDns('pbx.example', { refused, unverified: true }).mend, /embedded SIP server/)
  t.match(judgeDns('pbx.example', { refused: 'it is private', unverified: false }).mend, /public address/)
})

t.test('a trunk test fails on a wrong certificate and names the fingerprint to pin', async t => {
  const certificate: CertificateFacts = {
    ...{ subject: 'pbx', issuer: 'pbx', valid_from_ms: 0, valid_to_ms: 1e13, matches_host: true, untrusted: null },
    fingerprint: PIN,
  }
  const judge = (over: Partial<CertificateFacts>, verification?: Parameters<typeof judgeTls>[3]) =>
    judgeTls('pbx.example', { ...certificate, ...over }, 1e12, verification)
  t.match(judge({}), { state: 'passed' })
  t.match(judge({ untrusted: 'DEPTH_ZERO_SELF_SIGNED_CERT' }), { state: 'failed', mend: new RegExp(PIN) })
  t.match(judge({ matches_host: false }), { state: 'failed', summary: /does not name pbx.example/ })
  t.match(judge({ untrusted: 'SELF_SIGNED' }, { mode: 'pinned', fingerprint: PIN }), { state: 'passed' })
  t.match(judge({}, { mode: 'pinned', fingerprint: 'cd'.repeat(32) }), { state: 'failed', summary: /not the pinned/ })
  t.match(judge({ untrusted: 'SELF_SIGNED' }, { mode: 'off' }), { state: 'passed', summary: /is not verified/ })
})
