import { type Admitted, admit, paidUntil, type Verdict } from '../../../domain/admission/index.ts'
import { MICRO_PER_MINOR } from '../../../domain/rating/types.ts'
import type { Reason } from '../../../domain/reasons/index.ts'
import { ceilings } from '../ceilings/index.ts'
import type { Caps, SpendChange } from '../ceilings/spend.ts'
import { numberOf, numberOrNull, type Query, textOf, textOrNull, tuples } from '../query.ts'
import { type Gathered, gatherFacts, revisionsOf } from './gather.ts'
import type { AdmissionOutcome, AdmissionRequest, DecisionFacts } from './request.ts'

interface TakeInput {
  readonly request: AdmissionRequest
  readonly dry_run: boolean
}

/**
 * Reads the facts, decides, and takes the slots and the money. Two calls never take the same last slot: on SQLite
 * because the transaction is exclusive, elsewhere because the take is conditional and retried (decision 0641).
 */
export function take(query: Query, { request, dry_run }: TakeInput): AdmissionOutcome {
  const store_ms = request.store_ms ?? query.now_ms()
  const gathered = gatherFacts(query, request, store_ms)
  const verdict = admit(gathered.facts)
  if (!dry_run) {
    if (verdict.admitted) takeAll(query, request, gathered, verdict)
    else countRefusal(query, request, gathered, verdict.reason)
  }
  return Object.assign(contextOf(query, gathered, verdict), verdict)
}

const INSERT_LEASE = `insert into lease (call_sid, part, node_id, subtrunk_id, trunk_id, policy_id, parent_policy_id,
    subaccount_id, project_id, begun_at) values ${tuples(1, 10)}`
const INSERT_RESERVATION = `insert into reservation (call_sid, project_id, billing_account_id, billing, destination,
    price_book_id, price_book_revision, rate_id, rate_prefix, rate_label, rate_micro, rate_unit,
    increment_initial_seconds, increment_additional_seconds, currency, day, held_minute, caps, held_minor,
    paid_until_seconds, begun_at, direction) values ${tuples(1, 22)}`

function takeAll(query: Query, request: AdmissionRequest, gathered: Gathered, verdict: Admitted): void {
  const { trunk, subtrunk, subaccount, policies, usage, second } = gathered
  const caps: Caps = usage.levels.map(({ level, id, daily_spend, velocity }) => [
    level,
    id,
    daily_spend.limit,
    velocity.limit,
  ])
  // The first write: when the facts have changed since they were read, there is nothing to undo.
  ceilings.take(query, { usage, second, money: moneyOf(gathered, caps, verdict) })
  const begun_at = new Date(request.now_ms).toISOString()
  const own = policies.at(-1)
  const parent = policies.length > 1 ? policies[0] : undefined
  query(
    INSERT_LEASE,
    request.call_sid,
    request.second_route ? 'fallback' : request.part,
    request.node_id,
    subtrunk ? textOf(subtrunk, 'id') : null,
    trunk ? textOf(trunk, 'id') : null,
    own ? textOf(own, 'id') : null,
    parent && parent !== own && textOf(parent, 'id') !== textOf(own ?? {}, 'id') ? textOf(parent, 'id') : null,
    subaccount ? textOf(subaccount, 'id') : null,
    request.project_id,
    begun_at,
  )
  if (request.part === 'outbound' || gathered.facts.rate) reserve(query, request, gathered, caps, verdict)
}

const DELETE_LEASES = 'delete from lease where call_sid = ?'
const DELETE_RESERVATION = 'delete from reservation where call_sid = ?'

/** Gives back what was taken for a call that has not begun, as if it had not been taken. */
export function giveBack(query: Query, call_sid: string, now_ms: number): void {
  ceilings.release(query, { call_sid, duration_seconds: 0, answered: false, now_ms })
  query(DELETE_LEASES, call_sid)
  query(DELETE_RESERVATION, call_sid)
}

function moneyOf(
  { project, day, minute, has_account }: Gathered,
  caps: Caps,
  { reserve_minor: minor }: Admitted,
): SpendChange | null {
  if (minor <= 0) return null
  return { caps, day, minute, account: has_account ? textOf(project, 'billing_account_id') : null, minor }
}

