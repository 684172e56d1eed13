import { REASONS, type Reason } from '../../core/domain/reasons/index.ts'
import type { Route } from '../http/route.ts'
import type { TSchema } from '../http/schema.ts'
import { API_EXAMPLES, type ApiExample, OPERATOR_EXAMPLES } from './examples.ts'
import { PROBLEM } from './problem.ts'
import { curlSample, fetchSample } from './samples.ts'
import { type JsonSchema, parameterSchema, plain, Schemas } from './schemas.ts'

const COMMON_REASONS: readonly Reason[] = ['unauthenticated', 'rate_limited', 'internal', 'state_unavailable']

/** What the documents of the JSON APIs differ in. */
interface ApiText {
  readonly title: string
  readonly description: string
  readonly prefix: string
  readonly key: string
  /** Requests and answers by method and path. */
  readonly examples: Readonly<Record<string, ApiExample>>
}

export const MANAGEMENT: ApiText = {
  title: 'Strowger management API',
  description:
    'SIP trunking and programmable voice. Every error is a problem document (RFC 9457). A GET or HEAD whose answer has ' +
    'an ETag takes If-None-Match (304) and If-Match (412). The ETag of a resource is its saved revision: what the platform ' +
    'only observes, such as how far the running nodes have come, does not change it.',
  prefix: '/v1',
  key: 'An API key: sk_live_<public id>_<secret>.',
  examples: API_EXAMPLES,
}

export const OPERATOR: ApiText = {
  title: 'Strowger operator API',
  description: 'Customers, money, numbers and keys of an installation. Every error is a problem document (RFC 9457).',
  prefix: '/operator/v1',
  key: "An operator's key: ok_live_<public id>_<secret>.",
  examples: OPERATOR_EXAMPLES,
}

/** Builds the OpenAPI 3.1 document of an API from the schemas that validate its requests. */
export function openApiDocument(
  routes: readonly Route[],
  about: { readonly base_url: string; readonly version: string },
  api: ApiText = MANAGEMENT,
): JsonSchema {
  const schemas = new Schemas({ Problem: PROBLEM })
  const paths: Record<string, JsonSchema> = {}
  for (const route of routes) {
    const path = paths[route.path] ?? {}
    paths[route.path] = path
    path[route.method] = operation(route, api, schemas)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: api.title,
      version: about.version,
      description: api.description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: `${about.base_url}${api.prefix}` }],
    security: [{ api_key: [] }],
    tags: [...new Set(routes.map(tagOf))].map(name => ({ name })),
    paths,
    components: {
      securitySchemes: {
        api_key: { type: 'http', scheme: 'bearer', description: api.key },
      },
      schemas: schemas.made,
    },
  }
}

function operation(route: Route, api: ApiText, schemas: Schemas): JsonSchema {
  const example = api.examples[`${route.method} ${route.path}`]
  return {
    operationId: operationId(route),
    tags: [tagOf(route)],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    ...(route.scope ? { 'x-scope': route.scope } : {}),
    ...(route.or_scope ? { 'x-or-scope': route.or_scope } : {}),
    parameters: parametersOf(route, example),
    ...(route.body
      ? {
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: schemas.shown(route.body),
                ...exampleOf(example?.body),
              },
            },
          },
        }
      : {}),
    responses: responsesOf(route, schemas, example),
    'x-codeSamples': samplesOf(route, api.prefix, example),
  }
}

function samplesOf(route: Route, prefix: string, example: ApiExample | undefined) {
  const body = example ? example.body : route.example
  const request = {
    method: route.method.toUpperCase(),
    path: `${prefix}${route.path}`,
    ...(example?.query === undefined ? {} : { query: example.query }),
    ...(route.if_match ? { variables: { 'If-Match': 'revision' } } : {}),
    idempotent: route.method !== 'get',
    ...(body === undefined ? {} : { body }),
  }
  return [curlSample(request), fetchSample(request)]
}

/**
 * Returns the operation id of a route: `postTrunksByIdSuspend` for `post /trunks/{trunk_id}/suspend`. It does not
 * depend on the summary, so that a new wording does not change it.
 */
function operationId(route: Route): string {
  const words = route.path
    .split('/')
    .filter(word => word !== '')
    .map(word => (word.startsWith('{') ? `by-${word.slice(1, -1)}` : word))
  return [route.method, ...words].join('-').replace(/[-_.](\w)/g, (_, letter: string) => letter.toUpperCase())
}

