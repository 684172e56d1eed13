import type { Db, Trx } from '../db.ts'
import { queueWrite } from '../port.ts'

/** The stored response to a write, replayed when the same request is repeated. It holds no one-time secrets. */
interface StoredOutcome {
  readonly request_hash: string
  readonly status: number
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

/** Finds the outcome stored for this key, caller and path; undefined when there is none or it has expired. */
export async function findOutcome(db: Db | Trx, scope_hash: string, now: string): Promise<StoredOutcome | undefined> {
  const row = await db
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

/** Stores an outcome. In the write's own transaction both commit atomically. */
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

/** Deletes expired outcomes. Returns their number. */
export async function dropExpiredOutcomes(db: Db, now: string): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('idempotency').where('expires_at', '<=', now).executeTakeFirst()
  return Number(numDeletedRows)
}
