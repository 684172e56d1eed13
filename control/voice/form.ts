import type { ParameterizedContext } from 'koa'
import { bodyType, createBodyReader, utf8Of } from '../http/body.ts'
import { isRefusal } from '../http/reply.ts'
import { numbered, type VoiceRefusal } from './errors.ts'

const MAX_FORM_BYTES = 1024 * 1024
const readBody = createBodyReader(MAX_FORM_BYTES)

/**
 * A form as sent, with names in PascalCase. A list repeats its name. Routes ignore unknown names.
 */
export interface Form {
  /** Returns the last value of a name; undefined when it is missing or empty. */
  text(name: string): string | undefined
  /** Reports whether the last value of a name is given and empty. */
  blank(name: string): boolean
  all(name: string): readonly string[]
  readonly entries: readonly (readonly [string, string])[]
}

export function formOf(parameters: URLSearchParams): Form {
  return {
    text: name => parameters.getAll(name).at(-1) || undefined,
    blank: name => parameters.getAll(name).at(-1) === '',
    all: name => parameters.getAll(name).filter(value => value !== ''),
    entries: [...parameters],
  }
}

/** Returns a form with other values of some names. Undefined removes a name. */
export const withText = (form: Form, values: Readonly<Record<string, string | undefined>>): Form => ({
  text: name => (Object.hasOwn(values, name) ? values[name] : form.text(name)),
  blank: name => !Object.hasOwn(values, name) && form.blank(name),
  all: name => (Object.hasOwn(values, name) ? [values[name]].filter(one => one !== undefined) : form.all(name)),
  entries: form.entries,
})

const MAX_FIELDS = 1000

/**
 * Reads a form-encoded body. Other content types are refused. An empty body without a content type is an empty form.
 */
export async function readForm(ctx: ParameterizedContext): Promise<Form | VoiceRefusal> {
  const type = bodyType(ctx.req)
  if (type !== '' && type !== 'application/x-www-form-urlencoded')
    return numbered(20422, `The content type ${type} is not supported: send application/x-www-form-urlencoded.`)
  const sent = await readBody(ctx)
  if (isRefusal(sent)) {
    const more = sent.headers ? { headers: sent.headers } : {}
    if (sent.refused === 'body_too_large')
      return numbered(20413, `The body is larger than ${MAX_FORM_BYTES} bytes.`, more)
    if (sent.refused === 'unsupported_media_type')
      return numbered(20422, 'Content codings of requests are not supported.', more)
    return numbered(20001, 'The body ended early.', more)
  }
  const { bytes } = sent
  if (bytes.length > 0 && type === '') return numbered(20422, 'The body has no content type.')
  const text = utf8Of(bytes)
  if (text === null) return numbered(20001, 'The body is not UTF-8.')
  const parameters = new URLSearchParams(text)
  if ([...parameters.keys()].length > MAX_FIELDS) return numbered(20001, `The form has more than ${MAX_FIELDS} fields.`)
  return formOf(parameters)
}
