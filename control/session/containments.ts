import { findContainment, findReleaseRequest } from '../../core/state/alerts/containments.ts'
import { findTrunk } from '../../core/state/configuration/trunks.ts'
import {
  ContainedPrefix,
  ContainedSeconds,
  ContainmentCategory,
  ContainmentReason,
  closePrefix,
  containmentChange,
  decideRequest,
  openPrefix,
} from '../alerts/fraud-desk.ts'
import type { Caller } from '../http/caller.ts'
import { isRefusal, notFound, refuse } from '../http/reply.ts'
import { input, nullable, oneOf, optional, Type } from '../http/schema.ts'
import { Containment, presentContainments, presentRequest, ReleaseRequest } from '../v1/alert-present.ts'
import { route } from './route.ts'

/** Routes with which operators close and open prefixes. API keys and customers cannot use them. */

const notAnOperator = (caller: Caller) =>
  caller.operator
    ? null
    : refuse('role_forbidden', { value: caller.role }, { detail: 'Only an operator of the platform may do this.' })

export const operatorContainments = [
  route({
    method: 'post',
    path: '/containments',
    summary: 'Close a prefix, of one trunk or of the whole project (operators)',
    scope: null,
    audit: { kind: 'alerts', action: 'containment.opened', category: 'security' },
    body: input('ContainmentInput', {
      case_ref: optional(nullable(Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._/-]+$' }))),
      expires_in_seconds: ContainedSeconds,
      prefix: ContainedPrefix,
      reason_category: ContainmentCategory,
      reason_detail: ContainmentReason,
      trunk_id: optional(nullable(Type.String({ maxLength: 64 }))),
    }),
    replies: { 201: Containment },
    refusals: ['role_forbidden', 'state_conflict'],
    async run({ db, project, caller, body, services }) {
      const refused = notAnOperator(caller)
      if (refused) return refused
      const trunk_id = body.trunk_id ?? null
      if (trunk_id !== null && !(await findTrunk(db, project.id, trunk_id))) return notFound(`trunk ${trunk_id}`)
      const row = await closePrefix(db, { ...body, project_id: project.id, trunk_id }, services.clock.now())
      if (isRefusal(row)) return row
      const [shown] = await presentContainments(db, [row])
      if (!shown) throw new Error('the containment cannot be shown')
      const detail = `${row.reason_category}: ${row.reason_detail} (${row.case_ref})`
      const change = containmentChange(row, 'containment.opened', `Closed +${row.prefix}`, detail)
      return { status: 201, body: shown, change }
    },
  }),

  route({
    method: 'post',
    path: '/containments/{containment_id}/release',
    summary: 'Open a closed prefix again (operators)',
    scope: null,
    audit: { kind: 'alerts', action: 'containment.released', category: 'security' },
    body: input('ContainmentRelease', { reason: ContainmentReason }),
    replies: { 200: Containment },
    refusals: ['role_forbidden', 'state_conflict'],
    async run({ db, project, caller, params, body, services }) {
      const refused = notAnOperator(caller)
      if (refused) return refused
      const known = await findContainment(db, project.id, params.containment_id)
      if (!known) return notFound(`containment ${params.containment_id.slice(0, 60)}`)
      const row = await openPrefix(db, known, { by: caller.actor.name, now_ms: services.clock.now() })
      if (isRefusal(row)) return row
      const [shown] = await presentContainments(db, [row])
      if (!shown) throw new Error('the containment cannot be shown')
      const change = containmentChange(row, 'containment.released', `Opened +${row.prefix} again`, body.reason)
      return { status: 200, body: shown, change }
    },
  }),

  route({
    method: 'post',
    path: '/containments/{containment_id}/release-requests/{request_id}/decision',
    summary: 'Approve or reject a release request; an approval opens the prefix (operators)',
    scope: null,
    audit: { kind: 'alerts', action: 'containment.release_decided', category: 'security' },
    body: input('ReleaseDecision', {
      decision: oneOf('approved', 'rejected'),
      reason: optional(nullable(ContainmentReason)),
    }),
    replies: { 200: ReleaseRequest },
    refusals: ['role_forbidden', 'state_conflict'],
    async run({ db, project, caller, params, body, services }) {
      const refused = notAnOperator(caller)
      if (refused) return refused
      const row = await findContainment(db, project.id, params.containment_id)
      const request = row && (await findReleaseRequest(db, row.id, params.request_id))
      if (!row || !request) return notFound(`release request ${params.request_id.slice(0, 60)}`)
      const decision = { decision: body.decision, reason: body.reason ?? null, by: caller.actor.name }
      const decided = await decideRequest(db, request, decision, services.clock.now())
      if (isRefusal(decided)) return decided
      const summary = `${body.decision === 'approved' ? 'Approved' : 'Rejected'} the release of +${row.prefix}`
      return {
        status: 200,
        body: presentRequest(decided),
        change: containmentChange(row, `containment.release_${body.decision}`, summary, body.reason ?? null),
      }
    },
  }),
]