function reserve(query: Query, request: AdmissionRequest, gathered: Gathered, caps: Caps, verdict: Admitted): void {
  const { facts, project, price_book, day, minute } = gathered
  const { rate, billing } = facts
  query(
    INSERT_RESERVATION,
    request.call_sid,
    request.project_id,
    textOf(project, 'billing_account_id'),
    billing,
    facts.called.number?.e164 ?? facts.over,
    price_book ? textOf(price_book, 'id') : null,
    price_book ? numberOf(price_book, 'revision') : null,
    rate?.id ?? null,
    rate?.prefix ?? null,
    rate?.label ?? null,
    rate?.rate_micro ?? 0,
    rate?.rate_unit ?? 'minute',
    rate?.increment_initial_seconds ?? 1,
    rate?.increment_additional_seconds ?? 1,
    textOf(project, 'currency'),
    day,
    minute,
    JSON.stringify(caps),
    verdict.reserve_minor,
    paidUntil(facts),
    new Date(request.now_ms).toISOString(),
    request.part,
  )
}

function countRefusal(query: Query, request: AdmissionRequest, { facts, day }: Gathered, reason: Reason): void {
  // A REST call over the CPS limit waits and retries: it is delayed, not refused.
  if (reason === 'cps_exceeded' && request.transport === null) return
  query(
    `insert into refusal_day (level, subject_id, day, reason, count) values ${tuples(facts.levels.length, 5)}
    on conflict (subject_id, level, day, reason) do update set count = refusal_day.count + 1`,
    ...facts.levels.flatMap(({ level, id }) => [level, id, day, reason, 1]),
  )
  if (reason !== 'DESTINATION_CONTAINED') return
  const digits = facts.called.number?.digits ?? ''
  const hit = facts.containments.find(({ prefix }) => digits.startsWith(prefix))
  if (hit) query('update containment set rejection_count = rejection_count + 1 where id = ?', hit.id)
}

function contextOf(query: Query, gathered: Gathered, verdict: Verdict): DecisionFacts {
  const { facts, project, price_book, trunk, subtrunk, subaccount, policies, egress_trunk_id } = gathered
  const { rate } = facts
  const policy = policies.at(-1)
  return {
    called: facts.called.number,
    caller_e164: facts.caller.e164,
    caller_ownership: facts.caller.ownership,
    trunk_id: egress_trunk_id ?? (trunk ? textOrNull(trunk, 'id') : null),
    subtrunk_id: subtrunk ? textOf(subtrunk, 'id') : null,
    subaccount_id: subaccount ? textOf(subaccount, 'id') : null,
    policy_id: policy ? textOf(policy, 'id') : null,
    recording: recordingOf(query, gathered),
    revisions: revisionsOf(gathered),
    price:
      rate && price_book
        ? {
            price_book_id: textOf(price_book, 'id'),
            rate_prefix: rate.prefix,
            label: rate.label,
            rate_minor: Math.ceil(rate.rate_micro / MICRO_PER_MINOR),
            rate_unit: rate.rate_unit,
            increment_initial_seconds: rate.increment_initial_seconds,
            increment_additional_seconds: rate.increment_additional_seconds,
            currency: textOf(project, 'currency'),
          }
        : null,
    paid_until_seconds: verdict.admitted ? paidUntil(facts) : null,
  }
}

/** Any recording policy has the call recorded. The longest retention of those policies applies. */
function recordingOf(query: Query, { policies, facts, project }: Gathered): DecisionFacts['recording'] {
  const first = policies[0]
  if (!first || facts.direction !== 'outbound') return null
  const recording = policies.filter(policy => textOf(policy, 'recording_mode') === 'all')
  if (recording.length === 0)
    return { mode: 'off', consented: false, channels: 2, retention_days: numberOf(first, 'recording_retention_days') }
  const consent = query('select 1 as one from recording_consent where project_id = ?', textOf(project, 'id'))
  return {
    mode: 'all',
    consented: consent.length > 0,
    channels: 2,
    retention_days: Math.max(...recording.map(policy => numberOrNull(policy, 'recording_retention_days') ?? 30)),
  }
}
