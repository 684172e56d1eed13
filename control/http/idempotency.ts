import { createHash } from 'node:crypto'
import { canonicalJson } from '../../core/domain/text/canonical-json.ts'
import { iso } from '../../core/runtime/clock.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { findOutcome, storeOutcome } from '../../core/state/people/idempotency.ts'
import { type Refusal, refuse } from './reply.ts'

const KEPT_MS = 24 * 60 * 60 * 1000
const MAX_CHARACTERS = 128

/** Reads the idempotency key of a request; undefined when it has none and none is required. */
export function idempotencyKeyOf(header: string | undefined, required: boolean): string | undefined | Refusal {
  if (header === undefined) return required ? refuse('idempotency_key_required') : undefined
  const key = header.trim()
  return key === '' || key.length > MAX_CHARACTERS ? refuse('idempotency_key_required') : key
}

/** Hashes of the scope of an idempotency key and of the request that used it, so that no client data is stored. */
export interface IdempotentRequest {
  readonly scope_hash: string
  readonly request_hash: string
}

export function idempotentRequest(request: {
  readonly key: string
  /** The project, or the organization when the route does not concern a project. */
  readonly owner_id: string
  /** The subaccount of a restricted key, so that no key gets an answer meant for another subaccount. */
  readonly subaccount_id: string | null
  readonly method: string
  readonly path: string
  readonly search: string
  readonly body: unknown
}): IdempotentRequest {
  const { key, owner_id, subaccount_id, method, path, search, body } = request
  return {
    scope_hash: hashOf(owner_id, subaccount_id ?? '', method, path, key),
    request_hash: hashOf(search, canonicalJson(body ?? null)),
  }
}

const hashOf = (...parts: readonly string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex')

interface ReplayableAnswer {
  readonly status: number
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Returns the stored outcome of an earlier identical request, if any. Read it inside the write transaction, too: write
 * transactions are serialized, so that the second of two concurrent requests finds the outcome of the first.
 */
export async function earlierOutcome(
  db: Db | Trx,
  request: IdempotentRequest,
  now: string,
): Promise<ReplayableAnswer | undefined | Refusal> {
  const stored = await findOutcome(db, request.scope_hash, now)
  if (!stored) return undefined
  if (stored.request_hash !== request.request_hash) return refuse('idempotency_key_reused')
  return stored
}

export const keepOutcome = (
  trx: Trx,
  request: IdempotentRequest,
  answer: ReplayableAnswer,
  now_ms: number,
): Promise<void> =>
  storeOutcome(
    trx,
    request.scope_hash,
    { request_hash: request.request_hash, ...answer },
    { now: iso(now_ms), expires_at: iso(now_ms + KEPT_MS) },
  )
