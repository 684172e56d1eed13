import { iso } from '../../core/runtime/clock.ts'
import type { TSchema } from './schema.ts'

const INSTANT = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d+)?)([Zz]|[+-]\d\d:\d\d)$/

/** Reads a time of RFC 3339 §5.6 as `2026-11-25T18:00:00.000Z`; null when it is none. */
export function readInstant(text: string): string | null {
  const [, day = '', time = '', zone = ''] = INSTANT.exec(text) ?? []
  const begins = Date.parse(`${day}T00:00:00Z`)
  const at = Date.parse(`${day}T${time}${zone.toUpperCase()}`)
  // Date.parse takes 30 February for 2 March.
  if (Number.isNaN(at) || Number.isNaN(begins) || iso(begins).slice(0, 10) !== day) return null
  return iso(at)
}

interface Shape {
  readonly format?: string
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly items?: TSchema
  readonly anyOf?: readonly TSchema[]
}

const known = new WeakMap<TSchema, boolean>()

/** Whether values of a schema may have instants. */
function hasInstants(schema: TSchema): boolean {
  const before = known.get(schema)
  if (before !== undefined) return before
  const { format, properties = {}, items, anyOf = [] } = schema as Shape
  const parts = [...Object.values(properties), ...anyOf, ...(items ? [items] : [])]
  const has = format === 'date-time' || parts.some(hasInstants)
  known.set(schema, has)
  return has
}

/**
 * Returns a value that fits its schema with all its instants in UTC, in the one form in which they are stored and
 * compared as text. An instant with an offset would sort wrongly.
 */
export function withUtcInstants<T>(schema: TSchema | undefined, value: T): T {
  if (!schema || !hasInstants(schema)) return value
  const { format, properties = {}, items, anyOf = [] } = schema as Shape
  if (typeof value === 'string') {
    const instant = format === 'date-time' || anyOf.some(part => (part as Shape).format === 'date-time')
    return (instant ? (readInstant(value) ?? value) : value) as T
  }
  if (Array.isArray(value)) {
    const item = items ?? anyOf.flatMap(part => (part as Shape).items ?? [])[0]
    return value.map(each => withUtcInstants(item, each)) as T
  }
  if (typeof value !== 'object' || value === null) return value
  const named = Object.assign({}, ...anyOf.map(part => (part as Shape).properties ?? {}), properties)
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      Object.hasOwn(named, name) ? withUtcInstants(named[name], each) : each,
    ]),
  ) as T
}
