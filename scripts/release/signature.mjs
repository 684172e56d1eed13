// The signature of a release's checksums: Ed25519 (RFC 8032), which openssl verifies.
import { createPrivateKey, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Signs a text with the key in this file (PEM). Check it by `openssl pkeyutl -verify -rawin` (docs/operations.md). */
export function signature(text, key_file) {
  const key = createPrivateKey(readFileSync(key_file))
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`${key_file} has no Ed25519 key`)
  return sign(null, Buffer.from(text), key)
}
