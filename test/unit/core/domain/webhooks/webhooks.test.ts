import { createCookieJar } from '../../../../../core/domain/webhooks/cookies.ts'
import { documentText } from '../../../../../core/domain/webhooks/document.ts'
import { FETCH_ERRORS, fetchErrorNumber, statusErrorNumber } from '../../../../../core/domain/webhooks/errors.ts'
import { DEFAULT_POLICY, parseOverrides, retryDelay } from '../../../../../core/domain/webhooks/overrides.ts'
import { redirectOf } from '../../../../../core/domain/webhooks/redirects.ts'
import {
  encodeParameters,
  signatureData,
  timedSignature,
  timedSignatureData,
  withBodyHash,
} from '../../../../../core/domain/webhooks/signature.ts'
import { MAX_URL_CHARACTERS, parseTarget, withParameters } from '../../../../../core/domain/webhooks/target.ts'
import t from '../../../../support/harness/index.ts'
import { anyCharacter, fc } from '../../../../support/properties.ts'

const leaves = (text: string, base?: string): string => {
  const parsed = parseTarget(text, base)
  return parsed.ok ? parsed.target.url : `refused: ${parsed.detail}`
}

t.test('requests the URL as written, without user info and fragment', async t => {
  const cases: [written: string, leaves: string][] = [
    ['https://app.example.test', 'https://app.example.test/'],
    ['https://app.example.test?x=1', 'https://app.example.test/?x=1'],
    ['https://u:p@app.example.test/a', 'https://app.example.test/a'],
    ['https://app.example.test/a#rc=2', 'https://app.example.test/a'],
    ['https://app.example.test/a?b=c#rc=2&rp=5xx', 'https://app.example.test/a?b=c'],
    ['https://app.example.test:443/a', 'https://app.example.test/a'],
    ['https://app.example.test:8443/a', 'https://app.example.test:8443/a'],
    ['HTTP://APP.Example.Test/A', 'http://app.example.test/A'],
    ["https://app.example.test/a?b='c'&d=[1]|{2}", "https://app.example.test/a?b='c'&d=[1]|{2}"],
    ['https://app.example.test/a?b=%26%zz+c', 'https://app.example.test/a?b=%26%zz+c'],
    ['https://app.example.test/a b?c d', 'https://app.example.test/a%20b?c%20d'],
    ['https://app.example.test/é?ü="<>', 'https://app.example.test/%C3%A9?%C3%BC=%22%3C%3E'],
    ['  https://app.example.test/a?b=1\n2\t ', 'https://app.example.test/a?b=12'],
    ['https://app.example.test/a?', 'https://app.example.test/a?'],
    ['https://app.example.test/a/../b?c=/../d', 'https://app.example.test/b?c=/../d'],
    ['http://2130706433/', 'http://127.0.0.1/'],
    ['http://0x7f.1:8080/', 'http://127.0.0.1:8080/'],
    ['http://[::FFFF:127.0.0.1]/', 'http://[::ffff:7f00:1]/'],
  ]
  for (const [written, expected] of cases) t.equal(leaves(written), expected, written)
})

t.test('resolves a reference against its document, and keeps the reference’s query', async t => {
  const base = "https://u:p@app.example.test/dir/voice?shop='1'"
  t.equal(leaves('next?x=1', base), 'https://app.example.test/dir/next?x=1')
  t.equal(leaves('/next', base), 'https://app.example.test/next')
  t.equal(leaves('//other.example.test/next', base), 'https://other.example.test/next')
  t.equal(leaves('', base), "https://app.example.test/dir/voice?shop='1'")
  t.equal(leaves('#top', base), "https://app.example.test/dir/voice?shop='1'")
})

t.test('rejects a URL that cannot be requested, with the reason', async t => {
  t.match(leaves('/relative'), /^refused: not a URL/)
  t.match(leaves('ftp://app.example.test/'), /^refused: scheme ftp/)
  t.match(leaves('file:///etc/passwd'), /^refused: scheme file/)
  t.match(leaves('javascript:alert(1)'), /^refused: scheme javascript/)
  t.match(leaves('http://'), /^refused/)
  t.match(leaves('http://app.example.test:0/'), /^refused: port 0/)
  t.match(leaves('http://app.example.test:99999/'), /^refused/)
  t.match(leaves('http://%zz@app.example.test/'), /^refused: the user info/)
  t.match(leaves(`http://app.example.test/${'a'.repeat(MAX_URL_CHARACTERS)}`), /^refused: a URL is at most/)
})

