import type { Db, Trx } from '../db.ts'
import { queueWrite } from '../port.ts'

/** What a write answered, to be repeated when the same request comes again. One-time secrets are not in it. */
interface StoredOutcome {
  readonly request_hash: string
  readonly status: number
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

/** The outcome kept for this key, caller and path; undefined when there is none or it has expired. */
export async function findOutcome(trx: Trx, scope_hash: string, now: string): Promise<StoredOutcome | undefined> {
  const row = await trx
    .selectFrom('idempotency')
    .selectAll()
    .where('scope_hash', '=', scope_hash)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  if (!row || row.status === null) return undefined
  return {
    request_hash: row.request_hash,
    status: row.status,
    body: row.body === null ? undefined : JSON.parse(row.body),
    headers: row.headers === null ? {} : JSON.parse(row.headers),
  }
}

/** Keeps an outcome, in the transaction of the write itself: either both are there or neither is. */
export async function storeOutcome(
  trx: Trx,
  scope_hash: string,
  outcome: StoredOutcome,
  times: { readonly now: string; readonly expires_at: string },
): Promise<void> {
  await queueWrite(trx, trx.deleteFrom('idempotency').where('scope_hash', '=', scope_hash))
  const query = trx.insertInto('idempotency').values({
    scope_hash,
    request_hash: outcome.request_hash,
    state: 'done',
    status: outcome.status,
    body: outcome.body === undefined ? null : JSON.stringify(outcome.body),
    headers: JSON.stringify(outcome.headers),
    created_at: times.now,
    expires_at: times.expires_at,
  })
  await queueWrite(trx, query)
}

/** Forgets outcomes whose time is over; returns how many. */
export async function dropExpiredOutcomes(db: Db, now: string): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('idempotency').where('expires_at', '<=', now).executeTakeFirst()
  return Number(numDeletedRows)
}
