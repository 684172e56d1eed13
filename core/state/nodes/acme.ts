import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { AcmeProofTable, Db } from '../db.ts'
import type { State } from '../index.ts'

/** Certificates by ACME that machines with the same names share, and the proofs that they show for each other. */

/** The certificate of a set of names by one authority. */
export interface CertificateKey {
  readonly directory: string
  /** Sorted, separated by spaces. */
  readonly names: string
}

/** A proof that an authority may ask any machine for to which the name leads. */
type Proof = Selectable<AcmeProofTable>

/** Longer than an order takes. */
const ORDER_MS = 10 * 60_000
/** How long nobody else orders after an attempt that failed. */
const REST_MS = 3600_000
/** Longer than the time between two signs of life. */
const LIVE_MS = 3 * 60_000

/** Returns the sealed key and chain; '' when none was issued yet. */
export async function sealedCertificate(db: Db, { directory, names }: CertificateKey): Promise<string> {
  const row = await db
    .selectFrom('acme_certificate')
    .select('pem')
    .where('directory', '=', directory)
    .where('names', '=', names)
    .executeTakeFirst()
  return row?.pem ?? ''
}

/**
 * Gives the order of a certificate to one machine. A failed attempt of any machine counts for an hour, but not for one
 * that has just started: its operator may have mended the cause. Returns false while another machine orders, and when
 * one has ended its order since `seen` was read.
 */
export const claimOrder = (
  state: State,
  key: CertificateKey,
  { machine_id, started, seen }: { readonly machine_id: string; readonly started: boolean; readonly seen: string },
): Promise<boolean> =>
  state.shortTransaction(async trx => {
    const now_ms = state.clock.now()
    await trx
      .insertInto('acme_certificate')
      .values(key)
      .onConflict(conflict => conflict.doNothing())
      .execute()
    const claimed = await trx
      .updateTable('acme_certificate')
      .set({ ordered_by: machine_id, ordered_until: iso(now_ms + ORDER_MS) })
      .where('directory', '=', key.directory)
      .where('names', '=', key.names)
      .where('pem', '=', seen)
      // A machine whose process was killed in the middle begins again.
      .where(eb => eb.or([eb('ordered_until', '<=', iso(now_ms)), eb('ordered_by', '=', machine_id)]))
      .$if(!started, of => of.where('failed_at', '<=', iso(now_ms - REST_MS)))
      .executeTakeFirst()
    return claimed.numUpdatedRows === 1n
  })

/** Ends an order: with the sealed key and chain, or without. */
export async function endOrder(state: State, { directory, names }: CertificateKey, pem: string | null): Promise<void> {
  const failed_at = iso(state.clock.now())
  await state.db
    .updateTable('acme_certificate')
    .set(pem === null ? { ordered_until: '', failed_at } : { ordered_until: '', failed_at: '', pem })
    .where('directory', '=', directory)
    .where('names', '=', names)
    .execute()
}

export const putProof = (state: State, proof: Omit<Proof, 'until'>): Promise<void> =>
  state.shortTransaction(async trx => {
    const now_ms = state.clock.now()
    await trx.deleteFrom('acme_proof').where('until', '<=', iso(now_ms)).execute()
    await trx
      .insertInto('acme_proof')
      .values({ ...proof, until: iso(now_ms + ORDER_MS) })
      .execute()
  })

export async function removeProof(db: Db, token: string): Promise<void> {
  await db.deleteFrom('acme_proof').where('token', '=', token).execute()
}

/** How a machine is asked for proofs. */
type Shower = Pick<Proof, 'machine_id' | 'type'>

/** Returns the proofs that a machine shows for the others with the same names. */
export const proofsOfOthers = (
  db: Db,
  { directory, names }: CertificateKey,
  { machine_id, type }: Shower,
  now_ms: number,
): Promise<Proof[]> =>
  db
    .selectFrom('acme_proof')
    .selectAll()
    .where('directory', '=', directory)
    .where('names', '=', names)
    .where('type', '=', type)
    .where('machine_id', '!=', machine_id)
    .where('until', '>', iso(now_ms))
    .execute()

/** Writes down that a machine has these names, and which proofs it shows. */
export const putShower = (
  state: State,
  key: CertificateKey,
  { machine_id, type }: Shower,
  shown: readonly string[],
): Promise<void> =>
  state.shortTransaction(async trx => {
    const now_ms = state.clock.now()
    const row = { ...key, type, shown: shown.join(' '), seen_at: iso(now_ms) }
    await trx
      .deleteFrom('acme_machine')
      .where('seen_at', '<=', iso(now_ms - LIVE_MS))
      .execute()
    await trx
      .insertInto('acme_machine')
      .values({ machine_id, ...row })
      .onConflict(conflict => conflict.column('machine_id').doUpdateSet(row))
      .execute()
  })

/** Returns the other live machines with the same names that do not show a proof yet. */
export async function notShowing(
  db: Db,
  { directory, names }: CertificateKey,
  { machine_id, type }: Shower,
  { token, now_ms }: { readonly token: string; readonly now_ms: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom('acme_machine')
    .select(['machine_id', 'shown'])
    .where('directory', '=', directory)
    .where('names', '=', names)
    .where('type', '=', type)
    .where('machine_id', '!=', machine_id)
    .where('seen_at', '>', iso(now_ms - LIVE_MS))
    .execute()
  return rows.filter(({ shown }) => !shown.split(' ').includes(token)).map(row => row.machine_id)
}
