import type { Generated } from 'kysely'
import type { Flag, Instant, JsonText } from './configuration.ts'

/**
 * A list of sell rates in force from a moment on. The project's newest one in force applies, otherwise the operator's.
 */
export interface PriceBookTable {
  id: string
  /** Null: the operator's book, for every project without its own. */
  project_id: string | null
  /** Set: a cost book, what this carrier takes for calls. It sells nothing. */
  carrier_id: Generated<string | null>
  name: string
  direction: 'outbound' | 'inbound'
  currency: string
  effective_from: Instant
  revision: number
  created_at: Instant
}

/** A price book whose rates are being written. Its rates apply when the book is there. */
export interface PriceBookDraftTable {
  /** The id of the book to be. */
  id: string
  created_at: Instant
}

export interface RateTable {
  id: string
  price_book_id: string
  /** Digits after the plus. */
  prefix: string
  label: string
  /** Millionths of a minor unit per `rate_unit` (docs/calls.md). */
  rate_micro: number
  rate_unit: 'minute' | 'second'
  increment_initial_seconds: number
  increment_additional_seconds: number
}

/** The account that pays. An account without a row, or one that is not prepaid, has no balance ceiling. */
export interface BillingAccountTable {
  id: string
  name: string
  currency: string
  prepaid: Flag
  /** Settled; may be below zero down to `-credit_minor`. */
  balance_minor: number
  credit_minor: number
  /** The amount that running calls reserve. */
  held_minor: number
}

/** Every change of a balance. Rows never change. */
export interface LedgerTable {
  position: Generated<number>
  billing_account_id: string
  project_id: string | null
  /** `charge`: a call. `number`: a month of a number; `reference` names both. */
  kind: 'charge' | 'number' | 'top_up' | 'adjustment'
  /** Negative for a debit. */
  amount_minor: number
  balance_after_minor: number
  call_sid: string | null
  /** Why an operator changed the balance. */
  note: string | null
  /** The operator's reference of a payment, such as a bank's. */
  reference: string | null
  at: Instant
}

/**
 * Slots that a call holds from `begun_at` to `ended_at`, one at each level named. Kept 30 days, to show who held which
 * slot at any past second.
 */
export interface LeaseTable {
  id: Generated<number>
  call_sid: string
  /** A call between two of our trunks holds slots on both sides, and one that took a second route on that too. */
  part: 'outbound' | 'inbound' | 'on_net' | 'fallback'
  node_id: string
  subtrunk_id: string | null
  trunk_id: string | null
  policy_id: string | null
  /** The policy of a subtrunk's trunk, when the subtrunk also has its own. */
  parent_policy_id: string | null
  subaccount_id: string | null
  project_id: string
  begun_at: Instant
  ended_at: Instant | null
}

/** Counters of a level. The transactions that take and release leases keep them consistent. */
export interface LevelUseTable {
  level: 'subtrunk' | 'trunk' | 'policy' | 'subaccount' | 'project'
  subject_id: string
  live: number
  /** Times of the last takes (core/state/procedures/ceilings/window.ts); empty without a CPS ceiling. */
  takes: string
}

/** Money that a running call reserves, the inputs of its price, and its final charge. */
export interface ReservationTable {
  call_sid: string
  project_id: string
  billing_account_id: string
  billing: 'rated' | 'free'
  /** `inbound`: a call that a carrier brought to a number of the project. */
  direction: Generated<'outbound' | 'inbound'>
  destination: string
  price_book_id: string | null
  price_book_revision: number | null
  rate_id: string | null
  rate_prefix: string | null
  rate_label: string | null
  rate_micro: number
  rate_unit: 'minute' | 'second'
  increment_initial_seconds: number
  increment_additional_seconds: number
  currency: string
  /** Day in the organization's time zone to which the spend belongs. */
  day: string
  /** Minute of the store's clock in which money was last reserved. */
  held_minute: number
  /** JSON: the levels and their caps at admission. */
  caps: JsonText
  held_minor: number
  /** Seconds after the answer that are paid for; null when the call costs nothing. */
  paid_until_seconds: number | null
  begun_at: Instant
  settled_at: Instant | null
  duration_seconds: number | null
  billed_seconds: number | null
  charge_minor: number | null
  /** The carrier that took the call, and what it takes for it; null without one. */
  carrier_id: Generated<string | null>
  cost_minor: Generated<number | null>
  /** The position of its call, written when it is settled. Reservations of before the column have none. */
  call_position: Generated<number | null>
}

/** Settled and reserved spend of a level in a day of the organization's time zone. */
export interface SpendDayTable {
  level: LevelUseTable['level']
  subject_id: string
  day: string
  spent_minor: number
}

/** Spend by minute of the store's clock, for rolling hours. Only subtrunks and projects have a velocity cap. */
export interface SpendMinuteTable {
  level: LevelUseTable['level']
  subject_id: string
  minute: number
  spent_minor: number
}

/** Refused calls of a level in a day of the organization's time zone, by reason. */
export interface RefusalDayTable {
  level: LevelUseTable['level']
  subject_id: string
  day: string
  reason: string
  count: number
}
