import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { attestationOf } from '../../../../core/domain/identity/index.ts'
import { type Clock, systemClock } from '../../../../core/runtime/clock.ts'
import { createHttpClient, type HttpClient } from '../../../../core/runtime/http/index.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import { Stir } from '../../../../signaling/trunks/stir.ts'
import t from '../../../support/harness/index.ts'
import { authority } from '../../../support/stir.ts'
import { PATIENCE_MS } from '../../../support/wait.ts'

const CALL = { caller: '+2342010000001', called: '+2348030004711' }
const log = createLog('test', { log_level: 'silent' })
const fromText = (text: string): string => Buffer.from(text, 'base64url').toString('utf8')

t.test('an owned caller is attested A, a forwarded one B, and an unverified or foreign one C', async t => {
  t.equal(attestationOf('owned', null), 'A')
  t.equal(attestationOf('default', null), 'A')
  t.equal(attestationOf('forwarded', null), 'B')
  t.equal(attestationOf('forwarded', { result: 'failed', attest: 'A', detail: '' }), 'C')
  t.equal(attestationOf('not_owned', null), 'C')
})

t.test('callers are signed and signatures verified, with certificates of a test authority', async t => {
  const ca = await authority(t)
  const client = createHttpClient({ allow_private: ['loopback'], user_agent: 'test', ca: ca.ca_pem })
  t.teardown(() => client.close())
  // A certificate must come within 2.5 s, which a busy machine may need to load its HTTP client.
  const patience = { total_timeout_ms: PATIENCE_MS, connect_timeout_ms: PATIENCE_MS, read_timeout_ms: PATIENCE_MS }
  const http: Pick<HttpClient, 'request'> = { request: asked => client.request({ ...asked, ...patience }) }
  // The clock of the test does not advance, so it starts an hour ahead: all certificates made meanwhile are valid.
  const begin_ms = Date.now() + 3_600_000
  let now_ms = begin_ms
  const clock = { ...systemClock, now: () => now_ms }
  const signing = (name: string, x5u = ca.x5u(name)) => ({
    cert_file: ca.file(`${name}.pem`),
    key_file: ca.file(`${name}.key`),
    x5u,
  })
  const stir = (over: object = {}) =>
    new Stir({ config: { stir: { signing: signing('signer'), anchors_file: ca.ca_file, ...over } }, http, clock, log })
  const signed = (name = 'signer', x5u?: string): string =>
    stir({ signing: signing(name, x5u) }).identity({ ...CALL, attest: 'A' }) ?? ''

  const us = stir()
  const identity = us.identity({ ...CALL, attest: 'A' }) ?? ''

  t.test('the token has the form of RFC 8588, and its signature verifies', async t => {
    t.match(identity, /^[\w-]+\.[\w-]+\.[\w-]{86};info=<https:\/\/127\.0\.0\.1:\d+\/signer>;alg=ES256;ppt="shaken"$/)
    const [header = '', payload = ''] = identity.split('.')
    t.equal(fromText(header), `{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"${ca.x5u('signer')}"}`)
    t.match(
      fromText(payload),
      /^\{"attest":"A","dest":\{"tn":\["2348030004711"\]\},"iat":\d{10},"orig":\{"tn":"2342010000001"\},"origid":"[0-9a-f-]{36}"\}$/,
    )
    t.same(await us.verify(identity, CALL), { result: 'passed', attest: 'A', detail: null })
    await us.verify(identity, CALL)
    t.equal(ca.asked(), 1, 'the certificate is fetched once')
  })

  t.test('a mismatch, forgery or invalid certificate fails verification with a reason', async t => {
    const failed = async (value: string, call: object, detail: RegExp) =>
      t.match(await us.verify(value, { ...CALL, ...call }), { result: 'failed', detail })
    await failed(identity, { caller: '+2342010000002' }, /signed for the caller 2342010000001/)
    await failed(identity, { called: '+2348030004712' }, /signed for the called number 2348030004711/)
    const [token = '', ...rest] = identity.split(';')
    const [header = '', payload = '', signature = ''] = token.split('.')
    const forged = Buffer.from(fromText(payload).replace('"attest":"A"', '"attest":"B"')).toString('base64url')
    await failed([`${header}.${forged}.${signature}`, ...rest].join(';'), {}, /signature is not by that certificate/)
    await failed(`${header}.${payload};ppt=shaken`, {}, /cannot be read/)
    await failed('garbage', {}, /cannot be read/)
    await failed(signed('signer', ca.x5u('nowhere')), {}, /could not be fetched \(404\)/)
    ca.served.set('empty', 'no certificate')
    await failed(signed('signer', ca.x5u('empty')), {}, /no certificate at x5u/)
    ca.leaf('stranger', { by: 'other' })
    ca.served.set('stranger', readFileSync(ca.file('stranger.pem'), 'utf8'))
    await failed(signed('stranger'), {}, /ends at no trust anchor/)
    ca.served.set('chained', readFileSync(ca.file('stranger.pem'), 'utf8') + readFileSync(ca.file('other.pem'), 'utf8'))
    await failed(signed('stranger', ca.x5u('chained')), {}, /ends at no trust anchor/)
    now_ms += 120_000
    await failed(identity, {}, /not of this minute/)
    now_ms += 40 * 86_400_000
    await failed(signed('signer', ca.x5u('signer?')), {}, /could not be fetched/)
    ca.served.set('late', readFileSync(ca.file('signer.pem'), 'utf8'))
    await failed(signed('signer', ca.x5u('late')), {}, /not valid now/)
    now_ms = begin_ms
    t.match(await us.verify(null, CALL), { result: 'none' })
    t.match(await us.verify('a.b.c;ppt=div', CALL), { result: 'none' })
    t.equal(
      await stir({ anchors_file: null }).verify(identity, CALL),
      null,
      'nothing is verified without trust anchors',
    )
    t.equal(us.identity({ caller: 'anonymous', called: CALL.called, attest: 'A' }), null)
  })

  t.test('a certificate of an intermediate authority verifies only when its chain is served with it', async t => {
    ca.leaf('between', { may_issue: true })
    ca.leaf('below', { by: 'between' })
    const [below, between] = ['below.pem', 'between.pem'].map(name => readFileSync(ca.file(name), 'utf8'))
    ca.served.set('alone', below ?? '')
    ca.served.set('chain', `${below}${between}`)
    t.match(await us.verify(signed('below', ca.x5u('alone')), CALL), { result: 'failed', detail: /no trust anchor/ })
    t.match(await us.verify(signed('below', ca.x5u('chain')), CALL), { result: 'passed' })
  })

  t.test('renewed files are used without a restart, and half a renewal changes nothing', async t => {
    let look = (): void => undefined
    const watched: Clock = {
      ...clock,
      every(_period_ms, run) {
        look = run
        return { cancel: () => undefined }
      },
    }
    const files = { cert_file: ca.file('renewed.pem'), key_file: ca.file('renewed.key'), x5u: ca.x5u('renewed') }
    const put = (name: string, part: 'pem' | 'key'): void =>
      copyFileSync(ca.file(`${name}.${part}`), ca.file(`renewed.${part}`))
    ca.leaf('before', {})
    ca.leaf('after', {})
    for (const part of ['pem', 'key'] as const) put('before', part)
    const config = { stir: { signing: files, anchors_file: ca.file('anchors.pem') } }
    copyFileSync(ca.file('other.pem'), ca.file('anchors.pem'))
    const renewing = new Stir({ config, http, clock: watched, log })
    const serve = (name: string): void => void ca.served.set('renewed', readFileSync(ca.file(`${name}.pem`), 'utf8'))
    /** What a carrier finds that gets the certificate anew. */
    const carrierFinds = async () =>
      (await stir().verify(renewing.identity({ ...CALL, attest: 'A' }) ?? '', CALL))?.result
    serve('before')
    t.equal(await carrierFinds(), 'passed')
    t.match(await renewing.verify(identity, CALL), { result: 'failed', detail: /no trust anchor/ })

    put('after', 'pem')
    look()
    t.equal(await carrierFinds(), 'passed', 'a certificate without its key is not used')
    put('after', 'key')
    copyFileSync(ca.ca_file, ca.file('anchors.pem'))
    serve('after')
    t.equal(await carrierFinds(), 'failed', 'the key of before is not that of what is served now')
    look()
    t.equal(await carrierFinds(), 'passed')
    t.match(await renewing.verify(identity, CALL), { result: 'passed' }, 'a new trust anchor counts as well')
  })

  t.test('an unusable key or certificate is refused at start, with the name of its variable', async t => {
    writeFileSync(ca.file('empty'), '')
    t.throws(
      () => stir({ signing: { ...signing('signer'), key_file: ca.file('web.key') } }),
      /STROWGER_STIR_KEY=.*not the key/,
    )
    t.throws(() => stir({ signing: { ...signing('signer'), key_file: ca.file('empty') } }), /no private key/)
    t.throws(
      () => stir({ signing: { ...signing('signer'), cert_file: ca.file('none') } }),
      /STROWGER_STIR_CERT=.*ENOENT/,
    )
    t.throws(() => stir({ anchors_file: ca.file('empty') }), /STROWGER_STIR_CA=.*no certificate/)
  })
})
