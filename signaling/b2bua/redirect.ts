/**
 * Reads the contacts of a 3xx (RFC 3261 §8.1.3.4). Returns their URIs, highest `q` first (§20.10; the default is 1),
 * without the header part that a URI may have.
 */
export function redirectUris(contact: string): string[] {
  return values(contact)
    .map(value => {
      const bracketed = /^[^<]*<([^<>]*)>(.*)$/s.exec(value)
      const [bare = '', ...parameters] = value.split(';')
      const uri = (bracketed?.[1] ?? bare).trim().split('?')[0] ?? ''
      const q = /;\s*q\s*=\s*([01](?:\.\d{0,3})?)/i.exec(bracketed ? (bracketed[2] ?? '') : `;${parameters.join(';')}`)
      return { uri, q: q ? Number(q[1]) : 1 }
    })
    .filter(({ uri }) => /^sips?:[^\s"<>]+$/i.test(uri))
    .sort((a, b) => b.q - a.q)
    .map(({ uri }) => uri)
}

/** The values of a header. Commas within quotes or angle brackets do not separate values. */
const VALUES = /(?:"(?:[^"\\]|\\.)*"|<[^<>]*>|[^,"<])+/g
const values = (header: string): string[] => header.slice(0, 4096).match(VALUES) ?? []
