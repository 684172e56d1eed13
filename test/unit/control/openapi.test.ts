import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Route } from '../../../control/http/route.ts'
import { fieldErrors } from '../../../control/http/validate.ts'
import { OPERATOR, openApiDocument } from '../../../control/openapi/document.ts'
import { OPERATOR_ROUTES } from '../../../control/operator/index.ts'
import { CONSOLE_ROUTES } from '../../../control/session/index.ts'
import { V1_ROUTES } from '../../../control/v1/index.ts'
import t from '../../support/harness/index.ts'

type Json = Record<string, unknown>

const document = openApiDocument(V1_ROUTES, { base_url: 'https://strowger.test', version: '1.0.0' }) as Json & {
  paths: Record<string, Record<string, Json>>
  components: { schemas: Record<string, Json> }
}

t.test('every endpoint of the specification is served, except the listed ones', async t => {
  const file = new URL('../../../../fixtures/api/management-endpoints.json', import.meta.url)
  const { endpoints, missing } = JSON.parse(readFileSync(file, 'utf8')) as { endpoints: string[]; missing: string[] }
  const served = new Set(V1_ROUTES.map(route => `${route.method.toUpperCase()} ${route.path}`))
  t.same(
    endpoints.filter(endpoint => !served.has(endpoint)),
    missing,
  )
})

t.test('every operation has a unique id, a summary, its parameters and its answers', async t => {
  const ids: unknown[] = []
  for (const [path, operations] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(operations)) {
      const where = `${method} ${path}`
      ids.push(operation['operationId'])
      t.match(operation['summary'], /^[A-Z].{5,}/, where)
      const named = (operation['parameters'] as { name: string; in: string }[]).filter(one => one.in === 'path')
      t.same(
        named.map(one => `{${one.name}}`),
        path.match(/\{\w+\}/g) ?? [],
        where,
      )
      const statuses = Object.keys(operation['responses'] as object)
      t.ok(statuses.includes('401') && statuses.some(status => status.startsWith('2')), where)
    }
  t.equal(new Set(ids).size, V1_ROUTES.length)
})

const operators = openApiDocument(OPERATOR_ROUTES, { base_url: '', version: '1.0.0' }, OPERATOR) as typeof document

t.test('every reference resolves, and no two schemas share a name', async t => {
  for (const made of [document, operators])
    for (const [, name] of JSON.stringify(made).matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      t.ok(name !== undefined && name in made.components.schemas, String(name))
  const shapes = new Map<string, string>()
  const look = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) look(item)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    const { title } = value as { title?: string }
    if (typeof title === 'string' && (value as Json)['type'] === 'object') {
      const shape = JSON.stringify(value)
      t.equal(shapes.get(title) ?? shape, shape, `one ${title}`)
      shapes.set(title, shape)
    }
    for (const item of Object.values(value)) look(item)
  }
  const routes: readonly Route[] = [...V1_ROUTES, ...CONSOLE_ROUTES, ...OPERATOR_ROUTES]
  for (const route of routes) look(JSON.parse(JSON.stringify([route.body ?? null, ...Object.values(route.replies)])))
})

t.test('every schema of the document is JSON Schema 2020-12', async t => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'https://strowger.test/openapi', ...document })
  for (const name of Object.keys(document.components.schemas))
    t.doesNotThrow(() => ajv.compile({ $ref: `https://strowger.test/openapi#/components/schemas/${name}` }), name)
})

t.test('every schema that requests are checked with is JSON Schema 2020-12', async t => {
  const ajv = new Ajv2020()
  for (const route of [...V1_ROUTES, ...CONSOLE_ROUTES, ...OPERATOR_ROUTES] as readonly Route[])
    for (const schema of [route.body, route.query])
      if (schema) t.ok(ajv.validateSchema(schema), `${route.method} ${route.path}: ${ajv.errorsText()}`)
})

t.test('every example fits its schema', async t => {
  for (const route of V1_ROUTES)
    if (route.example !== undefined && route.body) t.same(fieldErrors(route.body, route.example), [], route.path)
})

t.test('a field of the specification that never has a value says so in the reference', async t => {
  const described = (schema: string, field: string): unknown => {
    const { properties } = document.components.schemas[schema] as { properties: Record<string, Json> }
    return properties[field]?.['description']
  }
  t.match(described('AuditEvent', 'ticket_ref'), /Always null: the platform keeps no tickets/)
  t.match(described('FieldChange', 'unchanged'), /Always false/)
  t.match(described('Problem', 'expensive_filter'), /Reserved/)
  t.match(described('TrunkSummary', 'parent_name'), /Always null: a trunk has no parent/)
  t.match(described('TrunkSummary', 'status'), /`draft` is reserved and never shown/)
  t.match(described('VoiceAccount', 'status'), /`pending` is never shown/)
})

t.test('every route that changes something writes to the audit trail', async t => {
  // A dry run, a check or a comparison changes nothing. Signing in or out changes no configuration.
  const silent = [
    '/admission/dry-run',
    '/markup/check',
    '/price-books/diff',
    '/cost-books/diff',
    '/session',
    '/session/totp',
  ]
  for (const route of [...V1_ROUTES, ...CONSOLE_ROUTES, ...OPERATOR_ROUTES] as readonly Route[])
    if (route.method !== 'get' && !silent.includes(route.path)) t.ok(route.audit, `${route.method} ${route.path}`)
})
