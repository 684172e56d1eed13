import { checkDocument } from '../../markup/check.ts'
import { Flag, input, list, nullable, oneOf, optional, resource, Type } from '../http/schema.ts'
import { route } from './route.ts'

/** Above the limit of documents in calls, so that a document over that limit gets the same fault as in a call. */
const MAX_CHARACTERS = 100_000

const Advice = resource('MarkupAdvice', {
  column: Type.Integer(),
  detail: Type.String(),
  level: oneOf('error', 'warning'),
  line: Type.Integer(),
  number: nullable(Type.Integer(), { description: 'Of the fault as a call would note it; null for advice alone.' }),
  rule: Type.String(),
  suggestion: nullable(Type.String()),
})

export const MarkupCheck = resource('MarkupCheck', { advice: list(Advice), ok: Flag })

export const markup = [
  route({
    method: 'post',
    path: '/markup/check',
    summary: 'Check a document before a call runs it',
    description:
      'Answers 200 for faulty documents too: `ok` is false when the document has an error. Nothing is fetched or kept.',
    scope: 'service_configuration:read',
    restricted_keys: true,
    body: input('CheckMarkupRequest', {
      markup: Type.String({ maxLength: MAX_CHARACTERS }),
      url: optional(
        Type.String({
          format: 'uri',
          maxLength: 2048,
          description: 'Where it will be served from; without it, inline.',
        }),
      ),
    }),
    replies: { 200: MarkupCheck },
    example: { markup: '<Response><Say>Hello</Say></Response>' },
    async run({ body }) {
      const { ok, advice } = checkDocument(body.markup, { url: body.url ?? null })
      return { status: 200, body: { ok, advice: [...advice] }, change: null }
    },
  }),
]
