import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { ConfigError, httpBindOf, loadConfig, localUrl } from '../../../../core/runtime/config.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import { digestHa1, hashPassword, passwordMatches, sameSecret, seal, unseal } from '../../../../core/runtime/secrets.ts'
import t from '../../../support/harness/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'strowger-config-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const load = (env: Record<string, string> = {}) => loadConfig({ STROWGER_DATA: folder, ...env })

t.test('an empty environment gives the defaults of the contract', async t => {
  const config = load()
  t.match(config, {
    data_dir: folder,
    host: '127.0.0.1',
    bind: '127.0.0.1',
    http_port: 8080,
    sip_port: 5060,
    sips_port: 5061,
    ws_port: 5066,
    rtp_ports: { first: 20000, last: 29999 },
    domain: 'localhost',
    base_url: 'http://127.0.0.1:8080',
    drachtio: null,
    sandbox: true,
    log_level: 'info',
  })
  t.equal(Object.isFrozen(config), true)
})

t.test('an invalid value is refused with the name of its variable', async t => {
  const nonsense: Record<string, string> = {
    STROWGER_HTTP_PORT: '80a',
    STROWGER_SIP_PORT: '70000',
    STROWGER_SIPS_PORT: '0',
    STROWGER_RTP_PORTS: '20000',
    STROWGER_HOST: 'example',
    STROWGER_DOMAIN: 'not a name',
    STROWGER_DRACHTIO: 'nowhere',
    STROWGER_SANDBOX: 'maybe',
    STROWGER_MASTER_KEY: 'short',
    STROWGER_LOG: 'loud',
    STROWGER_BASE_URL: 'ftp://x',
    STROWGER_DATABASE_URL: 'postgres://x',
    STROWGER_REDIS_URL: 'redis://x',
    STROWGER_TLS_CERT: '/tmp/cert.pem',
  }
  for (const [name, value] of Object.entries(nonsense)) {
    t.throws(() => load({ [name]: value }), ConfigError, name)
    t.throws(() => load({ [name]: value }), { message: new RegExp(name) }, `${name} is named`)
  }
})

t.test('Redis is for machines that share a database, and its URL is in no message', async t => {
  const STROWGER_DATABASE_URL = 'postgres://u@db/voice'
  const good = ['redis://redis', 'rediss://user:p%2Fw@redis:6380/2', 'redis://[::1]:6379']
  for (const STROWGER_REDIS_URL of good)
    t.equal(load({ STROWGER_DATABASE_URL, STROWGER_REDIS_URL }).redis_url, STROWGER_REDIS_URL)
  for (const url of ['http://pa55@redis', 'redis://', 'redis://u:pa55@redis/name', 'unix:/pa55', 'redis://u:%pa55@x']) {
    const wrong = () => load({ STROWGER_DATABASE_URL, STROWGER_REDIS_URL: url })
    t.throws(wrong, { name: 'ConfigError', message: /^STROWGER_REDIS_URL=…: (?!.*pa55)/ }, url)
  }
  t.throws(() => load({ STROWGER_REDIS_URL: 'redis://u:pa55@x' }), { message: /REDIS_URL: set STROWGER_DATABASE_URL/ })
})

t.test('one start tells all that is wrong, and no secret', async t => {
  const env = {
    STROWGER_HTTP_PORT: '80a',
    STROWGER_HOST: '192.0.2.1',
    STROWGER_BIND: '::',
    STROWGER_LOG: 'loud',
    STROWGER_TLS_CERT: '/tmp/cert.pem',
    STROWGER_S3_ENDPOINT: 'https://store.example',
    STROWGER_SIP_PORT: '5066',
    STROWGER_OTLP_URL: 'user:pa55word@collector',
    STROWGER_MASTER_KEY: 'pa55word',
  }
  const told = (work: () => unknown): string => {
    try {
      work()
    } catch (error) {
      return String((error as Error).message)
    }
    return ''
  }
  const said = told(() => load(env)).split('\n')
  const first = ['HTTP_PORT=80a', 'BIND=', 'LOG=loud', 'TLS_CERT']
  const wrong = [...first, 'S3_BUCKET', 'SIP_PORT=5066', 'OTLP_URL=', 'MASTER_KEY']
  t.equal(said.length, wrong.length, said.join(' | '))
  for (const name of wrong)
    t.ok(
      said.some(line => line.startsWith(`STROWGER_${name}`)),
      name,
    )
  t.notMatch(said.join(), /pa55word/)
})

