/** Speech with tags of SSML, which is written into the document as it is. */
export interface Ssml {
  readonly ssml: string
}

/** Marks text as SSML: `say(ssml('Wait <break time="1s"/> please.'))`. */
export const ssml = (markup: string): Ssml => ({ ssml: markup })

type Content = Element | Ssml | string

/** A value of an attribute. Lists are written with the separator that the attribute reads. */
type Value = string | number | boolean | readonly string[] | undefined

/** An element of a document. `Name` lets the compiler refuse an element where it may not stand. */
export interface Element<Name extends string = string> {
  readonly name: Name
  readonly attributes: Readonly<Record<string, Value>>
  readonly content: readonly Content[]
}

export const element = <const Name extends string>(
  name: Name,
  attributes: object,
  content: readonly Content[],
): Element<Name> => ({ name, attributes: attributes as Element['attributes'], content })

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** XML 1.0 has no place for other characters than these, not even as references (§2.2). */
const NOT_IN_XML = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu

const escaped = (text: string): string => text.replace(NOT_IN_XML, '').replace(/[&<>"]/g, sign => ESCAPES[sign] ?? sign)

/** Attributes that read their list with commas; all others read it with spaces. */
const WITH_COMMAS = new Set(['hints'])

function written(name: string, value: Exclude<Value, undefined>): string {
  const text = typeof value === 'object' ? value.join(WITH_COMMAS.has(name) ? ',' : ' ') : String(value)
  // A line break in an attribute would be read as a space (XML 1.0 §3.3.3).
  return escaped(text).replaceAll('\n', '&#10;').replaceAll('\r', '&#13;').replaceAll('\t', '&#9;')
}

export function render(content: Content): string {
  if (typeof content === 'string') return escaped(content)
  if ('ssml' in content) return content.ssml
  const attributes = Object.entries(content.attributes).map(([name, value]) =>
    value === undefined ? '' : ` ${name}="${written(name, value)}"`,
  )
  const inner = content.content.map(render).join('')
  const head = `<${content.name}${attributes.join('')}`
  return inner === '' ? `${head}/>` : `${head}>${inner}</${content.name}>`
}
