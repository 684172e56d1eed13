import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { BlockList } from 'node:net'
import {
  type Authorization,
  acceptCount,
  attribute,
  challenges,
  compileAttribution,
  compileSources,
  createReplayTable,
  type DigestCrypto,
  digestResponse,
  forgetExpired,
  ha1,
  holdsAddress,
  hostGroup,
  makeNonce,
  matchSources,
  NONCE_LIFETIME_MS,
  ownershipOf,
  parseAddress,
  parseAuthorization,
  presentedCaller,
  readCaller,
  readNonce,
  verifyDigest,
} from '../../../../../core/domain/identity/index.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

const owner = (id: string) => ({ id })
const source = (cidr: string, id: string, selector_precedence = 10) => ({ cidr, selector_precedence, owner: owner(id) })

/** Trunks and carriers by their sources: `[id, cidr, precedence]`. */
function known(rows: readonly [string, string, number?][], changes: Record<string, object> = {}, carriers = {}) {
  const ids = [...new Set(rows.map(([id]) => id))]
  const trunks = ids.map(id => {
    const sources = rows
      .filter(([of]) => of === id)
      .map(([, cidr, selector_precedence = 10]) => ({ cidr, selector_precedence, standing: 'full' as const }))
    const source_index = compileSources(sources.map(entry => ({ ...entry, owner: id })))
    const trunk = { owner: owner(id), signaling_fqdn: `${id}.sip.example.net`, auth_mode: 'ip_allow_list' as const }
    return { ...trunk, sources, source_index, ...changes[id] }
  })
  const of_carriers = Object.entries<string[]>(carriers).map(([id, sources]) => ({ owner: owner(id), sources }))
  const attribution = compileAttribution(trunks, of_carriers)
  return (address: string, hosts: readonly string[] = [], has_credentials = false) => {
    const found = attribute(attribution, { address, hosts, has_credentials })
    return found.kind === 'identified' ? found.owner.id : found.kind
  }
}

t.test('the longest prefix wins, then the lowest precedence', async t => {
  const who = known([
    ['all', '0.0.0.0/0'],
    ['ten', '10.0.0.0/8'],
    ['wide', '10.1.0.0/16', 0],
    ['one', '10.1.2.3', 99],
    ['a', '192.0.2.1/32', 5],
    ['b', '192.0.2.1/32', 5],
    ['c', '192.0.2.1/32', 6],
    ['e', '192.0.2.2/32', 6],
    ['d', '192.0.2.2/32', 5],
    ['six', '2001:db8::/32'],
    ['sixty-four', '2001:db8:0:1::/64'],
    ['bad', 'not an address'],
  ])
  t.equal(who('10.1.2.3'), 'one', 'a longer prefix beats any precedence')
  t.equal(who('10.1.2.4'), 'wide')
  t.equal(who('10.2.0.1'), 'ten')
  t.equal(who('::ffff:10.2.0.1'), 'ten', 'a mapped address is its IPv4 address')
  t.equal(who('203.0.113.9'), 'all')
  t.equal(who('2001:db8:0:1::5'), 'sixty-four')
  t.equal(who('2001:DB8:1::5'), 'six')
  t.equal(who('2001:db9::1'), 'challenge')
  t.equal(who('192.0.2.1'), 'ambiguous')
  t.equal(who('192.0.2.2'), 'd', 'the lowest precedence when nobody is named')
  t.equal(who('rubbish'), 'challenge')
  t.same(compileSources([source('not an address', 'bad')]).invalid, ['not an address'])
})

t.test('limits count an IPv6 /64 as one machine', async t => {
  t.equal(hostGroup('2001:db8:0:1::5'), hostGroup('2001:DB8:0:1:ffff::1'))
  t.not(hostGroup('2001:db8:0:1::5'), hostGroup('2001:db8:0:2::5'))
  t.equal(hostGroup('192.0.2.1'), hostGroup('::ffff:192.0.2.1'))
  t.not(hostGroup('192.0.2.1'), hostGroup('192.0.2.2'))
  t.not(hostGroup('one'), hostGroup('other'))
})