t.test('the sandbox carrier runs on a machine of its own, elsewhere only when it is asked for', async t => {
  t.equal(load().sandbox, true)
  t.equal(load({ STROWGER_SANDBOX: 'off' }).sandbox, false)
  for (const STROWGER_HOST of ['192.0.2.1', '2001:db8::1']) {
    t.equal(load({ STROWGER_HOST }).sandbox, false, STROWGER_HOST)
    t.equal(load({ STROWGER_HOST, STROWGER_SANDBOX: 'on' }).sandbox, true, STROWGER_HOST)
  }
})

t.test('serves one address of each family, and uses the first for the base URL', async t => {
  t.equal(load().second, null)
  const both = load({ STROWGER_HOST: '192.0.2.1, 2001:db8::1' })
  t.match(both, { host: '192.0.2.1', bind: '192.0.2.1', second: { host: '2001:db8::1', bind: '2001:db8::1' } })
  const bound = load({ STROWGER_HOST: '2001:db8::1,192.0.2.1', STROWGER_BIND: '0.0.0.0,::' })
  t.match(bound, { host: '2001:db8::1', bind: '::', second: { host: '192.0.2.1', bind: '0.0.0.0' } })
  t.equal(bound.base_url, 'http://[2001:db8::1]:8080')
  for (const env of [
    { STROWGER_HOST: '192.0.2.1,192.0.2.2' },
    { STROWGER_HOST: '192.0.2.1,2001:db8::1,::1' },
    { STROWGER_HOST: ',' },
    { STROWGER_HOST: '192.0.2.1,2001:db8::1', STROWGER_BIND: '0.0.0.0' },
    { STROWGER_BIND: '::' },
  ]) {
    const [name = ''] = Object.keys(env).slice(-1)
    t.throws(() => load(env), { name: 'ConfigError', message: new RegExp(name) }, JSON.stringify(env))
  }
})

t.test('refuses two services on one port, and SIP inside the RTP ports', async t => {
  t.throws(() => load({ STROWGER_HTTP_PORT: '5066' }), { message: /STROWGER_HTTP_PORT=5066.*STROWGER_WS_PORT/ })
  t.throws(() => load({ STROWGER_SIP_PORT: '20100' }), { message: /STROWGER_SIP_PORT=20100.*STROWGER_RTP_PORTS/ })
})

t.test('with HTTPS, the public address is https, and the HTTP port is bound to this machine alone', async t => {
  const open = load({ STROWGER_HOST: '192.0.2.1', STROWGER_BIND: '0.0.0.0' })
  t.match([open.base_url, httpBindOf(open)], ['http://192.0.2.1:8080', '0.0.0.0'])
  const secure = load({ STROWGER_HOST: '192.0.2.1', STROWGER_BIND: '0.0.0.0', STROWGER_HTTPS_PORT: '8443' })
  t.match([secure.base_url, httpBindOf(secure)], ['https://192.0.2.1:8443', '127.0.0.1'])
  t.equal(httpBindOf(load({ STROWGER_HOST: '2001:db8::1', STROWGER_BIND: '::', STROWGER_HTTPS_PORT: '8443' })), '::1')
  t.equal(localUrl(open), 'http://127.0.0.1:8080')
  t.equal(localUrl(load({ STROWGER_HOST: '2001:db8::1' })), 'http://[2001:db8::1]:8080')
  t.throws(() => load({ STROWGER_HTTPS_PORT: '8080' }), { message: /STROWGER_HTTP_PORT=8080.*STROWGER_HTTPS_PORT/ })
})

