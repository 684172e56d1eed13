import { openApiDocument } from '../../control/openapi/document.ts'
import { OPERATOR_ROUTES } from '../../control/operator/index.ts'
import { V1_ROUTES } from '../../control/v1/index.ts'

/** The keywords of JSON Schema that determine a TypeScript type. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
}

const MAX_COLUMNS = 120

const NOTICE = `// Made from the schemas of /v1 and /operator/v1 by \`npm run documents\`; do not edit.
// biome-ignore-all format: made by a program
`

/** Returns TypeScript types of the named objects of both APIs, for the console: a program without the schemas. */
export function consoleTypes(): string {
  const schemas = { ...schemasOf(OPERATOR_ROUTES), ...schemasOf(V1_ROUTES) }
  const types = Object.entries(schemas).map(
    ([name, { properties = {}, required = [] }]) => `export interface ${name} ${fields(properties, required, '')}\n`,
  )
  return [NOTICE, ...types].join('\n')
}

function schemasOf(routes: typeof V1_ROUTES | typeof OPERATOR_ROUTES): Readonly<Record<string, Schema>> {
  const { components } = openApiDocument(routes, { base_url: '', version: '' }) as {
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
  }
  return components.schemas
}

function fields(properties: Readonly<Record<string, Schema>>, required: readonly string[], indent: string): string {
  const inner = `${indent}  `
  const lines = Object.entries(properties).map(([name, schema]) => {
    const line = `${inner}readonly ${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema, inner)}\n`
    return line.includes('{') || line.length <= MAX_COLUMNS ? line : line.replaceAll(' | ', `\n${inner}  | `)
  })
  return `{\n${lines.join('')}${indent}}`
}

function typeOf(schema: Schema, indent: string): string {
  const { $ref, anyOf, items, properties, required = [], patternProperties } = schema
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf('/') + 1)
  if (anyOf) return unionOf(anyOf, indent)
  if ('const' in schema) return literal(schema.const)
  if (schema.enum) return schema.enum.map(literal).join(' | ')
  if (items) return arrayOf(typeOf(items, indent))
  if (properties) return fields(properties, required, indent)
  if (patternProperties) return `Readonly<Record<string, ${unionOf(Object.values(patternProperties), indent)}>>`
  switch (schema.type) {
    case 'integer':
    case 'number':
      return 'number'
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type
    case undefined:
      return 'unknown'
    default:
      throw new Error(`no TypeScript type is known for ${JSON.stringify(schema)}`)
  }
}

const arrayOf = (item: string): string => (/^\w+$/.test(item) ? `readonly ${item}[]` : `readonly (${item})[]`)

const unionOf = (schemas: readonly Schema[], indent: string): string =>
  schemas.map(schema => typeOf(schema, indent)).join(' | ')

const literal = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value))
