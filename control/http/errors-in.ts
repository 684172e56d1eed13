import type { TSchema } from './schema.ts'
import type { FieldError } from './validate.ts'

/**
 * Returns the errors of `value`; an empty list when it fits. The validator is loaded with the first value: loading it
 * takes a third of the time in which a command that lists something is done.
 */
export async function errorsIn(schema: TSchema, value: unknown): Promise<FieldError[]> {
  const { fieldErrors } = await import('./validate.ts')
  return fieldErrors(schema, value)
}
