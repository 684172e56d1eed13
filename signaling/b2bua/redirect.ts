/**
 * Where a 3xx sends us (RFC 3261 §8.1.3.4): the URIs of its contacts, the most wanted first (§20.10, `q`; 1 when there
 * is none), without the headers that a URI may want in the request.
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

/** The values of a header; commas in quotes and angle brackets part nothing. */
const VALUES = /(?:"(?:[^"\\]|\\.)*"|<[^<>]*>|[^,"<])+/g
const values = (header: string): string[] => header.slice(0, 4096).match(VALUES) ?? []
