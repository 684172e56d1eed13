import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { iso } from '../../core/runtime/clock.ts'
import { countLiveCalls } from '../../core/state/calls/counters.ts'
import type { Db } from '../../core/state/index.ts'
import { type Usage, usageOf } from '../../core/state/people/subaccounts.ts'
import { Count64, Currency, Instant, Int32, list, Money, resource, type Static, Type } from '../http/schema.ts'

/** The usage of a subaccount or a subtrunk in the last 30 days. */
export const usageFields = {
  answered_calls: Int32,
  as_of: Instant,
  call_attempts: Int32,
  currency: Currency,
  live_calls: Int32,
  pending_spend_minor: Money,
  refusals: list(resource('RefusalCount', { count: Count64, reason: Type.String() })),
  settled_spend_minor: Money,
  window_from: Instant,
}

type Shown = { -readonly [F in keyof typeof usageFields]: Static<(typeof usageFields)[F]> }

export const USAGE_WINDOW_MS = 30 * 24 * 60 * 60 * 1000

export async function presentUsage(
  db: Db,
  level: 'subaccount' | 'subtrunk',
  id: string,
  now_ms: number,
): Promise<{ readonly shown: Shown; readonly usage: Usage }> {
  const window_from = iso(now_ms - USAGE_WINDOW_MS)
  const usage = await usageOf(db, level, id, window_from)
  const shown = {
    answered_calls: usage.answered_calls,
    as_of: iso(now_ms),
    call_attempts: usage.call_attempts,
    currency: CURRENCY,
    live_calls: (await countLiveCalls(db, level, [id])).get(id) ?? 0,
    pending_spend_minor: usage.pending_spend_minor,
    refusals: [...usage.refusals],
    settled_spend_minor: usage.settled_spend_minor,
    window_from,
  }
  return { shown, usage }
}