const tagOf = (route: Route): string => route.path.split('/')[1] ?? ''

function parametersOf(route: Route, example: ApiExample | undefined): JsonSchema[] {
  const path = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    ...parameterSchema('path', name ?? '', { type: 'string' }, true),
    ...exampleOf(example?.params?.[name ?? '']),
  }))
  const asked = new URLSearchParams(example?.query)
  const required = new Set(route.query?.required ?? [])
  const query = Object.entries(route.query?.properties ?? {}).map(([name, schema]) => ({
    ...parameterSchema('query', name, plain(schema as TSchema), required.has(name)),
    ...exampleOf(queryExample(asked.get(name), schema as TSchema)),
  }))
  return [...path, ...query, ...headersOf(route)]
}

function queryExample(text: string | null, schema: TSchema): unknown {
  if (text === null) return undefined
  return (schema as { type?: string }).type === 'integer' ? Number(text) : text
}

function headersOf(route: Route): JsonSchema[] {
  const headers: JsonSchema[] = []
  const text = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength })
  if ((route.context ?? 'project') === 'project')
    headers.push({
      name: 'X-Project-ID',
      in: 'header',
      required: false,
      description: 'Project id; may be left out while the organization has one active project.',
      schema: text(64),
    })
  if (route.if_match)
    headers.push({
      name: 'If-Match',
      in: 'header',
      required: true,
      description: `The quoted revision of the ${route.if_match} that was read last.`,
      schema: text(20),
    })
  if (route.method !== 'get')
    headers.push({
      name: 'Idempotency-Key',
      in: 'header',
      required: route.idempotent === true,
      description: 'A retry with the same key repeats the outcome for 24 hours.',
      schema: text(128),
    })
  return headers
}

function responsesOf(route: Route, schemas: Schemas, example: ApiExample | undefined): JsonSchema {
  const responses: JsonSchema = {}
  for (const [status, schema] of Object.entries(route.replies))
    responses[status] = {
      description: route.summary,
      headers: { 'X-Request-ID': { schema: { type: 'string' } } },
      ...contentOf(route, Number(status), schema, schemas, example),
    }
  for (const [status, reasons] of problemsOf(route))
    responses[status] = {
      description: `A problem with code ${[...reasons].join(', ')}`,
      'x-codes': [...reasons],
      content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
    }
  return responses
}

function contentOf(
  route: Route,
  status: number,
  schema: TSchema | null,
  schemas: Schemas,
  example: ApiExample | undefined,
): JsonSchema {
  if (schema) {
    const shown = example?.status === status ? exampleOf(example.response) : {}
    return { content: { 'application/json': { schema: schemas.shown(schema), ...shown } } }
  }
  if (route.produces === undefined || status >= 300) return {}
  return { content: { [route.produces]: { schema: { type: 'string', format: 'binary' } } } }
}

const exampleOf = (example: unknown): JsonSchema => (example === undefined ? {} : { example })

/** Returns the reasons that a route may refuse with, by status. */
function problemsOf(route: Route): Map<string, Set<Reason>> {
  const reasons = new Set<Reason>([...COMMON_REASONS, ...(route.refusals ?? [])])
  const add = (...more: Reason[]): void => more.forEach(reason => void reasons.add(reason))
  if (route.scope) add('scope_required', 'role_forbidden')
  if (route.roles) add('role_forbidden')
  if ((route.context ?? 'project') === 'project')
    add('project_context_required', 'project_invalid', 'project_not_found')
  if (route.path.includes('{')) add('not_found')
  if (route.query || route.body) add('validation_failed')
  if (route.if_match) add('precondition_required', 'if_match_invalid', 'revision_mismatch')
  if (route.method !== 'get') add('idempotency_key_required', 'idempotency_key_reused', 'project_disabled')
  if (route.body) add('body_malformed', 'body_too_large', 'unsupported_media_type')
  const by_status = new Map<string, Set<Reason>>()
  for (const reason of reasons) {
    const status = String(REASONS[reason].http ?? 409)
    by_status.set(status, (by_status.get(status) ?? new Set<Reason>()).add(reason))
  }
  return by_status
}
