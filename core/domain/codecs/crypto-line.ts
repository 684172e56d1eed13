/** SDES key lines, RFC 4568 §9 and, for the AEAD suites, RFC 7714 §14.2. */

export type SrtpSuite =
  | 'AEAD_AES_128_GCM'
  | 'AEAD_AES_256_GCM'
  | 'AES_CM_128_HMAC_SHA1_80'
  | 'AES_CM_128_HMAC_SHA1_32'
  | 'AES_256_CM_HMAC_SHA1_80'
  | 'AES_256_CM_HMAC_SHA1_32'

/**
 * In the order of our offers: the AEAD suites cost a third and are stronger. The length includes key and salt.
 */
export const SRTP_SUITES: readonly { readonly suite: SrtpSuite; readonly key_bytes: number }[] = [
  { suite: 'AEAD_AES_128_GCM', key_bytes: 28 },
  { suite: 'AEAD_AES_256_GCM', key_bytes: 44 },
  { suite: 'AES_CM_128_HMAC_SHA1_80', key_bytes: 30 },
  { suite: 'AES_CM_128_HMAC_SHA1_32', key_bytes: 30 },
  { suite: 'AES_256_CM_HMAC_SHA1_80', key_bytes: 46 },
  { suite: 'AES_256_CM_HMAC_SHA1_32', key_bytes: 46 },
]

export interface CryptoLine {
  readonly tag: number
  readonly suite: SrtpSuite
  /** Base64 of key and salt. */
  readonly key: string
}

/**
 * Parses a crypto line. Returns null for one that we do not support: an unknown suite, several keys or a master key
 * identifier, a key of the wrong length, or session parameters that change the transform. Ignores the lifetime, which
 * is at most 2^48 packets.
 */
export function readCryptoLine(tag: string, suite: string, keys: string, parameters: string): CryptoLine | null {
  const known = SRTP_SUITES.find(candidate => candidate.suite === suite)
  if (!known || !/^\d{1,9}$/.test(tag)) return null
  if (parameters !== '' && !/^WSH=\d+$/.test(parameters)) return null
  const match = /^inline:([A-Za-z0-9+/]+={0,2})(\|(2\^\d{1,2}|\d{1,15}))?$/.exec(keys)
  if (!match?.[1] || base64Bytes(match[1]) !== known.key_bytes) return null
  return { tag: Number(tag), suite: known.suite, key: match[1] }
}

/** Returns the decoded length. Some peers omit the padding, so it is not counted. */
function base64Bytes(text: string): number {
  return Math.floor((text.replace(/=+$/, '').length * 6) / 8)
}

/** Compares keys as bytes, ignoring padding. */
export function sameKey(a: string, b: string): boolean {
  return a.replace(/=+$/, '') === b.replace(/=+$/, '')
}
