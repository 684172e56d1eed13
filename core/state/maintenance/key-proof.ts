import { proofOfKey, sameSecret, unseal } from '../../runtime/secrets.ts'
import { StartRefused } from '../../runtime/start-refused.ts'
import type { Db } from '../db.ts'
import type { State } from '../port.ts'

/** What the proof is about: proofs for other purposes are of other words. */
const ABOUT = 'database'

/**
 * Refuses an installation whose master key is not that of its database: it could read no secret of it, and would write
 * ones that the others cannot read. The first installation leaves its proof. @throws StartRefused
 */
export async function refuseForeignKey(state: State, master_key: Buffer, now: string): Promise<void> {
  const proof = proofOfKey(master_key, ABOUT)
  const known =
    (await proofIn(state.db)) ??
    (await state.transaction(async trx => {
      const earlier = await proofIn(trx)
      if (earlier !== undefined) return earlier
      // A database of before this table: its secrets tell.
      const account = await trx.selectFrom('voice_account').select('auth_token_sealed').limit(1).executeTakeFirst()
      if (account && !opens(master_key, account.auth_token_sealed)) return ''
      await trx.insertInto('key_proof').values({ id: 1, proof, created_at: now }).execute()
      return proof
    }))
  if (!sameSecret(known, proof))
    throw new StartRefused(
      'the master key is not that of the database: copy master.key from the data folder of a machine that uses it, or ' +
        'set STROWGER_MASTER_KEY to the same',
    )
}

const proofIn = async (db: Db): Promise<string | undefined> =>
  (await db.selectFrom('key_proof').select('proof').where('id', '=', 1).executeTakeFirst())?.proof

function opens(master_key: Buffer, sealed: string): boolean {
  try {
    unseal(master_key, sealed)
    return true
  } catch {
    return false
  }
}