t.test('rejects ports of SIP, mail and similar protocols, however they are written', async t => {
  const said = (port: number) => `refused: port ${port} is not for HTTP`
  t.equal(leaves('http://carrier.example.test:5060/'), said(5060))
  t.equal(leaves('https://carrier.example.test:05061/'), said(5061))
  t.equal(leaves('//carrier.example.test:5060/x', 'http://app.example.test/'), said(5060))
  t.equal(leaves('http://mail.example.test:25/'), said(25))
  const location = 'http://carrier.example.test:5060/'
  const moved = redirectOf({ status: 307, location }, { method: 'POST', url: 'http://app.example.test/' })
  t.match(moved, { kind: 'bad', detail: /port 5060/ })
})

t.test('decodes user info once, and checks the host that will be connected to', async t => {
  const parsed = parseTarget('https://me%40corp:p%3Ass@[2001:db8::1]:8443/x')
  t.match(parsed, {
    ok: true,
    target: {
      hostname: '2001:db8::1',
      port: 8443,
      scheme: 'https',
      credentials: { username: 'me@corp', password: 'p:ss' },
    },
  })
})

t.test('any URL becomes one line of visible ASCII that parses back to itself', async t => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), fc.string({ unit: anyCharacter }), (path, query) => {
      const parsed = parseTarget(`https://app.example.test/${path}?${query}`)
      if (!parsed.ok) return
      const { path: sent, url } = parsed.target
      if (!/^[\x21-\x7e]+$/.test(sent) || sent.includes('#')) throw new Error(`leaves as ${JSON.stringify(sent)}`)
      const again = parseTarget(url)
      if (!again.ok || again.target.url !== url) throw new Error(`reads back as ${JSON.stringify(again)}`)
    }),
    { numRuns: 500 },
  )
  t.pass('500 URLs')
})

t.test('appends the parameters of a GET to an existing query', async t => {
  t.equal(withParameters('https://a.test/v', 'X=1'), 'https://a.test/v?X=1')
  t.equal(withParameters('https://a.test/v?', 'X=1'), 'https://a.test/v?X=1')
  t.equal(withParameters("https://a.test/v?q='%2B", 'X=1'), "https://a.test/v?q='%2B&X=1")
  t.equal(withParameters('https://a.test/v?q=1&', 'X=1'), 'https://a.test/v?q=1&X=1')
  t.equal(withParameters('https://a.test/v#rc=2', 'X=1'), 'https://a.test/v?X=1#rc=2')
  t.equal(withParameters('https://a.test/v?q=1#a?b', ''), 'https://a.test/v?q=1#a?b')
})

t.test('signature data is the URL and the sorted parameters, each distinct value once', async t => {
  t.equal(
    encodeParameters([
      ['From', '+234 1'],
      ['D', 'a&b=é'],
    ]),
    'From=%2B234+1&D=a%26b%3D%C3%A9',
  )
  t.equal(signatureData('https://a.test/v', []), 'https://a.test/v')
  t.equal(
    signatureData('https://a.test/v', [
      ['b', '1'],
      ['a', 'x'],
      ['B', '2'],
      ['B', '1'],
      ['B', '2'],
    ]),
    'https://a.test/vB1B2axb1',
  )
  t.equal(withBodyHash('https://a.test/h#rc=1', 'abc'), 'https://a.test/h?bodySHA256=abc#rc=1')
  t.equal(timedSignatureData(17, 'https://a.test/v', 'A=1'), '17.https://a.test/vA=1')
  t.equal(timedSignature(17, 'ff'), 't=17,v1=ff')
})

t.test('redirects repeat or become a bare GET by their status', async t => {
  const cases: [status: number, method: 'GET' | 'HEAD' | 'POST', next: string][] = [
    [301, 'POST', 'GET without body'],
    [302, 'POST', 'GET without body'],
    [303, 'POST', 'GET without body'],
    [307, 'POST', 'POST with body'],
    [308, 'POST', 'POST with body'],
    [302, 'GET', 'GET without body'],
    [303, 'HEAD', 'HEAD without body'],
    [200, 'POST', 'final'],
    [300, 'POST', 'final'],
    [304, 'GET', 'final'],
    [305, 'GET', 'final'],
    [404, 'POST', 'final'],
  ]
  for (const [status, method, expected] of cases) {
    const next = redirectOf({ status, location: '/next' }, { method, url: 'https://a.test/v?x=1' })
    const told = next.kind === 'follow' ? `${next.method} ${next.keep_body ? 'with' : 'without'} body` : next.kind
    t.equal(told, expected, `${status} to ${method}`)
    if (next.kind === 'follow') t.equal(next.target.url, 'https://a.test/next')
  }
  const from = { method: 'POST', url: 'https://a.test/v' } as const
  t.equal(redirectOf({ status: 302, location: undefined }, from).kind, 'bad')
  t.equal(redirectOf({ status: 302, location: 'gopher://a.test/' }, from).kind, 'bad')
  t.equal(redirectOf({ status: 302, location: 'https://' }, from).kind, 'bad')
})

