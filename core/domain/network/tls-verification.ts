/** How the TLS certificate of a target is verified. */
export type TlsVerification =
  /** By a chain to an authority that this machine trusts, and by the target's name. */
  | { readonly mode: 'required' }
  /** By the fingerprint: SHA-256 of the certificate's DER form, 64 lower-case hexadecimal digits. */
  | { readonly mode: 'pinned'; readonly fingerprint: string }
  /** Not at all. */
  | { readonly mode: 'off' }
  /** Already decided on a connection that the peer opened. Only that connection is used. */
  | { readonly mode: 'flow' }

/** Converts the columns of a row. */
export const verificationOf = (row: {
  readonly tls_verification: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint: string | null
}): TlsVerification => {
  if (row.tls_verification !== 'pinned') return { mode: row.tls_verification }
  // No certificate matches an empty fingerprint.
  return { mode: 'pinned', fingerprint: row.tls_fingerprint ?? '' }
}

/** The parameter of a next hop that instructs the SIP server. It is never part of a message. */
export const VERIFICATION_PARAMETER = 'x-tls-verification'

/** Returns the value of that parameter. A server that does not support it verifies as configured. */
export const verificationText = (verification: TlsVerification): string =>
  verification.mode === 'pinned' ? `pinned-${verification.fingerprint}` : verification.mode

export function readVerification(text: string | undefined): TlsVerification | undefined {
  if (text === 'off' || text === 'flow' || text === 'required') return { mode: text }
  if (text?.startsWith('pinned-')) return { mode: 'pinned', fingerprint: text.slice('pinned-'.length) }
  return undefined
}

/** Parses a SHA-256 fingerprint with or without colons. Returns null for anything else. */
export function readFingerprint(text: string): string | null {
  const digits = text.replace(/[:\s]/g, '').toLowerCase()
  return /^[0-9a-f]{64}$/.test(digits) ? digits : null
}
