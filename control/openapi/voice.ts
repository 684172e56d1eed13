import type { VoiceRoute } from '../voice/route.ts'
import { formCurlSample, librarySample } from './samples.ts'
import { type JsonSchema, parameterSchema, Schemas } from './schemas.ts'

/** Builds the OpenAPI document of the voice-calls API, which takes forms and answers JSON. */

const ERROR: JsonSchema = {
  type: 'object',
  description: 'An error. Its number has a page at `more_info`.',
  required: ['code', 'message', 'more_info', 'status'],
  properties: {
    code: { type: 'integer', description: 'Number of the error.' },
    message: { type: 'string', description: 'What is wrong with this request.' },
    more_info: { type: 'string', format: 'uri', description: 'Page of the number.' },
    status: { type: 'integer', description: 'HTTP status.' },
    details: { type: 'object', description: 'Facts about it, such as `reason`, its code in the other APIs.' },
  },
}

export function voiceDocument(
  routes: readonly VoiceRoute[],
  about: { readonly base_url: string; readonly version: string },
): JsonSchema {
  const schemas = new Schemas({ Error: ERROR })
  const paths: Record<string, JsonSchema> = {}
  for (const route of routes) {
    const path = route.path === '' ? ACCOUNT_ITSELF : `${route.path}${route.suffix}`
    // The only path that is not below the account.
    const servers = path === ACCOUNT_ITSELF ? { servers: [{ url: `${about.base_url}/2010-04-01/Accounts` }] } : {}
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, schemas), ...servers }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Strowger voice-calls API',
      version: about.version,
      description:
        'Calls and their control in the compatible form, for programs that use a stock helper library. Requests are ' +
        'forms; errors have a number and a page.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [
      {
        url: `${about.base_url}/2010-04-01/Accounts/{AccountSid}`,
        variables: { AccountSid: { default: 'ACxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', description: 'The voice account.' } },
      },
    ],
    security: [{ account: [] }],
    tags: [...new Set(routes.map(tagOf))].map(name => ({ name })),
    paths,
    components: {
      securitySchemes: {
        account: {
          type: 'http',
          scheme: 'basic',
          description: 'AccountSid and auth token, or an API key and its secret.',
        },
      },
      schemas: schemas.made,
    },
  }
}

const ACCOUNT_ITSELF = '/{AccountSid}.json'

const EXTENDED = 'Served to accounts with `voice_api: extended`; for all others 404 `voice_route_not_proxied`.'

const tagOf = (route: VoiceRoute): string => route.path.split('/')[1] ?? 'Account'

function operation(route: VoiceRoute, schemas: Schemas): JsonSchema {
  const { method, path, suffix, summary, extended, example = {}, library } = route
  const samples = [
    formCurlSample({ method, path, suffix, form: example }),
    librarySample({ method, path, suffix, form: example, library }),
  ]
  const fields = fieldsOf(route)
  return {
    operationId: operationId(route),
    tags: [tagOf(route)],
    summary,
    ...(extended ? { description: EXTENDED } : {}),
    parameters: [
      ...[...(path || ACCOUNT_ITSELF).matchAll(/\{(\w+)\}/g)].map(([, name = '']) =>
        parameterSchema('path', name, { type: 'string' }, true),
      ),
      ...(method === 'POST'
        ? []
        : fields.map(({ name, description }) =>
            parameterSchema('query', name, { type: 'string', description }, false),
          )),
    ],
    ...(method === 'POST' && fields.length > 0 ? { requestBody: bodyOf(fields) } : {}),
    responses: responsesOf(route, schemas),
    'x-codeSamples': samples.filter(sample => sample !== null),
  }
}

const operationId = ({ method, path, suffix }: VoiceRoute): string =>
  [method.toLowerCase(), ...(path || 'account').split('/'), suffix === '.json' ? '' : suffix.slice(1)]
    .map(word => (word.startsWith('{') ? `by_${word.slice(1, -1)}` : word))
    .join('_')
    .replace(/_+(\w)?/g, (_, letter: string | undefined) => letter?.toUpperCase() ?? '')

interface Field {
  readonly name: string
  readonly description: string
}

/** Splits the names of fields that a route documents together. */
const fieldsOf = (route: VoiceRoute): Field[] =>
  Object.entries(route.fields ?? {}).flatMap(([names, rule]) =>
    names.split(', ').map(name => ({ name, description: `${rule.charAt(0).toUpperCase()}${rule.slice(1)}.` })),
  )

function bodyOf(fields: readonly Field[]): JsonSchema {
  const required = fields.filter(({ description }) => description.startsWith('Required')).map(({ name }) => name)
  const properties = Object.fromEntries(fields.map(({ name, description }) => [name, { type: 'string', description }]))
  const schema = { type: 'object', ...(required.length > 0 ? { required } : {}), properties }
  return { required: required.length > 0, content: { 'application/x-www-form-urlencoded': { schema } } }
}

const SOUNDS = { '.wav': 'audio/wav', '.mp3': 'audio/mpeg' } as const

function responsesOf(route: VoiceRoute, schemas: Schemas): JsonSchema {
  const responses: JsonSchema = {}
  for (const [status, schema] of Object.entries(route.replies)) {
    const sound =
      route.suffix === '.json'
        ? undefined
        : { [SOUNDS[route.suffix]]: { schema: { type: 'string', format: 'binary' } } }
    const content = schema ? { 'application/json': { schema: schemas.shown(schema) } } : sound
    responses[status] = { description: route.summary, ...(content ? { content } : {}) }
  }
  const error = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
  return { ...responses, default: { description: 'An error with a number.', content: error } }
}
