import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/**
 * Returns why a certificate does not prove the identity `name`; undefined when it does. If the subject alternative
 * names contain `sip:` URIs, only these count (RFC 5922 §7.1).
 */
export function wrongName(name: string, certificate: PeerCertificate): Error | undefined {
  const uris = sipUrisOf(certificate)
  if (uris.length === 0) return checkServerIdentity(name, certificate)
  if (uris.some(uri => uri.toLowerCase() === name.toLowerCase())) return undefined
  return new Error(`the certificate is of ${uris.join(', ')}, not of ${name}`)
}

/** Returns the names that a certificate proves. Wildcards do not count (RFC 5922 §7.2). */
export function namesProved(certificate: PeerCertificate): readonly string[] {
  const uris = sipUrisOf(certificate)
  return uris.length > 0 ? uris : namesOf(certificate, 'DNS|IP Address').filter(name => !name.includes('*'))
}

/** Returns the SHA-256 of the certificate in lower-case hexadecimal. */
export const certificateFingerprint = ({ fingerprint256 }: PeerCertificate): string | undefined =>
  fingerprint256?.replaceAll(':', '').toLowerCase()

const sipUrisOf = (certificate: PeerCertificate): string[] =>
  namesOf(certificate, 'URI').flatMap(uri => /^sip:([^@]+)$/i.exec(uri)?.[1] ?? [])

/** Returns the subject alternative names of these kinds from Node's form: `DNS:a.example, URI:sip:b.example`. */
const namesOf = ({ subjectaltname = '' }: PeerCertificate, kinds: string): string[] =>
  [...subjectaltname.matchAll(new RegExp(`(?:^|, )(?:${kinds}):([^,]+)(?=,|$)`, 'gi'))].flatMap(found => found[1] ?? [])
