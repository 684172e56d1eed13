import { iso } from '../../core/runtime/clock.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import {
  earlierOutcome,
  type IdempotentRequest,
  idempotencyKeyOf,
  idempotentRequest,
  keepOutcome,
} from '../http/idempotency.ts'
import { isRefusal } from '../http/reply.ts'
import { forReason, isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import type { Form } from './form.ts'
import type { VoiceContext } from './route.ts'

type Answered<Body> = {
  readonly status: 201
  readonly body: Body
  readonly headers?: Readonly<Record<string, string>>
}
type Outcome<Body> = Promise<Answered<Body> | VoiceRefusal>

interface Work<Asked, Body> {
  /** Reads and judges the request, before the transaction. */
  readonly prepare: () => Promise<Asked | VoiceRefusal>
  readonly make: (trx: Trx, asked: Asked) => Promise<Body | VoiceRefusal>
  /** Carries out a request that has no key; `make` in a transaction, unless this is given. */
  readonly makeWithoutKey?: (asked: Asked) => Promise<Body | VoiceRefusal>
}

/**
 * Carries out a request once for each Idempotency-Key. A repeat gets the stored answer, whatever has changed since: it
 * is not judged again. A refused request wrote nothing and does not consume its key.
 */
export async function onceByKey<Asked, Body>(
  context: VoiceContext & { readonly form: Form },
  { prepare, make, makeWithoutKey }: Work<Asked, Body>,
): Outcome<Body> {
  const { state } = context.services
  const identity = identityOf(context)
  if (isVoiceRefusal(identity)) return identity
  const earlier = identity && (await storedAnswer<Body>(state.db, identity, context.now_ms))
  if (earlier) return earlier
  const asked = await prepare()
  if (isVoiceRefusal(asked)) return asked
  if (!identity) {
    const made = await (makeWithoutKey?.(asked) ?? state.transaction(trx => make(trx, asked)))
    return isVoiceRefusal(made) ? made : { status: 201, body: made }
  }
  return state.transaction(async (trx): Outcome<Body> => {
    // Another request with this key may have come while this one was prepared.
    const stored = await storedAnswer<Body>(trx, identity, context.now_ms)
    if (stored) return stored
    const made = await make(trx, asked)
    if (isVoiceRefusal(made)) return made
    await keepOutcome(trx, identity, { status: 201, body: made, headers: {} }, context.now_ms)
    return { status: 201, body: made }
  })
}

function identityOf({ account, request, form, path }: VoiceContext & { readonly form: Form }) {
  const key = idempotencyKeyOf(request.headers['idempotency-key'] as string | undefined, false)
  if (isRefusal(key)) return numbered(20001, 'Idempotency-Key is nonblank and at most 128 characters.')
  const owner = { owner_id: account.project_id, subaccount_id: null }
  const said = { method: 'POST', path, search: '', body: [...form.entries] }
  return key === undefined ? undefined : idempotentRequest({ key, ...owner, ...said })
}

async function storedAnswer<Body>(
  db: Db | Trx,
  identity: IdempotentRequest,
  now_ms: number,
): Promise<Answered<Body> | VoiceRefusal | undefined> {
  const earlier = await earlierOutcome(db, identity, iso(now_ms))
  if (isRefusal(earlier)) return forReason(earlier.refused)
  return earlier && { status: 201, body: earlier.body as Body, headers: { 'Idempotent-Replayed': 'true' } }
}
