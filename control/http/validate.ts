import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'
import { readInstant } from './instants.ts'
import type { TSchema } from './schema.ts'

/**
 * An error in one field of a request. `pointer` is a JSON pointer (RFC 6901) into the body, or the name of a query
 * parameter.
 */
export interface FieldError {
  readonly pointer: string
  readonly message: string
}

// A test compares our schemas with the meta-schema: its own compilation takes longer than that of all of them.
const ajv = new Ajv2020({
  allErrors: true,
  strict: true,
  strictTypes: false,
  strictRequired: false,
  validateSchema: false,
  // Ajv's own optimizer takes a quarter of a compile. V8 optimizes the checks that run often.
  code: { optimize: false },
})
// ajv-formats is CommonJS: its function is the default export of the module object.
addFormatsModule.default(ajv)
ajv.addFormat('date-time', text => readInstant(text) !== null)

const compiled = new WeakMap<TSchema, ValidateFunction>()
const MAX_ERRORS = 50

/** Returns the errors of `value`; an empty list when it fits. Schemas are compiled on first use. */
export function fieldErrors(schema: TSchema, value: unknown): FieldError[] {
  let check = compiled.get(schema)
  if (!check) {
    check = ajv.compile(schema)
    compiled.set(schema, check)
  }
  if (check(value)) return []
  const seen = new Set<string>()
  const errors: FieldError[] = []
  for (const error of check.errors ?? []) {
    const field = fieldError(error)
    const key = `${field.pointer} ${field.message}`
    // A union reports each of its branches and then itself. One error per field is enough.
    if (error.keyword === 'anyOf' && errors.some(other => other.pointer === field.pointer)) continue
    if (seen.has(key) || errors.length >= MAX_ERRORS) continue
    seen.add(key)
    errors.push(field)
  }
  return errors
}

const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

function fieldError(error: ErrorObject): FieldError {
  const at = error.instancePath
  switch (error.keyword) {
    case 'required':
      return { pointer: `${at}/${escapePointer(String(error.params['missingProperty']))}`, message: 'is required' }
    case 'additionalProperties':
      return {
        pointer: `${at}/${escapePointer(String(error.params['additionalProperty']))}`,
        message: 'is not a field of this request',
      }
    case 'enum':
      return { pointer: at, message: `must be one of ${(error.params['allowedValues'] as unknown[]).join(', ')}` }
    case 'const':
      return { pointer: at, message: `must be ${JSON.stringify(error.params['allowedValue'])}` }
    case 'pattern':
      return { pointer: at, message: 'does not have the expected form' }
    case 'format':
      return { pointer: at, message: `must be a valid ${error.params['format']}` }
    default:
      return { pointer: at, message: error.message ?? 'is not valid' }
  }
}
