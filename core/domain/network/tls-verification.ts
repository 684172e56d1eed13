/** How a target proves by TLS that it is itself. */
export type TlsVerification =
  /** Its chain leads to an authority that this machine trusts, and its certificate names the target. */
  | { readonly mode: 'required' }
  /** Its certificate is this one: SHA-256 of its DER form, 64 hexadecimal digits in lower case. */
  | { readonly mode: 'pinned'; readonly fingerprint: string }
  /** It need not. */
  | { readonly mode: 'off' }
  /** It did, or need not, on a connection that it made itself: that is used, and no other is opened. */
  | { readonly mode: 'flow' }

/** As rows keep it. */
export const verificationOf = (row: {
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint: string | null
}): TlsVerification => {
  if (row.tls_verification !== 'pinned') return { mode: row.tls_verification }
  // A pin without a fingerprint is nobody's: no certificate has this one.
  return { mode: 'pinned', fingerprint: row.tls_fingerprint ?? '' }
}

/** The parameter of a next hop by which the SIP server is told; it is never part of a message. */
export const VERIFICATION_PARAMETER = 'x-tls-verification'

/** What stands in that parameter; a server that does not know it verifies as it is configured. */
export const verificationText = (verification: TlsVerification): string =>
  verification.mode === 'pinned' ? `pinned-${verification.fingerprint}` : verification.mode

export function readVerification(text: string | undefined): TlsVerification | undefined {
  if (text === 'off' || text === 'flow' || text === 'required') return { mode: text }
  if (text?.startsWith('pinned-')) return { mode: 'pinned', fingerprint: text.slice('pinned-'.length) }
  return undefined
}

/** A SHA-256 fingerprint as people copy it, colons or not; null when it is none. */
export function readFingerprint(text: string): string | null {
  const digits = text.replace(/[:\s]/g, '').toLowerCase()
  return /^[0-9a-f]{64}$/.test(digits) ? digits : null
}
