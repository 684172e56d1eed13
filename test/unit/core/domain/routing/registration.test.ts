import { createHash } from 'node:crypto'
import { answerChallenge, readChallenges } from '../../../../../core/domain/identity/index.ts'
import { grantedSeconds, nextRegistration } from '../../../../../core/domain/routing/index.ts'
import { digestHash } from '../../../../../core/runtime/secrets.ts'
import t from '../../../../support/harness/index.ts'

const answer = (code: number, more: object = {}) => ({
  ...{ code, granted_seconds: null, min_seconds: null, retry_after_seconds: null },
  ...more,
})
const facts = { wanted_seconds: 3600, failures: 0, random: 0.5 }

t.test('a registration is renewed before it expires, and failures back off exponentially', async t => {
  const table: [string, object, object, object][] = [
    ['granted as wanted', answer(200), {}, { state: 'registered', expires_in_seconds: 3600, again_in_seconds: 2700 }],
    ['granted for less', answer(200, { granted_seconds: 60 }), {}, { expires_in_seconds: 60, again_in_seconds: 45 }],
    ['never oftener than each second', answer(200, { granted_seconds: 0 }), {}, { again_in_seconds: 1 }],
    ['too brief', answer(423, { min_seconds: 7200 }), {}, { state: 'registering', wanted_seconds: 7200 }],
    ['too brief, senseless', answer(423, { min_seconds: 60 }), {}, { state: 'failed', again_in_seconds: 5 }],
    ['silence', answer(0), {}, { state: 'failed', again_in_seconds: 5 }],
    ['silence again', answer(0), { failures: 3 }, { state: 'failed', again_in_seconds: 40 }],
    ['silence for ever', answer(408), { failures: 40 }, { state: 'failed', again_in_seconds: 300 }],
    ['wrong password', answer(403), {}, { state: 'failed', again_in_seconds: 60 }],
    ['told when', answer(503, { retry_after_seconds: 600 }), {}, { state: 'failed', again_in_seconds: 600 }],
    ['told never', answer(503, { retry_after_seconds: 2 ** 31 - 1 }), {}, { again_in_seconds: 86_400 }],
  ]
  for (const [name, given, over, expected] of table)
    t.match(nextRegistration(given as ReturnType<typeof answer>, { ...facts, ...over }), expected, name)
})

t.test('the granted lifetime is read from our own contact', async t => {
  const granted = (contact: string | null, expires: string | null = '60') =>
    grantedSeconds(contact, expires, 'sip:us@192.0.2.2:5060')
  t.equal(granted('<sip:other@192.0.2.1>;expires=9, <sip:us@192.0.2.2:5060>;expires=120'), 120)
  t.equal(granted('<sip:us@192.0.2.2>'), 60)
  t.equal(granted(null, null), null)
  t.equal(granted('<sip:us@192.0.2.7:5060>;expires=5, <sip:us@192.0.2.2>;expires=120'), 120, 'an address of before')
  t.equal(granted('<sip:us@192.0.2.7>;expires=9000, <sip:us@192.0.2.2>'), 60)
  t.equal(granted('<sip:us@192.0.2.2:5070>;expires=5, <sip:us@192.0.2.2;transport=udp>;expires=120'), 120)
  t.equal(granted('<sip:us@198.51.100.1:1024>;expires=300'), 300, 'the address of our NAT')
  t.equal(granted('<sip:us@198.51.100.1:1>;expires=0, <sip:us@198.51.100.1:2>;expires=300'), 300)
  t.equal(granted('<sip:us@198.51.100.1:1>;expires=900, <sip:us@198.51.100.1:2>;expires=300'), 300)
})

t.test('answers challenges as in RFC 7616 §3.9.1, and prefers SHA-256 to MD5', async t => {
  const header =
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=MD5, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", ' +
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
  const challenges = readChallenges(header)
  t.same(
    challenges.map(({ algorithm }) => algorithm),
    ['SHA-256', 'MD5'],
  )
  const given = {
    username: 'Mufasa',
    password: 'Circle of Life',
    method: 'GET',
    uri: '/dir/index.html',
    cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
    body: '',
  }
  const answers = challenges.map(challenge => answerChallenge({ hash: digestHash }, challenge, given))
  t.match(answers[0], 'response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"')
  t.match(answers[1], 'response="8ca523f5e9506fed4657c9700eebdbec"')
  t.same(readChallenges('Basic realm="x"'), [])
  t.same(readChallenges('Digest realm="x", nonce="y", qop="token"'), [])
  t.same(readChallenges('Digest realm="x", nonce="y", algorithm=SHA3-sess'), [])
})

t.test('answers challenges that only programs older or stricter than most make', async t => {
  const answerTo = (rest: string, given = {}) => {
    const [challenge] = readChallenges(`Digest realm="x", nonce="n"${rest}`)
    const facts = { username: 'u', password: 'p', method: 'INVITE', uri: 'sip:a@b', cnonce: 'c', body: 'v=0\r\n' }
    return challenge && answerChallenge({ hash: digestHash }, challenge, { ...facts, ...given })
  }
  const h = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex')
  const key = h('md5', 'u:x:p')
  const [plain, whole] = [h('md5', 'INVITE:sip:a@b'), h('md5', `INVITE:sip:a@b:${h('md5', 'v=0\r\n')}`)]
  const session = h('md5', `${key}:n:c`)
  const right: [string, string, RegExp][] = [
    [', qop="auth-int"', h('md5', `${key}:n:00000001:c:auth-int:${whole}`), /algorithm=MD5, qop=auth-int, nc=/],
    [', qop="auth-int,auth"', h('md5', `${key}:n:00000001:c:auth:${plain}`), /qop=auth, nc=/],
    [
      ', qop="auth", algorithm=md5-sess',
      h('md5', `${session}:n:00000001:c:auth:${plain}`),
      /algorithm=MD5-sess, qop=auth, nc=00000001, cnonce="c"/,
    ],
    [', algorithm=MD5-sess', h('md5', `${session}:n:${plain}`), /algorithm=MD5-sess, cnonce="c"/],
  ]
  for (const [rest, response, form] of right) {
    t.match(answerTo(rest), `response="${response}"`, rest)
    t.match(answerTo(rest), form)
  }
  const several = [
    'Digest realm="x", nonce="n", algorithm=MD5, qop="auth"',
    'Digest realm="x", nonce="n", algorithm=SHA-256-sess, qop="auth"',
    'Digest realm="x", nonce="n", algorithm=SHA-512-256, qop="auth"',
    'Digest realm="x", nonce="n", algorithm=SHA-256, qop="auth"',
  ].join(', ')
  t.same(
    readChallenges(several).map(one => `${one.algorithm}${one.session ? '-sess' : ''}`),
    ['SHA-512-256', 'SHA-256-sess', 'SHA-256', 'MD5'],
    'the strongest first',
  )
})

t.test('SHA-512-256 is that of RFC 7616 §3.9.2: its hash of a user name, as the erratum corrects it', async t => {
  const hash = '793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b'
  t.equal(digestHash('SHA-512-256', 'Jäsøn Doe:api@example.org'), hash)
})
