import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/**
 * Why a certificate does not prove that its holder is `name`; undefined when it does. RFC 5922 §7.1: where a `sip:` URI
 * is among the subject's alternative names, it counts and no other name does.
 */
export function wrongName(name: string, certificate: PeerCertificate): Error | undefined {
  const uris = sipUrisOf(certificate)
  if (uris.length === 0) return checkServerIdentity(name, certificate)
  if (uris.some(uri => uri.toLowerCase() === name.toLowerCase())) return undefined
  return new Error(`the certificate is of ${uris.join(', ')}, not of ${name}`)
}

/** The names that a certificate proves. A wildcard is no name (RFC 5922 §7.2). */
export function namesProved(certificate: PeerCertificate): readonly string[] {
  const uris = sipUrisOf(certificate)
  return uris.length > 0 ? uris : namesOf(certificate, 'DNS|IP Address').filter(name => !name.includes('*'))
}

/** SHA-256 of the certificate in lower-case hexadecimal. */
export const fingerprintOf = ({ fingerprint256 }: PeerCertificate): string | undefined =>
  fingerprint256?.replaceAll(':', '').toLowerCase()

const sipUrisOf = (certificate: PeerCertificate): string[] =>
  namesOf(certificate, 'URI').flatMap(uri => /^sip:([^@]+)$/i.exec(uri)?.[1] ?? [])

/** Subject alternative names of these kinds, as Node.js writes them: `DNS:a.example, URI:sip:b.example`. */
const namesOf = ({ subjectaltname = '' }: PeerCertificate, kinds: string): string[] =>
  [...subjectaltname.matchAll(new RegExp(`(?:^|, )(?:${kinds}):([^,]+)(?=,|$)`, 'gi'))].flatMap(found => found[1] ?? [])
