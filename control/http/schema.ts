import { type Static, type TArray, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { DECEIVING, STRAY_JOINER } from '../../core/domain/text/visible.ts'

export { type Static, type TObject, type TSchema, Type }

/**
 * Schemas of the HTTP APIs: JSON Schema 2020-12, built with TypeBox. Validation by ajv, the TypeScript types and the
 * OpenAPI document share them.
 */

/** An object of an answer, without additional properties. `name` is its name in the OpenAPI document. */
export const resource = <P extends TProperties>(name: string, properties: P) =>
  Type.Object(properties, { additionalProperties: false, title: name })

/** An object of a request. Unknown fields are refused. */
export const input = <P extends TProperties>(name: string, properties: P) =>
  Type.Object(properties, { additionalProperties: false, title: name })

/** `{ "data": [...] }`, the body of every list of /v1. */
export const listOf = <T extends TSchema>(item: T) => Type.Object({ data: Type.Array(item) }, CLOSED)
/** A page of a list with a cursor. `next_cursor` is present while there is a next page. */
export const pageSchema = <T extends TSchema>(item: T) =>
  Type.Object({ data: Type.Array(item), next_cursor: Type.Optional(Type.String()) }, CLOSED)
const CLOSED = { additionalProperties: false } as const

export const nullable = <T extends TSchema>(schema: T, options: { description?: string } = {}) =>
  Type.Union([schema, Type.Null()], options)

export const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
export const oneOf = <const V extends readonly string[]>(...values: V) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values] })
/** The same values, with a sentence about them in the API's reference. */
export const described = <T extends TSchema>(schema: T, description: string) =>
  Type.Unsafe<Static<T>>({ ...schema, description })
export const list = <T extends TSchema>(
  item: T,
  options: { maxItems?: number; uniqueItems?: boolean } = {},
): TArray<T> => Type.Array(item, options)

export const Flag = Type.Boolean()
export const Instant = Type.String({ format: 'date-time' })
export const Int32 = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, format: 'int32' })
/** Integers that every JSON parser reads exactly (RFC 8259 §6). */
export const Int64 = Type.Integer({
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
  format: 'int64',
})
export const Count64 = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, format: 'int64' })
export const Money = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, format: 'int64' })

/**
 * A name that a user chooses: 1 to 120 characters, not only spaces, nothing that deceives, and neither `"` nor `>`,
 * which would end it in a SIP header, a mail or a page.
 */
export const Name = Type.String({
  minLength: 1,
  maxLength: 120,
  pattern: `^(?=.*\\S)(?!.*${STRAY_JOINER})[^">${DECEIVING}]*$`,
})
/** A free text of one line, with nothing that deceives. With `min` 1 it is not only spaces. */
export const line = (max: number, min: 0 | 1 = 1) => freeText(max, min, '')
/** A free text of lines, with their ends and tabs. */
export const lines = (max: number, min: 0 | 1 = 1) => freeText(max, min, '\\t\\r\\n')

const freeText = (maxLength: number, min: 0 | 1, and: string) =>
  Type.String({
    ...(min === 0 ? {} : { minLength: min }),
    maxLength,
    pattern: `^${min === 0 ? '' : '(?=[\\s\\S]*\\S)'}(?![\\s\\S]*${STRAY_JOINER})(?:[^${DECEIVING}]${and && `|[${and}]`})*$`,
  })

export const HttpUrl = Type.String({
  format: 'uri',
  maxLength: 2048,
  pattern: '^[hH][tT][tT][pP][sS]?://[^\\u0000-\\u0020\\u007f]+$',
})

export const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: `^[^@\\s"<>\\u200c\\u200d${DECEIVING}]+@[^@\\s"<>${DECEIVING}]+$`,
})
export const Role = oneOf('org:admin', 'org:engineer', 'org:billing', 'org:viewer')
export const Transport = oneOf('udp', 'tcp', 'tls')
/** Which hosts a 3xx may send a call to: none, the one that was called, or any target of the same trunk or carrier. */
export const Redirects = oneOf('off', 'same_host', 'listed')
/** A user name, without these characters (of a pattern), white space and what deceives. */
export const userName = (without: string) =>
  Type.String({ minLength: 1, maxLength: 120, pattern: `^[^\\s${without}\\u200c\\u200d${DECEIVING}]+$` })
/** A user name for digest authentication (RFC 7616), without a colon. */
export const DigestUsername = userName(':<>"\\\\')
export const DigestPassword = Type.String({ minLength: 1, maxLength: 256 })
/** A calendar date, `YYYY-MM-DD`. */
export const Day = Type.String({ format: 'date' })
export const E164 = Type.String({ pattern: '^\\+[1-9][0-9]{6,14}$' })
export const Currency = oneOf(CURRENCY)
