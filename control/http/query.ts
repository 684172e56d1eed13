import { errorsIn } from './errors-in.ts'
import { withUtcInstants } from './instants.ts'
import { type Refusal, refuse } from './reply.ts'
import type { TObject, TSchema } from './schema.ts'

/**
 * Parses query parameters by the route's schema, converting text to numbers and booleans. Unknown and repeated
 * parameters are refused.
 */
export async function queryOf(search: string, schema: TObject | undefined): Promise<Record<string, unknown> | Refusal> {
  if (search === '' && !schema?.required?.length) return {}
  const given = new URLSearchParams(search)
  const query: Record<string, unknown> = {}
  const properties: Record<string, TSchema> = schema?.properties ?? {}
  for (const name of new Set(given.keys())) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!known) return wrong(name, 'is not a parameter of this request')
    const values = given.getAll(name)
    if (values.length > 1) return wrong(name, 'is given more than once')
    query[name] = coerced(values[0] ?? '', known)
  }
  if (!schema) return query
  const errors = await errorsIn(schema, query)
  if (errors.length === 0) return withUtcInstants(schema, query)
  return refuse(
    'validation_failed',
    { value: errors.map(error => `${error.pointer.slice(1)} ${error.message}`).join('; ') },
    { errors: errors.map(error => ({ ...error, pointer: error.pointer.slice(1) })) },
  )
}

const wrong = (pointer: string, message: string): Refusal =>
  refuse('validation_failed', { value: `${pointer} ${message}` }, { errors: [{ pointer, message }] })

function coerced(text: string, schema: TSchema): unknown {
  const { type } = schema as { type?: string }
  if ((type === 'integer' || type === 'number') && /^-?\d{1,16}$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}
