import { boundedMap } from '../../domain/bounded-map.ts'
import type { Value } from '../procedures/query.ts'

/** How values look to PostgreSQL and to us. Rows must look as those of the other store do. */

// Object ids of types (pg_type.dat).
const [BOOL, INT8, INT2, INT4, FLOAT4, FLOAT8, NUMERIC] = [16, 20, 21, 23, 700, 701, 1700]

function whole(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is no safe integer`)
  return value
}

/** Sums of integers are `numeric`, whole; averages have a fraction. */
const decimal = (text: string): number => (/^-?\d+$/.test(text) ? whole(text) : Number(text))

const PARSERS: ReadonlyMap<number, (text: string) => Value> = new Map<number, (text: string) => Value>([
  // A comparison is 1 or 0.
  [BOOL, text => (text === 't' ? 1 : 0)],
  [INT2, whole],
  [INT4, whole],
  [INT8, whole],
  [FLOAT4, Number],
  [FLOAT8, Number],
  [NUMERIC, decimal],
])

const asText = (text: string): Value => text

/** Returns the parser of a type's text. Every other type stays text. */
export const parserOf = (type: number): ((text: string) => Value) => PARSERS.get(type) ?? asText

/** What a value that needs a second look looks like in JSON, if it does not stand within a text. */
const ODD_VALUE = /\b(?:true|false)\b|\d{16}/

/** Reads rows as JSON of the server. */
export const rowsOfJson = (json: string): unknown[] =>
  (ODD_VALUE.test(json) ? JSON.parse(json, usual) : JSON.parse(json)) as unknown[]

function usual(_: string, value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new RangeError(`${value} is no safe integer`)
  return value
}

/** Replaces NUL, which peers may send in any text: PostgreSQL has no text with it. */
export const parameterOf = (value: unknown): unknown =>
  typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value

/** Replaces NUL in plain data in depth: what is computed of a text must be of the one that is kept. */
export function storable(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return parameterOf(value)
  // Most data has none, and stays the same object.
  if (!hasNul(value)) return value
  if (Array.isArray(value)) return value.map(storable)
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, storable(part)]))
}

function hasNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0')
  if (typeof value !== 'object' || value === null) return false
  for (const name in value) if (hasNul((value as Record<string, unknown>)[name])) return true
  return false
}

const MOST_TEXTS = 2000
const numbered_texts = boundedMap<string, string>(MOST_TEXTS)

/** Returns a statement with `$1`, `$2` for its `?`. Texts and quoted names keep their question marks. */
export function withNumbers(sql: string): string {
  const known = numbered_texts.get(sql)
  if (known !== undefined) return known
  let count = 0
  const made = sql.replace(/'(?:[^']|'')*'|"[^"]*"|\?/g, part => (part === '?' ? `$${++count}` : part))
  numbered_texts.set(sql, made)
  return made
}

/** Returns a statement with other texts for its `$1`, `$2`. */
export const withParts = (sql: string, partOf: (number: number) => string): string =>
  sql.replace(/'(?:[^']|'')*'|"[^"]*"|\$(\d+)/g, (part, number?: string) =>
    number === undefined ? part : partOf(Number(number)),
  )

/** Returns a statement whose values follow `count` others. */
export const withNumbersAfter = (sql: string, count: number): string => withParts(sql, number => `$${number + count}`)
