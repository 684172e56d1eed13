import { iso } from '../../runtime/clock.ts'
import type { Db } from '../db.ts'

/**
 * Digest nonces that all machines accept. The machine that claims a nonce first counts its uses; the others refuse it.
 */

/** Much longer than a nonce is valid: a machine whose clock is an hour ahead must not remove a claim too early. */
const KEPT_MS = 2 * 3_600_000
/** The nonce ends with its HMAC, which tells it apart. */
const MAC = 24

/** Claims a nonce for the calling process. Returns false when it has been claimed before. @throws StateError */
export async function claimNonce(db: Db, nonce: string, now_ms: number): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('nonce_claim')
    .values({ mac: nonce.slice(-MAC), expires_at: iso(now_ms + KEPT_MS) })
    .onConflict(conflict => conflict.column('mac').doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

export const pruneNonceClaims = async (db: Db, now_ms: number): Promise<void> => {
  await db.deleteFrom('nonce_claim').where('expires_at', '<=', iso(now_ms)).execute()
}