t.test('a request that names a trunk matches that trunk or none, whoever else claims its source address', async t => {
  const rows: [string, string, number?][] = [
    ['a', '192.0.2.1/32', 5],
    ['b', '192.0.2.1/32', 5],
    ['wide', '192.0.2.0/24'],
    ['phones', '198.51.100.0/24'],
  ]
  const who = known(rows, { phones: { auth_mode: 'digest' } }, { carrier: ['203.0.113.0/24'] })
  t.equal(who('192.0.2.1', ['nothing.example.net', 'B.sip.example.net.']), 'b', 'the request-URI, else To')
  t.equal(who('192.0.2.1', ['a.sip.example.net', 'b.sip.example.net']), 'a')
  t.equal(who('192.0.2.1', ['wide.sip.example.net']), 'wide', 'whoever has the longer prefix')
  t.equal(who('192.0.2.9', ['b.sip.example.net']), 'challenge', 'from an address that is not its own')
  t.equal(who('203.0.113.9', ['b.sip.example.net']), 'challenge', "from a carrier's too")
  t.equal(who('192.0.2.1', ['phones.sip.example.net']), 'challenge', 'a digest trunk asks for its password')
  t.equal(who('198.51.100.1'), 'challenge', 'its addresses speak for nobody')
})

t.test('a source address never replaces the check of credentials', async t => {
  const who = known([['a', '192.0.2.1/32']], {}, { carrier: ['203.0.113.0/24'] })
  t.equal(who('192.0.2.1', [], true), 'challenge')
  t.equal(who('192.0.2.1', ['a.sip.example.net'], true), 'challenge')
  t.equal(who('203.0.113.1', [], true), 'challenge')
})

t.test("a carrier's address takes precedence over a narrower source of a trunk", async t => {
  const who = known([['thief', '203.0.113.9/32', 0]], {}, { carrier: ['203.0.113.0/24'] })
  t.equal(who('203.0.113.9'), 'carrier')
})

const anyV4 = fc.tuple(fc.nat(3), fc.nat(3), fc.nat(255), fc.nat(255)).map(bytes => bytes.join('.'))

t.test('the trie finds what a scan over all sources finds', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(anyV4, fc.nat(32)), { maxLength: 60 }),
      fc.array(anyV4, { maxLength: 20 }),
      (nets, addresses) => {
        const entries = nets.map(([address, length], i) => source(`${address}/${length}`, `t${i}`))
        const index = compileSources(entries)
        return addresses.every(address => {
          const lengths = nets
            .filter(([net, length]) => {
              const list = new BlockList()
              list.addSubnet(net, length)
              return list.check(address)
            })
            .map(([, length]) => length)
          const best = lengths.length === 0 ? null : Math.max(...lengths)
          const found = matchSources(index, address)[0]
          return (
            (found ? Number(found.cidr.split('/')[1]) : null) === best &&
            holdsAddress(index, address) === (best !== null)
          )
        })
      },
    ),
    { numRuns: 300 },
  )
})

t.test('addresses parse as in the standard library', async () => {
  const list = (address: string) => {
    const made = new BlockList()
    made.addAddress(address, 'ipv6')
    return made
  }
  fc.assert(
    fc.property(fc.ipV6(), text => {
      const parsed = parseAddress(text)
      if (!parsed) return false
      if (parsed.words.length === 1) return true
      const written = parsed.words
        .flatMap(word => [word >>> 16, word & 0xffff].map(half => half.toString(16)))
        .join(':')
      return list(text).check(written, 'ipv6')
    }),
  )
  fc.assert(fc.property(fc.string(), text => parseAddress(text) !== undefined))
})

const crypto: DigestCrypto = {
  hash: (algorithm, text) =>
    createHash(algorithm === 'MD5' ? 'md5' : 'sha256')
      .update(text)
      .digest('hex'),
  hmac: text => createHmac('sha256', 'server key').update(text).digest('hex'),
  equal: (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b)),
}
const NOW = 1_772_000_000_000
const URI = 'sip:+2348031234567@example.net'

const credential = (password: string, id = password) => ({
  id,
  ha1_md5: ha1(crypto, 'MD5', 'alice', 'example.net', password),
  ha1_sha256: ha1(crypto, 'SHA-256', 'alice', 'example.net', password),
})

const HOLDER = { transport: 'udp', address: '192.0.2.7' }

function answer(password: string, changes: Partial<Authorization> = {}, method = 'INVITE'): Authorization {
  const base = {
    username: 'alice',
    realm: 'example.net',
    nonce: makeNonce(crypto, NOW, 'ab'.repeat(16), HOLDER),
    uri: URI,
    algorithm: 'SHA-256' as const,
    cnonce: 'c1',
    nc: '00000001',
    ...changes,
  }
  return { response: digestResponse(crypto, credential(password), base, method), ...base, ...changes }
}

