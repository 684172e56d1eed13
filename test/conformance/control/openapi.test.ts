import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { queryOf } from '../../../control/http/query.ts'
import { isRefusal } from '../../../control/http/reply.ts'
import type { Route } from '../../../control/http/route.ts'
import { fieldErrors } from '../../../control/http/validate.ts'
import { API_EXAMPLES, OPERATOR_EXAMPLES } from '../../../control/openapi/examples.ts'
import { OPERATOR_ROUTES } from '../../../control/operator/index.ts'
import { V1_ROUTES } from '../../../control/v1/index.ts'
import { controlPlane } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'
import { nameOf } from './recipes.ts'

/** Tests the OpenAPI document as third parties use it: with a validator, a client generator and the examples. */

const w = await controlPlane(t)
const root = fileURLToPath(new URL('../../../../', import.meta.url))
const AGAIN = 'record the examples again: npm run examples'

t.test('the documents of all three APIs are valid OpenAPI 3.1', async t => {
  for (const path of ['/v1', '/operator/v1', '/2010-04-01']) {
    const document = (await w.ask('GET', `${path}/openapi.json`, { key: null })).body
    const validator = new Validator()
    const { valid, errors } = await validator.validate(document)
    t.ok(valid, `${path}: ${JSON.stringify(errors)?.slice(0, 2000)}`)
    t.equal(validator.version, '3.1')
  }
})

t.test('every operation has an example that fits its schemas', async t => {
  const apis: [readonly Route[], typeof API_EXAMPLES][] = [
    [V1_ROUTES, API_EXAMPLES],
    [OPERATOR_ROUTES, OPERATOR_EXAMPLES],
  ]
  const all = apis.flatMap(([routes, examples]) => {
    t.same(Object.keys(examples).sort(), routes.map(nameOf).sort(), AGAIN)
    return routes.map(route => ({ route, example: examples[nameOf(route)] }))
  })
  for (const { route, example } of all) {
    if (!example) continue
    const where = nameOf(route)
    if (route.body) t.same(fieldErrors(route.body, example.body), [], `${where}: request; ${AGAIN}`)
    t.notOk(isRefusal(await queryOf(example.query ?? '', route.query)), `${where}: query`)
    const schema = route.replies[example.status]
    t.not(schema, undefined, `${where}: the route declares ${example.status}`)
    if (schema) t.same(fieldErrors(schema, example.response), [], `${where}: answer; ${AGAIN}`)
  }
})

/** Fields without the rule for text: a parser checks them, they must match a stored value, or no screen shows them. */
const READ_ELSEWHERE = [
  /(^|_)(ids?|password)$/,
  /^(confirm_name|time_zone|identity|codecs|called|caller|default_caller|value)$/,
  /^(sources|cidr|sip_uri|tls_fingerprint|csv|markup|content)$/,
]

t.test('every text of a request refuses characters that deceive a reader', async t => {
  const accepted: string[] = []
  const look = (schema: Leaf, name: string, where: string): void => {
    if (schema.type === 'string' && !schema.enum && !schema.format && !READ_ELSEWHERE.some(own => own.test(name)))
      for (const text of ['a\u202eb', 'a\u001b[2J', '\u200cadmin'])
        if (fieldErrors(schema as Parameters<typeof fieldErrors>[0], text).length === 0)
          accepted.push(`${where}: ${name}`)
    for (const [key, value] of Object.entries(schema.properties ?? {})) look(value, key, where)
    for (const value of [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])]) look(value, name, where)
  }
  for (const route of [...V1_ROUTES, ...OPERATOR_ROUTES])
    if (route.body) look(route.body as unknown as Leaf, '', nameOf(route))
  t.same([...new Set(accepted)], [])
})

/** The parts of a JSON Schema in which a text may stand. */
interface Leaf {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly properties?: Readonly<Record<string, Leaf>>
  readonly anyOf?: readonly Leaf[]
  readonly items?: Leaf
}

/** The part of the generated client that the test uses. Each call returns status and data. */
type Answered<T> = Promise<{ readonly status: number; readonly data: T; readonly headers: Headers }>
interface Client {
  readonly defaults: { baseUrl: string; headers?: Record<string, string> }
  postTrunks(key: string, body: object, headers?: object): Answered<{ digest_password: string; trunk: { id: string } }>
  postOutboundPolicies(key: string, body: object, headers?: object): Answered<{ id: string }>
  putTrunksByTrunkIdOutboundPolicy(id: string, etag: string, body: object, headers?: object): Answered<object>
  getTrunksByTrunkId(
    id: string,
    headers?: object,
  ): Answered<{
    outbound_policy: { id: string; name: string }
    authentication: { mode: string; digest_identities: { username: string; realm: string }[] }
  }>
  getTrunks(query?: object): Answered<{ data: { id: string }[] }>
}