t.test('the URL’s fragment sets timeouts and retries within their ranges', async t => {
  t.same(parseOverrides(''), DEFAULT_POLICY)
  t.same(parseOverrides('rc=2&rp=4xx,5xx,ct,rt'), {
    ...DEFAULT_POLICY,
    retries: 2,
    retry_on: ['4xx', '5xx', 'ct', 'rt'],
  })
  t.match(parseOverrides('ct=1&rt=20000&tt=99999&rc=9'), {
    connect_timeout_ms: 100,
    read_timeout_ms: 15_000,
    total_timeout_ms: 15_000,
    retries: 5,
  })
  t.equal(parseOverrides('rp=all,ct').retry_on, 'all')
  t.same(parseOverrides('sni=n&e=ashburn&zz=1'), DEFAULT_POLICY, 'keys that mean nothing here')
  t.same(parseOverrides('section-2'), DEFAULT_POLICY, 'an anchor is no policy')
  t.same(parseOverrides('a=b=c&rc=3'), DEFAULT_POLICY, 'neither is this')
  t.same(parseOverrides('rc=lots&ct=2000'), { ...DEFAULT_POLICY, connect_timeout_ms: 2000, warnings: [11243] })
  t.same(parseOverrides('rp=6xx'), { ...DEFAULT_POLICY, warnings: [11243] })
})

t.test('retries follow the policy', async t => {
  const status = (value: number) => ({ status: value, error: null })
  const error = (value: (typeof FETCH_ERRORS)[number]) => ({ status: null, error: value })
  const delay = (fragment: string, outcome: Parameters<typeof retryDelay>[1], failed = 1) =>
    retryDelay(parseOverrides(fragment), outcome, failed, 0)
  t.equal(delay('', error('refused')), 0, 'a connection is tried again at once')
  t.equal(delay('', error('tls_expired')), 0)
  t.equal(delay('', error('refused'), 2), null, 'once')
  t.equal(delay('rc=0', error('refused')), null)
  t.equal(delay('', status(500)), null)
  t.equal(delay('rc=3&rp=5xx', status(500)), 50, 'half of 100 ms is the least')
  t.equal(delay('rc=3&rp=5xx', status(500), 3), 200)
  t.equal(retryDelay(parseOverrides('rc=3&rp=5xx'), status(503), 3, 0.999999), 400, 'the most')
  t.equal(delay('rp=5xx', error('refused')), null, 'a given list replaces the default')
  t.equal(delay('rp=4xx', status(404)), 50)
  t.equal(delay('rp=rt', error('read_timeout')), 50)
  t.equal(delay('rp=rt', error('network')), 50)
  t.equal(delay('rp=4xx,5xx,ct,rt', error('protocol')), null)
  t.equal(delay('rp=all', error('protocol')), 50)
  t.equal(delay('rp=all', status(204)), null)
  for (const final of [
    'bad_url',
    'private_address',
    'too_large',
    'too_many_redirects',
    'bad_redirect',
    'aborted',
  ] as const)
    t.equal(delay('rc=5&rp=all', error(final)), null, final)
})

t.test('every failure maps to an error number of the compatible API', async t => {
  t.equal(new Set(FETCH_ERRORS).size, FETCH_ERRORS.length)
  const known = [11100, 11200, 11201, 11202, 11203, 11205, 11206, 11210, 11215, 11216, 11220, 11235, 11236, 11237]
  for (const error of FETCH_ERRORS) t.ok([...known, 11750, 12400].includes(fetchErrorNumber(error)), error)
  t.equal(fetchErrorNumber('private_address'), 11210)
  t.equal(fetchErrorNumber('tls_name'), 11235)
  t.equal(fetchErrorNumber('too_large'), 11750)
  t.equal(statusErrorNumber(204), null)
  t.equal(statusErrorNumber(304), 11217)
  t.equal(statusErrorNumber(500), 11217)
})

