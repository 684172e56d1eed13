/** The part of a file that answers a request. */
type Part =
  | { readonly kind: 'whole' }
  /** `first` and `last` are inclusive. */
  | { readonly kind: 'part'; readonly first: number; readonly last: number }
  | { readonly kind: 'unsatisfiable' }

/**
 * Parses one byte range (RFC 9110 §14.1.2): `bytes=0-99`, `bytes=100-`, `bytes=-50`. Multiple ranges, other units and
 * malformed ranges return the whole file, as the RFC allows. So does an If-Range other than the current strong ETag
 * (§13.1.5).
 */
export function partOf(
  range: string | undefined,
  if_range: string | undefined,
  file: { readonly bytes: number; readonly etag: string },
): Part {
  const [, first_text, last_text] = /^bytes=\s*([0-9]{0,15})-([0-9]{0,15})\s*$/i.exec(range ?? '') ?? []
  if (first_text === undefined || last_text === undefined || (first_text === '' && last_text === ''))
    return { kind: 'whole' }
  if (if_range !== undefined && if_range.trim() !== file.etag) return { kind: 'whole' }
  if (first_text === '') {
    const wanted = Number(last_text)
    if (wanted === 0 || file.bytes === 0) return { kind: 'unsatisfiable' }
    return { kind: 'part', first: Math.max(0, file.bytes - wanted), last: file.bytes - 1 }
  }
  const first = Number(first_text)
  const last = last_text === '' ? file.bytes - 1 : Math.min(Number(last_text), file.bytes - 1)
  // `bytes=5-2` is malformed. A valid range that begins after the end of the file is unsatisfiable.
  if (last_text !== '' && Number(last_text) < first) return { kind: 'whole' }
  return first >= file.bytes ? { kind: 'unsatisfiable' } : { kind: 'part', first, last }
}