t.test(
  'behind a proxy of this machine the HTTP port is on loopback, where the guides name it to the proxy',
  async t => {
    const set = { HOST: '192.0.2.1', BASE_URL: 'https://voice.example.com', TRUSTED_PROXIES: 'loopback' }
    const place = (change: Readonly<Record<string, string>>) => {
      const all = Object.entries({ ...set, ...change }).map(([name, value]) => [`STROWGER_${name}`, value])
      const config = load(Object.fromEntries(all))
      return [httpBindOf(config), localUrl(config)]
    }
    t.same(place({}), ['127.0.0.1', 'http://127.0.0.1:8080'])
    t.same(place({ BIND: '10.0.0.5' }), ['127.0.0.1', 'http://127.0.0.1:8080'], 'behind NAT')
    t.same(place({ TRUSTED_PROXIES: '127.0.0.1,::1' }), ['127.0.0.1', 'http://127.0.0.1:8080'])
    t.same(place({ HOST: '2001:db8::1,192.0.2.1' }), ['::1', 'http://[::1]:8080'])
    t.same(place({ HOST: '127.0.0.2' }), ['127.0.0.2', 'http://127.0.0.2:8080'])

    const reached = ['192.0.2.1', 'http://192.0.2.1:8080']
    t.same(place({ BASE_URL: 'http://voice.example.com' }), reached, 'nothing else carries TLS')
    t.same(place({ TRUSTED_PROXIES: 'none' }), reached)
    t.same(place({ TRUSTED_PROXIES: 'loopback,192.0.2.1' }), reached, 'a proxy comes from elsewhere, too')
    t.same(place({ BIND: '0.0.0.0' }), ['0.0.0.0', 'http://127.0.0.1:8080'], 'the operator wants every address')
  },
)

t.test('refuses an HTTP port that browsers block', async t => {
  t.throws(() => load({ STROWGER_HTTP_PORT: '6000' }), { message: /STROWGER_HTTP_PORT=6000: browsers refuse/ })
})

t.test('creates the master key once, readable only by its owner', async t => {
  const first = load().master_key
  t.equal(first.length, 32)
  t.same(load().master_key, first)
  t.equal(statSync(join(folder, 'master.key')).mode & 0o777, 0o600)
  const given = 'ab'.repeat(32)
  t.equal(load({ STROWGER_MASTER_KEY: given }).master_key.toString('hex'), given)
})

t.test('redacts secrets in log lines down to the third level', async t => {
  let written = ''
  const sink = new Writable({
    write(chunk, _encoding, done) {
      written += chunk
      done()
    },
  })
  const log = createLog('test', { log_level: 'info' }, sink)
  log.info(
    { auth_token: 'T0KEN', request: { headers: { authorization: 'Basic T0KEN', 'proxy-authorization': 'T0KEN' } } },
    'x',
  )
  log.info({ credential: { password: 'T0KEN', ha1_md5: 'T0KEN' }, api_key: 'T0KEN' }, 'y')
  t.notMatch(written, /T0KEN/)
  t.match(written, /\[secret\]/)
})

t.test('unseals a value only with its key and only unmodified', async t => {
  const key = Buffer.alloc(32, 1)
  const sealed = seal(key, 'sk_live_token')
  t.equal(unseal(key, sealed), 'sk_live_token')
  t.not(seal(key, 'sk_live_token'), sealed)
  t.throws(() => unseal(Buffer.alloc(32, 2), sealed))
  t.throws(() => unseal(key, `${sealed.slice(0, -2)}AA`))
  t.throws(() => unseal(key, 'plain'))
})

t.test('matches passwords by their hash and compares secrets of different lengths', async t => {
  const stored = await hashPassword('correct horse')
  t.equal(await passwordMatches('correct horse', stored), true)
  t.equal(await passwordMatches('correct horsf', stored), false)
  t.equal(await passwordMatches('x', 'not a hash'), false)
  const cheap = await hashPassword('correct horse', 5)
  t.match(cheap, /^scrypt\.5\.[\w-]{22}\.[\w-]{43}$/, 'it names its cost')
  t.equal(await passwordMatches('correct horse', cheap), true)
  t.equal(await passwordMatches('correct horsf', cheap), false)
  for (const cost of ['6', '0', '21', '1e1000', ''])
    t.equal(await passwordMatches('correct horse', cheap.replace('.5.', `.${cost}.`)), false, `cost "${cost}"`)
  t.equal(sameSecret('abc', 'abc'), true)
  t.equal(sameSecret('abc', 'abcd'), false)
})

t.test('HA1 matches the example in RFC 7616 section 3.9.1', async t => {
  const [user, realm, password] = ['Mufasa', 'http-auth@example.org', 'Circle of Life'] as const
  t.equal(digestHa1('md5', user, realm, password), '3d78807defe7de2157e2b0b6573a855f')
  t.equal(
    digestHa1('sha256', user, realm, password),
    '7987c64c30e25f1b74be53f966b49b90f2808aa92faf9a00262392d7b4794232',
  )
})