t.test(
  'a client from a public generator creates a trunk and a policy, attaches the policy and reads it back',
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'strowger-client-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'openapi.json'), (await w.ask('GET', '/v1/openapi.json', { key: null })).text)
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const source = join(folder, 'client.ts')
    await promisify(execFile)(join(root, 'node_modules/.bin/oazapfts'), [join(folder, 'openapi.json'), source])
    t.ok(existsSync(source))
    const client = await compiled(t, source)
    client.defaults.baseUrl = `${w.base_url}/v1`
    client.defaults.headers = { Authorization: `Bearer ${w.key}` }

    const created = await client.postTrunks('client-1', {
      name: 'Generated',
      direction: 'both',
      auth_mode: 'digest',
      sources: [],
      targets: [],
      codecs: ['PCMA', 'OPUS'],
      media_security: 'rtp',
      require_tls: false,
      source_validation: 'relaxed',
    })
    t.equal(created.status, 201)
    t.match(created.data.digest_password, /^\w{24}$/)
    const policy = await client.postOutboundPolicies('client-2', {
      name: 'From a client',
      recording_channels: 2,
      recording_mode: 'off',
      recording_retention_days: 30,
      concurrency: 4,
    })
    t.equal(policy.status, 201)
    const etag = created.headers.get('etag') ?? ''
    const { id } = created.data.trunk
    const attached = await client.putTrunksByTrunkIdOutboundPolicy(id, etag, { policy_id: policy.data.id })
    t.equal(attached.status, 200)
    const read = await client.getTrunksByTrunkId(id)
    t.equal(read.status, 200)
    t.match(read.data.outbound_policy, { id: policy.data.id, name: 'From a client' })
    t.match(read.data.authentication, { mode: 'digest', digest_identities: [{ realm: 'voice.test' }] })
    t.ok((await client.getTrunks({})).data.data.some(trunk => trunk.id === id))
  },
)

interface Compiler {
  readonly ScriptTarget: { readonly ES2022: number }
  readonly ModuleKind: { readonly NodeNext: number }
  createProgram(files: string[], options: object): { emit(): unknown }
  getPreEmitDiagnostics(
    program: object,
  ): readonly { readonly messageText: unknown; readonly file?: { fileName: string } }[]
}

/** Compiles the client with the generator's own compiler, because this repository's has no JavaScript API. */
async function compiled(t: { same(a: unknown, b: unknown, why: string): unknown }, source: string): Promise<Client> {
  const generator = createRequire(join(root, 'node_modules/oazapfts/package.json'))
  const ts = generator('typescript') as Compiler
  const options = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    strict: true,
    skipLibCheck: true,
    preserveSymlinks: true,
    types: [],
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  }
  const program = ts.createProgram([source], options)
  const wrong = ts.getPreEmitDiagnostics(program).map(({ messageText, file }) => [file?.fileName, messageText])
  t.same(wrong, [], 'the client compiles in strict mode')
  program.emit()
  return (await import(pathToFileURL(source.replace(/\.ts$/, '.js')).href)) as Client
}

t.test('the API reference loads nothing from other servers', async t => {
  const get = (path: string, headers: Record<string, string> = {}) => fetch(`${w.base_url}${path}`, { headers })
  const page = await get('/docs')
  t.equal(page.status, 200)
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  const policy = page.headers.get('content-security-policy') ?? ''
  t.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/)
  t.notMatch(policy, /unsafe|https?:/)
  const html = await page.text()
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link)
  t.ok(
    links.every(link => link.startsWith('/') || link === 'data:,'),
    'no address of another server',
  )
  for (const link of links.filter(link => link.startsWith('/'))) {
    const file = await get(link)
    t.equal(file.status, 200, link)
    t.match(file.headers.get('content-type'), /charset=utf-8/, link)
  }
  const script = '/docs/assets/swagger-ui-bundle.js'
  const whole = await get(script, { 'Accept-Encoding': 'identity' })
  t.equal(whole.headers.get('content-encoding'), null)
  const expected = readFileSync(join(root, 'node_modules/swagger-ui-dist/swagger-ui-bundle.js'))
  t.ok(Buffer.from(await whole.arrayBuffer()).equals(expected))
  const etag = whole.headers.get('etag') ?? ''
  t.equal((await get(script, { 'If-None-Match': etag })).status, 304)
  t.equal((await get('/docs/assets/../../package.json')).status, 404)
  t.equal((await get('/docs/assets/other.js')).status, 404)
})
