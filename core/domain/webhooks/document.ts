/** A fetched document, as the interpreter needs it. */
interface DocumentText {
  /** The media type without parameters, in lower case; empty when the response has none. */
  readonly content_type: string
  /** Decoded text; empty for audio, which is fetched again when it is played. */
  readonly text: string
}

/** Decodes a body by its byte order mark, else the header's charset, else the XML declaration's, else as UTF-8. */
export function documentText(answer: { content_type: string | undefined; body: Uint8Array }): DocumentText {
  const [media_type = '', ...parameters] = (answer.content_type ?? '').split(';').map(part => part.trim())
  const content_type = media_type.toLowerCase()
  if (content_type.startsWith('audio/')) return { content_type, text: '' }
  const charset = charsetOf(parameters) ?? declaredEncoding(answer.body) ?? 'utf-8'
  return { content_type, text: decode(answer.body, charset) }
}

function charsetOf(parameters: readonly string[]): string | null {
  for (const parameter of parameters) {
    const match = /^charset\s*=\s*"?([A-Za-z0-9_.:-]{1,40})"?$/i.exec(parameter)
    if (match?.[1]) return match[1]
  }
  return null
}

/**
 * Returns the encoding of the XML declaration, which is ASCII in every encoding that needs no byte order mark.
 */
function declaredEncoding(body: Uint8Array): string | null {
  const head = new TextDecoder('latin1').decode(body.subarray(0, 200))
  return /^(?:\xef\xbb\xbf)?<\?xml[^>]{0,150}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})["']/.exec(head)?.[1] ?? null
}

function decode(body: Uint8Array, charset: string): string {
  // A byte order mark overrides any label (WHATWG Encoding, "BOM sniff").
  const marked =
    (body[0] === 0xff && body[1] === 0xfe && 'utf-16le') ||
    (body[0] === 0xfe && body[1] === 0xff && 'utf-16be') ||
    (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf && 'utf-8')
  try {
    return new TextDecoder(marked || charset).decode(body)
  } catch {
    // An unknown label is a mistake. UTF-8 is nearly always meant.
    return new TextDecoder().decode(body)
  }
}
