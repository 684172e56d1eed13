import { escapeXml } from '../../core/domain/text/xml.ts'
import type { Sample } from './samples.ts'
import type { JsonSchema } from './schemas.ts'

/** Pages made from an OpenAPI document: one for each tag, and a list of all operations. */

/** The parts of an OpenAPI document that pages show. */
export interface Document {
  readonly servers: Servers
  readonly paths: Readonly<Record<string, PathItem>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

type Servers = readonly { readonly url: string }[]
const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** The operations of a path, and the servers that it has in place of the document's (OpenAPI 3.1 §4.8.9). */
interface PathItem extends Readonly<Partial<Record<(typeof METHODS)[number], Operation>>> {
  readonly servers?: Servers
}

interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly 'x-scope'?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, Response>>
  readonly 'x-codeSamples'?: readonly Sample[]
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
}

interface Response {
  readonly description: string
  readonly 'x-codes'?: readonly string[]
  readonly content?: Readonly<Record<string, Content>>
}

interface Content {
  readonly schema: Schema
  readonly example?: unknown
}

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly description?: string
}

/** An operation as a list and a search show it. `page` is the last part of its page's address, its tag. */
interface Listed {
  readonly method: string
  /** The whole path on the server. */
  readonly path: string
  readonly page: string
  readonly anchor: string
  readonly summary: string
  readonly scope: string
  /** What a search looks into. */
  readonly text: string
}

const pathOf = (servers: Servers): string => servers[0]?.url.replace(/^https?:\/\/[^/]*/, '') ?? ''

function operationsOf(document: Document): { readonly operation: Operation; readonly listed: Listed }[] {
  const all = Object.entries(document.paths).flatMap(([path, { servers = document.servers, ...methods }]) =>
    METHODS.map(method => ({ path, prefix: pathOf(servers), method, operation: methods[method] })),
  )
  return all.flatMap(({ path, prefix, method, operation }) => {
    if (!operation) return []
    const listed = {
      method: method.toUpperCase(),
      path: `${prefix}${path}`,
      page: operation.tags[0] ?? '',
      anchor: operation.operationId,
      summary: operation.summary,
      scope: operation['x-scope'] ?? '',
      text: [path, operation.description, ...(operation.parameters ?? []).map(({ name }) => name)].join(' '),
    }
    return [{ operation, listed }]
  })
}

export const listedOf = (document: Document): Listed[] => operationsOf(document).map(({ listed }) => listed)

const code = (text: string): string => `<code>${escapeXml(text)}</code>`

/** Renders the list of an API's operations, with links to the page of each. */
export function contentsPage(document: Document, address: string, file: string): string {
  const rows = listedOf(document).map(
    ({ method, path, page, anchor, summary, scope }) =>
      `<tr><td>${code(method)}</td><td><a href="${address}/${page}#${anchor}">${code(path)}</a></td>` +
      `<td>${escapeXml(summary)}</td><td>${scope === '' ? '' : code(scope)}</td></tr>`,
  )
  return (
    `<p>The API as an OpenAPI 3.1 document: <a href="${file}">${file}</a>. ` +
    'Every error has a page: <a href="/docs/errors">errors</a>.</p>' +
    table(['Method', 'Path', '', 'Scope'], rows)
  )
}

const table = (head: readonly string[], rows: readonly string[]): string =>
  `<div class="wide"><table><thead><tr>${head.map(cell => `<th>${cell}</th>`).join('')}</tr></thead>` +
  `<tbody>${rows.join('\n')}</tbody></table></div>`

/** Renders the operations of a tag and the schemas that they use; null when no operation has the tag. */
export function tagPage(document: Document, tag: string): string | null {
  const shown = operationsOf(document).filter(({ listed }) => listed.page === tag)
  if (shown.length === 0) return null
  const used = new Set<string>()
  const operations = shown.map(({ operation, listed }) => operationSection(operation, listed, used))
  const schemas: string[] = []
  // A schema may use others, which are added behind it: the loop reaches these too.
  for (const name of used) {
    const schema = document.components.schemas[name]
    if (schema) schemas.push(`<h3 id="schema-${name}">${escapeXml(name)}</h3>${propertyTable(schema, used)}`)
  }
  const objects = schemas.length === 0 ? '' : `<h2 id="objects">Objects</h2>${schemas.join('\n')}`
  return operations.join('\n') + objects
}

