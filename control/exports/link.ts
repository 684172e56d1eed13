import { createHmac } from 'node:crypto'
import { sameSecret } from '../../core/runtime/secrets.ts'

// Links to the file of an export, for people and programs without a key: `<id>.<expiry>.<maker>.<proof>`. The maker is
// the id of the key or the member that asked for it.

/** How long links are valid, in seconds. */
export const LINK_SECONDS = { least: 60, most: 86_400, usual: 3600 } as const

interface Link {
  readonly id: string
  /** Unix time. */
  readonly until_seconds: number
  readonly maker: string
}

const TOKEN = /^(exp_[0-9a-f-]{36})\.([0-9]{1,12})\.((?:key|mem)_[0-9a-f-]{36})\.([A-Za-z0-9_-]{43})$/

const proofOf = (master_key: Buffer, { id, until_seconds, maker }: Link): string =>
  createHmac('sha256', master_key).update(`strowger export\0${id}\0${until_seconds}\0${maker}`).digest('base64url')

/** Returns the path of the link. */
export const linkPath = (master_key: Buffer, link: Link): string =>
  `/downloads/${link.id}.${link.until_seconds}.${link.maker}.${proofOf(master_key, link)}`

/** Returns what the token of a link names; null when we did not make it, or its time is over. */
export function readLink(master_key: Buffer, token: string, now_ms: number): Link | null {
  const [, id, until, maker, proof] = TOKEN.exec(token) ?? []
  if (id === undefined || until === undefined || maker === undefined || proof === undefined) return null
  const link = { id, until_seconds: Number(until), maker }
  if (!sameSecret(proof, proofOf(master_key, link))) return null
  return link.until_seconds * 1000 > now_ms ? link : null
}
