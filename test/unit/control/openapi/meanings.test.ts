import { MANAGEMENT, OPERATOR, openApiDocument } from '../../../../control/openapi/document.ts'
import { voiceDocument } from '../../../../control/openapi/voice.ts'
import { OPERATOR_ROUTES } from '../../../../control/operator/index.ts'
import { V1_ROUTES } from '../../../../control/v1/index.ts'
import { VOICE_ROUTES } from '../../../../control/voice/index.ts'
import t from '../../../support/harness/index.ts'

const about = { base_url: 'https://strowger.test', version: '1.0.0' }
const DOCUMENTS = {
  '/v1': openApiDocument(V1_ROUTES, about, MANAGEMENT),
  '/operator/v1': openApiDocument(OPERATOR_ROUTES, about, OPERATOR),
  '/2010-04-01': voiceDocument(VOICE_ROUTES, about),
}

/** A property or a parameter, and where it stands. */
interface Described {
  readonly where: string
  readonly name: string
  readonly description: unknown
  readonly schema: Json
}

type Json = Readonly<Record<string, unknown>>

/** Lists every property of every schema, and every parameter of every operation. */
function* describedIn(value: unknown, where: string): Generator<Described> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value)) {
    if (key === 'example' || key === 'x-codeSamples') continue
    if (key === 'properties')
      for (const [name, schema] of Object.entries(item as Json))
        yield { where: `${where}.${name}`, name, description: (schema as Json)['description'], schema: schema as Json }
    if (key === 'parameters' && Array.isArray(item))
      for (const { name, description, schema } of item as readonly {
        name: string
        description?: unknown
        schema: Json
      }[])
        yield { where: `${where} ?${name}`, name, description, schema }
    yield* describedIn(item, key === 'properties' ? where : `${where}/${key}`)
  }
}

const all = Object.entries(DOCUMENTS).flatMap(([api, document]) => [...describedIn(document, api)])

t.test('every property and parameter has a description', async t => {
  t.ok(all.length > 2000)
  const bad = all.filter(({ description }) => typeof description !== 'string' || description.length < 4)
  t.same(
    bad.map(({ where, description }) => `${where}: ${description}`),
    [],
    'describe it beside its schema, or in control/openapi/meanings',
  )
})

t.test('no description says what null means where the value is never null', async t => {
  const typed = all.filter(({ schema }) => ['type', 'anyOf', '$ref'].some(key => key in schema))
  const bad = typed.filter(
    ({ description, schema }) => /\bnull\b/i.test(String(description)) && !JSON.stringify(schema).includes('"null"'),
  )
  t.same(
    bad.map(({ where, description }) => `${where}: ${description}`),
    [],
  )
})

t.test('the reason of an operator’s request is free text, not a code', async t => {
  const reasons = all.filter(({ where }) => /^\/operator\/v1.*Request\.reason$/.test(where))
  t.ok(reasons.length > 10)
  t.same(
    reasons.filter(({ description }) => /\bcode\b/i.test(String(description))).map(({ where }) => where),
    [],
  )
})
