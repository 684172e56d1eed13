import { createHmac } from 'node:crypto'
import { sameSecret } from '../../core/runtime/secrets.ts'

// Links to the file of an export, for people and programs without a key: `<id>.<expiry>.<proof>`.

/** How long links are valid, in seconds. */
export const LINK_SECONDS = { least: 60, most: 86_400, usual: 3600 } as const

const proofOf = (master_key: Buffer, id: string, until_seconds: number): string =>
  createHmac('sha256', master_key).update(`strowger export\0${id}\0${until_seconds}`).digest('base64url')

/** Returns the path of the link, valid until this time (Unix, in seconds). */
export const linkPath = (master_key: Buffer, id: string, until_seconds: number): string =>
  `/downloads/${id}.${until_seconds}.${proofOf(master_key, id, until_seconds)}`

/** Returns the id that the token of a link names; null when we did not make it, or its time is over. */
export function readLink(master_key: Buffer, token: string, now_ms: number): string | null {
  const [, id, until, proof] = /^(exp_[0-9a-f-]{36})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})$/.exec(token) ?? []
  if (id === undefined || until === undefined || proof === undefined) return null
  const until_seconds = Number(until)
  if (!sameSecret(proof, proofOf(master_key, id, until_seconds))) return null
  return until_seconds * 1000 > now_ms ? id : null
}
