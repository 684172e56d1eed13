import type { TSchema } from '../http/schema.ts'
import { meaningOf } from './meanings/index.ts'

export type JsonSchema = Record<string, unknown>

/** Drops the symbols and hidden members with which TypeBox marks its schemas. */
export const plain = (schema: object): JsonSchema => JSON.parse(JSON.stringify(schema)) as JsonSchema

/** The named schemas of a document. Each is written once, and its uses refer to it. */
export class Schemas {
  readonly made: JsonSchema

  constructor(made: JsonSchema) {
    this.made = made
  }

  /** Returns a schema as the document shows it: every property described, every named schema a reference. */
  shown(schema: TSchema): JsonSchema {
    return this.#shown(plain(schema), null) as JsonSchema
  }

  #shown(value: unknown, resource: string | null): unknown {
    if (Array.isArray(value)) return value.map(item => this.#shown(item, resource))
    if (typeof value !== 'object' || value === null) return value
    const schema = value as JsonSchema
    if (typeof schema['title'] === 'string' && schema['type'] === 'object') return this.#reference(schema)
    return this.#members(schema, resource)
  }

  #reference({ title, ...schema }: JsonSchema): JsonSchema {
    const name = String(title)
    if (!(name in this.made)) {
      // The name is taken first: a schema may refer to itself.
      this.made[name] = {}
      this.made[name] = this.#members(schema, name)
    }
    return { $ref: `#/components/schemas/${name}` }
  }

  #members(schema: JsonSchema, resource: string | null): JsonSchema {
    const entries = Object.entries(schema).map(([key, item]) => [
      key,
      key === 'properties' ? this.#properties(item as JsonSchema, resource) : this.#shown(item, resource),
    ])
    return Object.fromEntries(entries)
  }

  #properties(properties: JsonSchema, resource: string | null): JsonSchema {
    const entries = Object.entries(properties).map(([name, schema]) => {
      const shown = this.#shown(schema, resource) as JsonSchema
      return [name, described(shown, resource, name)]
    })
    return Object.fromEntries(entries)
  }
}

/** What a name means. Where the value is never null, it leaves out what null would mean. */
function meaningFor(schema: JsonSchema, resource: string | null, name: string): string | undefined {
  const meaning = meaningOf(resource, name)
  return mayBeNull(schema) ? meaning : meaning?.replace(/(?:; null|\. Null)\b[^.;]*/, '')
}

/** A schema without a type allows every value. */
const mayBeNull = ({ type, anyOf, $ref }: JsonSchema): boolean =>
  type === undefined && anyOf === undefined ? $ref === undefined : JSON.stringify([type, anyOf]).includes('"null"')

/** Adds what a property means, unless its schema says so. */
function described(schema: JsonSchema, resource: string | null, name: string): JsonSchema {
  const description = schema['description'] ?? meaningFor(schema, resource, name)
  return description === undefined ? schema : { ...schema, description }
}

/** A parameter of a path or a query with its meaning, which stands in the table under `path` or `query`. */
export function parameterSchema(
  place: 'path' | 'query',
  name: string,
  schema: JsonSchema,
  required: boolean,
): JsonSchema {
  const { description = meaningFor(schema, place, name), ...rest } = schema
  return { name, in: place, required, ...(description === undefined ? {} : { description }), schema: rest }
}
