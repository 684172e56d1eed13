import { iso } from '../../core/runtime/clock.ts'
import {
  type ContainmentRow,
  decideRelease,
  findContainment,
  findReleaseRequest,
  releaseContainment,
} from '../../core/state/alerts/containments.ts'
import { findTrunk } from '../../core/state/configuration/trunks.ts'
import { containmentEvent, newCaseRef, openContainment } from '../alerts/contain.ts'
import type { Caller } from '../http/caller.ts'
import { type Change, invalid, notFound, refuse } from '../http/reply.ts'
import { Int32, input, nullable, oneOf, optional, Type } from '../http/schema.ts'
import { Containment, presentContainments, presentRequest, ReleaseRequest } from '../v1/alert-present.ts'
import { route } from './route.ts'

/** Routes with which operators close and open prefixes. API keys and customers cannot use them. */

const Reason = Type.String({ minLength: 1, maxLength: 1000, pattern: '\\S' })
const MAX_DURATION_SECONDS = 90 * 86_400

const notAnOperator = (caller: Caller) =>
  caller.operator
    ? null
    : refuse('role_forbidden', { value: caller.role }, { detail: 'Only an operator of the platform may do this.' })

/** Names the caller as an operator in the audit trail, whatever the caller's role. */
const operator = (caller: Caller) => ({ ...caller.actor, type: 'operator' as const })

const changeOf = (row: ContainmentRow, action: string, summary: string, detail: string | null): Change => ({
  resource: { type: 'containment', id: row.id, name: `+${row.prefix}`, href: null },
  summary,
  before: null,
  after: null,
  detail,
  trunk_id: row.trunk_id,
  action,
})

export const operatorContainments = [
  route({
    method: 'post',
    path: '/containments',
    summary: 'Close a prefix, of one trunk or of the whole project (operators)',
    scope: null,
    audit: { kind: 'alerts', action: 'containment.opened', category: 'security' },
    body: input('ContainmentInput', {
      case_ref: optional(nullable(Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._/-]+$' }))),
      expires_in_seconds: Int32,
      prefix: Type.String({ pattern: '^\\+?[1-9][0-9]{0,14}$' }),
      reason_category: oneOf('spend_velocity', 'destination_risk', 'account_compromise'),
      reason_detail: Reason,
      trunk_id: optional(nullable(Type.String({ maxLength: 64 }))),
    }),
    replies: { 201: Containment },
    refusals: ['role_forbidden', 'state_conflict'],
    async run({ db, project, caller, body, now, services }) {
      const refused = notAnOperator(caller)
      if (refused) return refused
      const trunk_id = body.trunk_id ?? null
      if (trunk_id !== null && !(await findTrunk(db, project.id, trunk_id))) return notFound(`trunk ${trunk_id}`)
      if (body.expires_in_seconds < 60 || body.expires_in_seconds > MAX_DURATION_SECONDS)
        return invalid('/expires_in_seconds', `is 60 to ${MAX_DURATION_SECONDS}`)
      const prefix = body.prefix.replace('+', '')
      const known = await db.selectFrom('short_code').select(['code', 'sends_to']).execute()
      const emergency = known.find(code => code.sends_to.replace('+', '').startsWith(prefix))
      if (emergency)
        return refuse('state_conflict', { name: `+${prefix}`, value: `where emergency number ${emergency.code} leads` })
      const row = await openContainment(db, {
        project,
        now_ms: services.clock.now(),
        actor: operator(caller),
        containment: {
          trunk_id,
          prefix,
          case_ref: body.case_ref ?? newCaseRef(services.clock.now()),
          reason_category: body.reason_category,
          reason_detail: body.reason_detail,
          source_alert_id: null,
          starts_at: now,
          expires_at: iso(services.clock.now() + body.expires_in_seconds * 1000),
        },
      })
      const [shown] = await presentContainments(db, [row])
      if (!shown) throw new Error('the containment cannot be shown')
      return { status: 201, body: shown, change: null }
    },
  }),

  route({
    method: 'post',
    path: '/containments/{containment_id}/release',
    summary: 'Open a closed prefix again (operators)',
    scope: null,
    audit: { kind: 'alerts', action: 'containment.released', category: 'security' },
    body: input('ContainmentRelease', { reason: Reason }),
    replies: { 200: Containment },
    refusals: ['role_forbidden', 'state_conflict'],
    async run({ db, project, caller, params, body, now, services }) {
      const refused = notAnOperator(caller)
      if (refused) return refused
      const released = await releaseContainment(db, params.containment_id, {
        released_at: now,
        released_by: caller.actor.name,
      })
      const row = await findContainment(db, project.id, params.containment_id)
      if (!row) return notFound(`containment ${params.containment_id.slice(0, 60)}`)
      if (!released) return refuse('state_conflict', { name: `containment ${row.id}`, value: 'released' })
      await containmentEvent(db, row, 'containment.released', services.clock.now())
      const [shown] = await presentContainments(db, [row])
      if (!shown) throw new Error('the containment cannot be shown')
      const change = changeOf(row, 'containment.released', `Opened +${row.prefix} again`, body.reason)
      return { status: 200, body: shown, change }
    },
  }),

  route({
    method: 'post',
    path: '/containments/{containment_id}/release-requests/{request_id}/decision',
    summary: 'Approve or reject a release request; an approval opens the prefix (operators)',
    scope: null,
    audit: { kind: 'alerts', action: 'containment.release_decided', category: 'security' },
    body: input('ReleaseDecision', { decision: oneOf('approved', 'rejected'), reason: optional(nullable(Reason)) }),
    replies: { 200: ReleaseRequest },
    refusals: ['role_forbidden', 'state_conflict'],
    async run({ db, project, caller, params, body, now, services }) {
      const refused = notAnOperator(caller)
      if (refused) return refused
      const row = await findContainment(db, project.id, params.containment_id)
      const request = row && (await findReleaseRequest(db, row.id, params.request_id))
      if (!row || !request) return notFound(`release request ${params.request_id.slice(0, 60)}`)
      const decided = await decideRelease(db, request.id, {
        state: body.decision,
        decision_at: now,
        decision_by: caller.actor.name,
        decision_reason: body.reason ?? null,
      })
      if (!decided) return refuse('state_conflict', { name: `release request ${request.id}`, value: request.state })
      if (body.decision === 'approved') {
        const released = await findContainment(db, project.id, row.id)
        if (released) await containmentEvent(db, released, 'containment.released', services.clock.now())
      }
      const summary = `${body.decision === 'approved' ? 'Approved' : 'Rejected'} the release of +${row.prefix}`
      return {
        status: 200,
        body: presentRequest(decided),
        change: changeOf(row, `containment.release_${body.decision}`, summary, body.reason ?? null),
      }
    },
  }),
]