t.test('sends cookies to their origin and path until they expire', async t => {
  const jar = createCookieJar()
  const noon = Date.UTC(2026, 10, 21, 12)
  jar.store('https://a.test/ivr/start', ['sid=1; HttpOnly', 'deep=2; Path=/ivr/menu', 'all=3; Path=/', 'bad'], noon)
  t.equal(jar.header('https://a.test/ivr/next', noon), 'sid=1; all=3')
  t.equal(jar.header('https://a.test/ivr/menu/1', noon), 'deep=2; sid=1; all=3')
  t.equal(jar.header('https://a.test/ivrx', noon), 'all=3', 'a path ends at a slash')
  t.equal(jar.header('https://a.test:8443/ivr/next', noon), null, 'another port is another origin')
  t.equal(jar.header('http://a.test/ivr/next', noon), null)
  jar.store('https://a.test/ivr/x', ['sid=9; Max-Age=60', 'all=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT'], noon)
  t.equal(jar.header('https://a.test/ivr/next', noon), 'sid=9')
  t.equal(jar.header('https://a.test/ivr/next', noon + 60_000), null)
  jar.store('https://a.test/', ['a=1\r\nX: y', `big=${'x'.repeat(5000)}`, 'ü=1'], noon)
  t.equal(jar.header('https://a.test/', noon), null, 'what could not stand in a header line is not kept')
  const odd = [
    'd=1; Expires=21 Nov 26 12:00:01 GMT; Domain=test; Secure',
    'e="q;"',
    'f=1; Max-Age=0; Expires=Fri, 31 Dec 9999',
  ]
  jar.store('https://a.test/', odd, noon)
  t.equal(jar.header('https://a.test/', noon), 'd=1; e="q', 'dates as RFC 6265 reads them; Max-Age before Expires')
  t.equal(jar.header('https://b.test/', noon), null, 'Domain shares nothing')
  t.equal(jar.header('https://a.test/', noon + 1000), 'e="q')
})

t.test('a jar holds a bounded number of cookies, the newest', async t => {
  const jar = createCookieJar()
  for (let n = 0; n < 60; n++) jar.store('https://a.test/', [`c${n}=1`], 0)
  const kept = jar.header('https://a.test/', 0)?.split('; ') ?? []
  t.equal(kept.length, 50)
  t.ok(kept.includes('c59=1') && !kept.includes('c9=1'))
  for (let n = 0; n < 25; n++) jar.store(`https://h${n}.test/`, ['x=1'], 0)
  t.equal(jar.header('https://h0.test/', 0), null)
  t.equal(jar.header('https://h24.test/', 0), 'x=1')
})

t.test('a document is decoded by byte order mark, header, then declaration, then as UTF-8', async t => {
  const latin1 = (text: string) => Uint8Array.from(text, character => character.charCodeAt(0))
  const utf8 = (text: string) => new TextEncoder().encode(text)
  const text = (content_type: string | undefined, body: Uint8Array) => documentText({ content_type, body }).text
  t.same(documentText({ content_type: 'TEXT/XML; charset=utf-8', body: utf8('<R/>') }), {
    content_type: 'text/xml',
    text: '<R/>',
  })
  t.same(documentText({ content_type: undefined, body: utf8('<R/>') }), { content_type: '', text: '<R/>' })
  t.same(documentText({ content_type: 'audio/mpeg', body: utf8('x') }), { content_type: 'audio/mpeg', text: '' })
  t.equal(text('text/plain; charset="ISO-8859-1"', latin1('é')), 'é')
  t.equal(text('text/xml', latin1('<?xml version="1.0" encoding="iso-8859-1"?><R>é</R>')).slice(-8), '<R>é</R>')
  t.equal(text('text/xml; charset=utf-8', utf8('<?xml version="1.0" encoding="iso-8859-1"?>é')).slice(-1), 'é')
  t.equal(text('text/xml; charset=nonsense', utf8('<R>é</R>')), '<R>é</R>')
  t.equal(text('text/xml', Uint8Array.of(0xff, 0xfe, 0x3c, 0, 0x52, 0)), '<R')
  t.equal(text('text/xml; charset=utf-8', Uint8Array.of(0xfe, 0xff, 0, 0x3c, 0, 0x52)), '<R')
  t.equal(text('text/xml', utf8('\ufeff<R/>')), '<R/>')
  t.equal(text('text/xml; charset=ISO-8859-1', utf8('\ufeff<R>é</R>')), '<R>é</R>')
  t.equal(text('text/xml', utf8('\ufeff<?xml version="1.0" encoding="windows-1252"?>é')).slice(0, 5), '<?xml')
  t.equal(text('text/xml', Uint8Array.of(0x3c, 0xff, 0x3e)), '<\ufffd>', 'bytes that fit nothing')
})