function operationSection(operation: Operation, { method, path, anchor, scope }: Listed, used: Set<string>): string {
  const { summary, description, parameters = [], requestBody, responses } = operation
  const text = description === undefined ? '' : `<p>${escapeXml(description)}</p>`
  const needs = scope === '' ? '' : `<p>Scope: ${code(scope)}</p>`
  const rows = parameters.map(
    one =>
      `<tr><td>${code(one.name)}</td><td>${one.in}${one.required ? ', required' : ''}</td>` +
      `<td>${typeOf(one.schema, used)}</td><td>${escapeXml(one.description ?? '')}</td></tr>`,
  )
  const given = rows.length === 0 ? '' : `<h3>Parameters</h3>${table(['Name', 'In', 'Type', 'Meaning'], rows)}`
  const body = Object.entries(requestBody?.content ?? {}).map(
    ([type, { schema }]) => `<h3>Body (${escapeXml(type)})</h3>${shapeOf(schema, used)}`,
  )
  const samples = (operation['x-codeSamples'] ?? []).map(
    ({ label, source }) => `<h3>${escapeXml(label)}</h3><pre><code>${escapeXml(source)}</code></pre>`,
  )
  return (
    `<h2 id="${anchor}">${escapeXml(summary)}</h2><p>${code(`${method} ${path}`)}</p>` +
    `${text}${needs}${given}${body.join('')}${samples.join('')}${answers(responses, used)}`
  )
}

function answers(responses: Operation['responses'], used: Set<string>): string {
  const examples: string[] = []
  const rows = Object.entries(responses).map(([status, { description, content = {}, 'x-codes': codes }]) => {
    if (codes) return `<tr><td>${status}</td><td>${codes.map(errorLink).join(', ')}</td></tr>`
    const shapes = Object.entries(content).map(([type, { schema, example }]) => {
      if (example !== undefined)
        examples.push(
          `<h3>Example of the answer</h3><pre><code>${escapeXml(JSON.stringify(example, null, 2))}</code></pre>`,
        )
      return type.endsWith('json') ? typeOf(schema, used) : escapeXml(type)
    })
    return `<tr><td>${status}</td><td>${shapes.join(', ') || escapeXml(description)}</td></tr>`
  })
  return `<h3>Answers</h3>${table(['Status', ''], rows)}${examples.join('')}`
}

const errorLink = (name: string): string => `<a href="/docs/errors/${name}">${code(name)}</a>`

const shapeOf = (schema: Schema, used: Set<string>): string =>
  schema.properties ? propertyTable(schema, used) : `<p>${typeOf(schema, used)}</p>`

function propertyTable({ properties = {}, required = [] }: Schema, used: Set<string>): string {
  const rows = Object.entries(properties).map(([name, schema]) => {
    const inner = schema.properties ?? schema.items?.properties
    const below = inner ? propertyTable(schema.properties ? schema : (schema.items ?? schema), used) : ''
    return (
      `<tr><td>${code(name)}${required.includes(name) ? '' : ' <small>optional</small>'}</td>` +
      `<td>${typeOf(schema, used)}</td><td>${escapeXml(schema.description ?? '')}${below}</td></tr>`
    )
  })
  return table(['Property', 'Type', 'Meaning'], rows)
}

function typeOf(schema: Schema, used: Set<string>): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? ''
    used.add(name)
    return `<a href="#schema-${name}">${escapeXml(name)}</a>`
  }
  if (schema.anyOf) return schema.anyOf.map(one => typeOf(one, used)).join(' or ')
  if (schema.enum) return schema.enum.map(value => code(String(value))).join(', ')
  if (schema.const !== undefined) return code(String(schema.const))
  if (schema.type === 'array') {
    const most = schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`
    return `list of ${schema.items ? typeOf(schema.items, used) : 'anything'}${most}`
  }
  return `${schema.format ?? schema.type ?? 'anything'}${boundsOf(schema)}`
}

function boundsOf({ type, minimum, maximum, maxLength }: Schema): string {
  if (type === 'string') return maxLength === undefined ? '' : `, at most ${maxLength} characters`
  // Bounds at the ends of the type say nothing.
  const least = minimum === undefined || minimum < -2_147_483_648 ? '' : ` from ${minimum}`
  const most = maximum === undefined || maximum >= 2_147_483_647 ? '' : ` to ${maximum}`
  return `${least}${most}`
}

/** Returns the documents of all APIs under one type: what the builders return is plain JSON. */
export const asDocument = (document: JsonSchema): Document => document as JsonSchema & Document
