import { escapeXml } from '../text/xml.ts'

/** Characters that XML 1.0 §2.2 does not allow in a document. */
const FORBIDDEN = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu

const PLACEHOLDER = /\{\{\s*([A-Za-z][A-Za-z0-9_-]{0,63})\s*\}\}/g

/**
 * Fills a saved document: `{{From}}` becomes the parameter of that name, and nothing where the request has none. Values
 * are escaped for text and for attributes in either kind of quotes, so that no caller can write markup.
 */
export const fillTemplate = (content: string, parameters: Readonly<Record<string, string>>): string =>
  content.replace(PLACEHOLDER, (_, name: string) =>
    Object.hasOwn(parameters, name) ? escaped(parameters[name] ?? '') : '',
  )

/** Two hyphens would end a comment (XML 1.0 §2.5). */
const escaped = (value: string): string =>
  escapeXml(value.replace(FORBIDDEN, ''))
    .replace(/'/g, '&#39;')
    .replace(/-(?=-)/g, '&#45;')
