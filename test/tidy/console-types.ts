import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openApiDocument } from '../../control/openapi/document.ts'
import { OPERATOR_ROUTES } from '../../control/operator/index.ts'
import { CONSOLE_ROUTES } from '../../control/session/index.ts'
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

const NOTICE = `// Made by \`npm run documents\` from the schemas that the console names; do not edit.
// biome-ignore-all format: made by a program
`

/** The sources that may name the types. */
const READERS = ['control/console', 'test/unit/control/console']
const NAMED = /type \{([^}]*)\} from '[^']*\/api-types\.ts'/g

/**
 * Returns TypeScript types of the objects of the APIs, for the console: a program without the schemas. They are those
 * that its sources import, and what these refer to.
 */
export function consoleTypes(): string {
  const schemas = { ...schemasOf(CONSOLE_ROUTES), ...schemasOf(OPERATOR_ROUTES), ...schemasOf(V1_ROUTES) }
  const types = new Map<string, string>()
  const waiting = namesIn(READERS.flatMap(sourcesBelow))
  for (const name of waiting) {
    const schema = schemas[name]
    if (!schema) throw new Error(`the console imports the type ${name}, which no API has`)
    const { properties = {}, required = [] } = schema
    types.set(name, `export interface ${name} ${fields(properties, required, '')}\n`)
    // The loop visits what is added meanwhile.
    for (const [, other = ''] of JSON.stringify(schema).matchAll(/"\$ref":"[^"]*\/(\w+)"/g)) waiting.add(other)
  }
  const sorted = [...types].sort(([one], [other]) => (one < other ? -1 : 1))
  return [NOTICE, ...sorted.map(([, text]) => text)].join('\n')
}

const namesIn = (sources: readonly string[]): Set<string> =>
  new Set(
    sources
      .flatMap(source => [...source.matchAll(NAMED)])
      .flatMap(([, names = '']) => names.split(',').map(name => name.trim().replace(/ as .*/, '')))
      .filter(name => name !== ''),
  )

const sourcesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(path => /\.tsx?$/.test(path))
    .map(path => readFileSync(join(folder, path), 'utf8'))

type Routes = typeof V1_ROUTES | typeof OPERATOR_ROUTES | typeof CONSOLE_ROUTES

function schemasOf(routes: Routes): Readonly<Record<string, Schema>> {
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