const verify = (authorization: Authorization, replays = createReplayTable(), changes = {}) =>
  verifyDigest(crypto, replays, {
    authorization,
    method: 'INVITE',
    request_uri: URI,
    credentials: [credential('secret')],
    now_ms: NOW + 1000,
    holder: HOLDER,
    ...changes,
  })

t.test('the digests of the RFC 7616 example are reproduced with both algorithms', async t => {
  const example = {
    username: 'Mufasa',
    realm: 'http-auth@example.org',
    nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
    uri: '/dir/index.html',
    cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
    nc: '00000001',
  }
  const secret = {
    ha1_md5: ha1(crypto, 'MD5', example.username, example.realm, 'Circle of Life'),
    ha1_sha256: ha1(crypto, 'SHA-256', example.username, example.realm, 'Circle of Life'),
  }
  t.equal(digestResponse(crypto, secret, { ...example, algorithm: 'MD5' }, 'GET'), '8ca523f5e9506fed4657c9700eebdbec')
  t.equal(
    digestResponse(crypto, secret, { ...example, algorithm: 'SHA-256' }, 'GET'),
    '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1',
  )
})

t.test('a correct response works once; wrong, forged, replayed, stale and misdirected ones are rejected', async t => {
  const replays = createReplayTable()
  t.match(verify(answer('secret'), replays), { kind: 'authenticated', credential: { id: 'secret' } })
  t.match(verify(answer('secret'), replays), { kind: 'refused', why: 'replayed' })
  t.match(verify(answer('secret', { nc: '00000002' }), replays), { kind: 'authenticated' })
  t.match(verify(answer('secret', { algorithm: 'MD5' })), { kind: 'authenticated' })
  t.match(verify(answer('wrong')), { kind: 'refused', why: 'wrong_password' })
  t.match(verify(answer('secret'), createReplayTable(), { credentials: [] }), {
    kind: 'refused',
    why: 'wrong_password',
  })
  t.match(verify(answer('secret', { nonce: 'mm3.abababab.000000000000000000000000' })), { why: 'forged_nonce' })
  t.match(verify(answer('secret', { nonce: 'theirs' })), { kind: 'refused', why: 'forged_nonce' })
  t.match(verify(answer('secret', { uri: 'sip:+1900@example.net' })), { kind: 'refused', why: 'uri_mismatch' })
  t.match(verify(answer('secret', { uri: `${URI};transport=tls` })), { kind: 'authenticated' })
  for (const holder of [
    { ...HOLDER, address: '192.0.2.8' },
    { ...HOLDER, transport: 'tcp' },
  ])
    t.match(
      verify(answer('wrong'), createReplayTable(), { holder }),
      { why: 'forged_nonce' },
      'a nonce that was issued to another address or transport proves nothing, not even a failure',
    )
  t.match(verify(answer('secret', {}, 'BYE')), { kind: 'refused', why: 'wrong_password' }, 'for another method')
  const late = { now_ms: NOW + NONCE_LIFETIME_MS + 1 }
  t.match(verify(answer('secret'), createReplayTable(), late), { kind: 'stale' })
  t.match(verify(answer('wrong'), createReplayTable(), late), { kind: 'refused' }, 'stale is told to those who know')
  t.match(
    verify(answer('secret'), createReplayTable(), { now_ms: NOW - 3_600_000 }),
    { kind: 'stale' },
    'clock put back',
  )
})

t.test('during a rotation both passwords work, and the result names the one that matched', async t => {
  const credentials = [credential('old'), credential('new')]
  t.match(verify(answer('old'), createReplayTable(), { credentials }), { credential: { id: 'old' } })
  t.match(verify(answer('new'), createReplayTable(), { credentials }), { credential: { id: 'new' } })
})

t.test('parses the Authorization headers of real peers, and rejects any without qop=auth', async t => {
  const header = (rest: string) =>
    'Digest username="al\\"ice", realm="example.net",nonce="n", uri="sip:a@b" ,response="ABC", cnonce="c", ' +
    `nc=0000000A${rest}`
  t.match(parseAuthorization(header(', qop=auth, algorithm=sha-256')), {
    username: 'al"ice',
    algorithm: 'SHA-256',
    response: 'abc',
    nc: '0000000a',
  })
  t.equal(parseAuthorization(header(', qop="auth"'))?.algorithm, 'MD5')
  for (const bad of [
    header(''),
    header(', qop=auth-int'),
    header(', qop=auth, algorithm=MD5-sess'),
    header(', qop=auth, realm="other"'),
    header(', qop=auth, uri'),
    'Basic abc',
    'Digest ',
    `Digest ${'a=b,'.repeat(2000)}`,
  ])
    t.equal(parseAuthorization(bad), null, bad.slice(0, 40))
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), rest => parseAuthorization(`Digest ${rest}`) !== undefined),
    { numRuns: 2000 },
  )
})

