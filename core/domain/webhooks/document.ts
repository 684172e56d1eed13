import { CONTENT_TYPE_UNUSABLE } from './errors.ts'

/** What a successful answer to a markup request is. */
export type Document =
  /** 204 or no content: no instructions, as an empty `<Response/>`. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'markup'; readonly text: string }
  /** Plain text is spoken; a caller that finds markup in it may run it. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'audio'; readonly content_type: string }
  | { readonly kind: 'unusable'; readonly content_type: string; readonly number: typeof CONTENT_TYPE_UNUSABLE }

const MARKUP_TYPES = ['text/xml', 'application/xml', 'text/html']

/** Reads an answer by its Content-Type; a missing type is tried as markup. */
export function readDocument(answer: { content_type: string | undefined; body: Uint8Array }): Document {
  const [media_type = '', ...parameters] = (answer.content_type ?? '').split(';').map(part => part.trim())
  const type = media_type.toLowerCase()
  if (answer.body.length === 0) return { kind: 'empty' }
  if (type.startsWith('audio/')) return { kind: 'audio', content_type: type }
  const markup = type === '' || MARKUP_TYPES.includes(type)
  if (!markup && type !== 'text/plain')
    return { kind: 'unusable', content_type: type.slice(0, 100), number: CONTENT_TYPE_UNUSABLE }
  const charset = charsetOf(parameters) ?? (markup ? declaredEncoding(answer.body) : null) ?? 'utf-8'
  const text = decode(answer.body, charset)
  if (text.trim() === '') return { kind: 'empty' }
  return markup ? { kind: 'markup', text } : { kind: 'text', text }
}

function charsetOf(parameters: readonly string[]): string | null {
  for (const parameter of parameters) {
    const match = /^charset\s*=\s*"?([A-Za-z0-9_.:-]{1,40})"?$/i.exec(parameter)
    if (match?.[1]) return match[1]
  }
  return null
}

/**
 * Encoding of the XML declaration, which is ASCII in every encoding that a declaration can name without a byte order
 * mark.
 */
function declaredEncoding(body: Uint8Array): string | null {
  const head = new TextDecoder('latin1').decode(body.subarray(0, 200))
  return /^(?:\xef\xbb\xbf)?<\?xml[^>]{0,150}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})["']/.exec(head)?.[1] ?? null
}

function decode(body: Uint8Array, charset: string): string {
  // A byte order mark says more than any label (WHATWG Encoding, "BOM sniff").
  const utf16 =
    (body[0] === 0xff && body[1] === 0xfe && 'utf-16le') || (body[0] === 0xfe && body[1] === 0xff && 'utf-16be')
  try {
    return new TextDecoder(utf16 || charset).decode(body)
  } catch {
    // An unknown label is the author's slip; UTF-8 is what nearly everybody means.
    return new TextDecoder().decode(body)
  }
}
