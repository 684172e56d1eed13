import { connect } from 'node:net'
import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { anyCharacter, fc } from '../../../support/properties.ts'

/** Tests that the voice-calls API refuses any nonsense with a documented error, never with a 5xx. */

const FIELDS = [
  'To',
  'From',
  'Url',
  'Twiml',
  'InlineMarkup',
  'Method',
  'StatusCallback',
  'StatusCallbackEvent',
  'Timeout',
  'CallerId',
  'TimeLimit',
  'SendDigits',
  'Record',
  'MachineDetection',
  'MachineDetectionTimeout',
  'Status',
  'FallbackUrl',
  '__proto__',
  'constructor',
]
const VALUES = [
  '+2348030000001',
  '+2342010000001',
  '2342010000001',
  'http://a.test/?x=1#rc=9',
  'http://user:%zz@a.test/',
  'http://[::1]:99999/',
  'completed',
  '<Response/>',
  '<Response><Say>x</Say></Response>',
  '<?xml version="1.1"?><Response/>',
  '<!DOCTYPE r [<!ENTITY a "b">]><Response>&a;</Response>',
  '-1',
  '1e9',
  '99999999999999999999',
  'true',
  'Enable',
  '\u0000',
  '\r\nX-Injected: 1',
  '',
]

const value = fc.oneof(fc.constantFrom(...VALUES), fc.string({ unit: anyCharacter, maxLength: 60 }))
const form = fc.array(fc.tuple(fc.oneof(fc.constantFrom(...FIELDS), fc.string({ maxLength: 12 })), value), {
  maxLength: 8,
})
const paths = [
  '/Calls.json',
  '/Calls',
  '/Calls/{sid}.json',
  '/Calls/{sid}',
  '/Calls/{sid}/Recordings.json',
  '/Calls/{sid}/Events',
]
const path = fc.oneof(
  fc.constantFrom(...paths),
  fc.string({ unit: 'grapheme-ascii', maxLength: 30 }).map(text => `/${encodeURI(text).replace(/[?#]/g, '')}`),
)

t.test('random forms, queries and paths never get a 5xx', async t => {
  const w = await controlPlane(t)
  await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(Date.now()) })
  const good = { To: '+2348030000001', From: w.demo.numbers[0] ?? '', Twiml: '<Response/>' }
  const sid = (await w.voice('POST', '/Calls.json', good)).body.sid
  const methods = fc.constantFrom('GET', 'POST', 'DELETE', 'PUT')
  await fc.assert(
    fc.asyncProperty(methods, path, form, fc.boolean(), async (method, template, fields, as_query) => {
      const query = new URLSearchParams(fields.map(([name, text]): [string, string] => [name, text]))
      const target = template.replace('{sid}', sid) + (as_query ? `?${query}` : '')
      const { account_sid, auth_token } = w.demo
      const answer = await fetch(`${w.base_url}/2010-04-01/Accounts/${account_sid}${target}`, {
        method,
        headers: { Authorization: `Basic ${Buffer.from(`${account_sid}:${auth_token}`).toString('base64')}` },
        ...(method === 'POST' && !as_query ? { body: query } : {}),
      })
      const text = await answer.text()
      const said = `${method} ${target} ${query} -> ${answer.status} ${text}`
      if (answer.status >= 500 || answer.headers.has('x-injected')) throw new Error(said)
      if (answer.status < 400) return
      const body = JSON.parse(text)
      if (!/^req_/.test(answer.headers.get('x-request-id') ?? '')) throw new Error(said)
      if (typeof body.message !== 'string' || typeof body.more_info !== 'string' || body.status !== answer.status)
        throw new Error(said)
    }),
    { numRuns: 1500 },
  )
  t.pass('1500 requests')
})

t.test('malformed forms are refused, and the next request is served', async t => {
  const w = await controlPlane(t)
  const { account_sid, auth_token } = w.demo
  const basic = Buffer.from(`${account_sid}:${auth_token}`).toString('base64')
  const path = `/2010-04-01/Accounts/${account_sid}/Calls.json`
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${basic}\r\nConnection: close\r\n`
  const form = 'Content-Type: application/x-www-form-urlencoded\r\n'
  const raw = (bytes: string | Buffer): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(w.base_url).port), '127.0.0.1', () => socket.write(bytes))
      let text = ''
      socket.on('data', chunk => {
        text += chunk.toString('latin1')
      })
      socket.on('close', () => resolve(text))
      socket.on('error', reject)
    })
  const rows: [string, string | Buffer, RegExp][] = [
    [
      'not UTF-8',
      Buffer.concat([Buffer.from(`${head}${form}Content-Length: 4\r\n\r\nTo=`), Buffer.from([0xff])]),
      /^HTTP\/1.1 400.*20001/s,
    ],
    ['compressed', `${head}${form}Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc`, /^HTTP\/1.1 415.*20422/s],
    ['no content type', `${head}Content-Length: 3\r\n\r\nabc`, /^HTTP\/1.1 415.*20422/s],
    ['announced too large', `${head}${form}Content-Length: 2000000\r\n\r\nTo=1`, /^HTTP\/1.1 413.*20413/s],
    [
      'two Authorization headers',
      `${head}Authorization: Basic x\r\nContent-Length: 0\r\n\r\n`,
      /^HTTP\/1.1 401.*unauthenticated/s,
    ],
    ['two lengths', `${head}${form}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, /^HTTP\/1.1 400/],
    [
      '2000 fields',
      `${head}${form}Content-Length: 7999\r\n\r\n${Array(2000).fill('a=1').join('&')}`,
      /^HTTP\/1.1 400.*20001/s,
    ],
  ]
  for (const [name, bytes, expected] of rows) t.match(await raw(bytes), expected, name)
  t.equal((await w.voice('GET', '/Calls.json')).status, 200)
  t.equal((await w.voice('GET', `/Calls/${newId.call()}`)).status, 404)
})