t.test('challenges offer SHA-256 first, and stale only when asked', async t => {
  const [first, second, ...more] = challenges('example.net', 'n', false)
  t.equal(first, 'Digest realm="example.net", nonce="n", algorithm=SHA-256, qop="auth"')
  t.match(second, /algorithm=MD5/)
  t.same(more, [])
  t.match(challenges('a"b', 'n', true)[0], /realm="ab".*stale=true/)
})

t.test('each nonce count works once, in any order, and forgetting old nonces allows no replay', async t => {
  fc.assert(
    fc.property(fc.array(fc.nat(80), { maxLength: 60 }), counts => {
      const table = createReplayTable()
      const seen = new Set<number>()
      let highest = -1
      return counts.every(count => {
        const result = acceptCount(table, 'n', 1, count)
        const fresh = !seen.has(count) && highest - count < 64
        highest = Math.max(highest, count)
        seen.add(count)
        return (result === 'accepted') === fresh
      })
    }),
  )
  const small = createReplayTable(2)
  t.equal(acceptCount(small, 'a', 10, 1), 'accepted')
  t.equal(acceptCount(small, 'b', 20, 1), 'accepted')
  t.equal(acceptCount(small, 'c', 30, 1), 'accepted')
  t.equal(acceptCount(small, 'a', 10, 1), 'forgotten', 'not accepted a second time')
  t.equal(small.used.size, 2)
  const table = createReplayTable()
  acceptCount(table, 'a', NOW, 1)
  forgetExpired(table, NOW + NONCE_LIFETIME_MS + 1)
  t.equal(table.used.size, 0)
  t.equal(acceptCount(table, 'a', NOW, 1), 'forgotten')
  t.equal(readNonce(crypto, makeNonce(crypto, NOW, 'ab'.repeat(8), HOLDER), NOW, HOLDER).state, 'valid')
})

t.test('the caller is the asserted identity, else From, else the trunk’s default', async t => {
  t.match(readCaller({ from: '08031234567' }, 'NG'), {
    number: { e164: '+2348031234567' },
    from: 'from',
    restricted: false,
  })
  t.match(readCaller({ from: 'anonymous', asserted: '+2348031234567' }, 'NG'), {
    number: { e164: '+2348031234567' },
    from: 'asserted',
    restricted: true,
  })
  t.match(readCaller({ from: '+2348031234567', privacy: [' ID '] }, 'NG'), { restricted: true })
  t.match(readCaller({ from: '+2348031234567', privacy: ['none'] }, 'NG'), { restricted: false })
  t.match(readCaller({ from: 'pbx' }, 'NG', '+2342010000001'), { number: { e164: '+2342010000001' }, from: 'default' })
  t.match(readCaller({ from: 'pbx' }, 'NG'), { given: 'pbx', number: null, from: 'none' })
  const network = { domain: 'example.net', trusted: true }
  const hidden = { from: '"Anonymous" <sip:anonymous@anonymous.invalid>', privacy: 'id' }
  const asserted = '<sip:+2342010000001@example.net>'
  t.same(presentedCaller('+2342010000001', true, network), { ...hidden, asserted }, 'the network is told all the same')
  t.same(presentedCaller('+2342010000001', true, { ...network, trusted: false }), { ...hidden, asserted: null })
  t.match(presentedCaller('+2342010000001', false, network), {
    from: '<sip:+2342010000001@example.net>',
    privacy: null,
  })
})

t.test(
  'ownership: the project, then the share of the service, with the forwarded caller as the one exception',
  async t => {
    const standing = { of_project: true, of_service: false, service_has_numbers: false, forwarded: false }
    t.equal(ownershipOf('+1', standing), 'owned')
    t.equal(ownershipOf('+1', { ...standing, service_has_numbers: true }), 'outside_service')
    t.equal(ownershipOf('+1', { ...standing, service_has_numbers: true, of_service: true }), 'owned')
    t.equal(ownershipOf('+1', { ...standing, of_project: false }), 'not_owned')
    t.equal(ownershipOf('+1', { ...standing, of_project: false, forwarded: true }), 'forwarded')
    t.equal(ownershipOf(null, { ...standing, forwarded: true }), 'invalid')
  },
)
