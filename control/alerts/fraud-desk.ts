import { protectedBy } from '../../core/domain/fraud/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import {
  type ContainmentRow,
  decideRelease,
  type ReleaseRequestRow,
  releaseContainment,
} from '../../core/state/alerts/containments.ts'
import { protectedFacts } from '../../core/state/alerts/traffic-facts.ts'
import type { Trx } from '../../core/state/index.ts'
import { type Change, type Refusal, refuse } from '../http/reply.ts'
import { lines, oneOf, Type } from '../http/schema.ts'
import { containmentEvent, newCaseRef, openContainment } from './contain.ts'

/** What operators decide about closed prefixes, by /operator/v1, a command or the console: one rule for all of them. */

export const ContainmentCategory = oneOf('spend_velocity', 'destination_risk', 'account_compromise')
export const ContainmentReason = lines(1000)
export const ContainedPrefix = Type.String({ pattern: '^\\+?[1-9][0-9]{0,14}$' })
export const ContainedSeconds = Type.Integer({ minimum: 60, maximum: 90 * 86_400 })

const PROTECTED = {
  emergency: 'protected: an emergency number or another protected one begins with it',
  allowed: 'protected: an outbound policy of the project allows it by name',
} as const

interface Wanted {
  readonly project_id: string
  /** Null closes the prefix to the whole project. */
  readonly trunk_id: string | null
  /** With or without the plus. */
  readonly prefix: string
  readonly reason_category: ContainmentRow['reason_category']
  readonly reason_detail: string
  readonly case_ref?: string | null | undefined
  readonly expires_in_seconds: number
}

/** Closes a prefix from the next call on, unless it is protected. Running calls go on. */
export async function closePrefix(
  trx: Trx,
  { prefix, case_ref, expires_in_seconds, ...wanted }: Wanted,
  now_ms: number,
): Promise<ContainmentRow | Refusal<'state_conflict'>> {
  const digits = prefix.replace(/^\+/, '')
  const why = protectedBy(digits, await protectedFacts(trx, wanted.project_id))
  if (why !== null) return refuse('state_conflict', { name: `+${digits}`, value: PROTECTED[why] })
  return openContainment(trx, now_ms, {
    ...wanted,
    prefix: digits,
    case_ref: case_ref ?? newCaseRef(now_ms),
    source_alert_id: null,
    starts_at: iso(now_ms),
    expires_at: iso(now_ms + expires_in_seconds * 1000),
  })
}

/** Opens a closed prefix again. `by` is what the customer reads. */
export async function openPrefix(
  trx: Trx,
  containment: ContainmentRow,
  { by, now_ms }: { readonly by: string; readonly now_ms: number },
): Promise<ContainmentRow | Refusal<'state_conflict'>> {
  const row = await releaseContainment(trx, containment.id, { released_at: iso(now_ms), released_by: by })
  if (!row) {
    const value = containment.released_at === null ? 'expired' : 'released'
    return refuse('state_conflict', { name: `containment ${containment.id}`, value })
  }
  await containmentEvent(trx, row, 'containment.released', now_ms)
  return row
}

interface Decision {
  readonly decision: 'approved' | 'rejected'
  readonly reason: string | null
  /** What the customer reads. */
  readonly by: string
}

/** Decides a customer's request to open a prefix. An approval opens it, unless it is open by now. */
export async function decideRequest(
  trx: Trx,
  request: ReleaseRequestRow,
  { decision, reason, by }: Decision,
  now_ms: number,
): Promise<ReleaseRequestRow | Refusal<'state_conflict'>> {
  const decided = await decideRelease(trx, request.id, {
    state: decision,
    decision_at: iso(now_ms),
    decision_by: by,
    decision_reason: reason,
  })
  if (!decided) return refuse('state_conflict', { name: `release request ${request.id}`, value: request.state })
  if (decided.released) await containmentEvent(trx, decided.released, 'containment.released', now_ms)
  return decided.request
}

/** The change of a containment for the audit trail. */
export const containmentChange = (
  row: ContainmentRow,
  action: string,
  summary: string,
  detail: string | null,
): Change => ({
  resource: { type: 'containment', id: row.id, name: `+${row.prefix}`, href: null },
  summary,
  before: null,
  after: null,
  detail,
  trunk_id: row.trunk_id,
  action,
})
