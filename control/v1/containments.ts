import { listContainments, listReleaseRequestsOf, requestRelease } from '../../core/state/alerts/containments.ts'
import { refuse } from '../http/reply.ts'
import { Flag, input, lines, listOf, optional, Type } from '../http/schema.ts'
import { Containment, presentContainments, presentRequest, ReleaseRequest } from './alert-present.ts'
import { route } from './route.ts'
import { seenTrunks } from './seen-trunks.ts'

const Note = lines(1000)

export const containments = [
  route({
    method: 'get',
    path: '/containments',
    summary: 'Prefixes that are or were closed, newest first',
    scope: 'service_configuration:read',
    restricted_keys: true,
    query: Type.Object({ open: optional(Flag) }, { additionalProperties: false }),
    replies: { 200: listOf(Containment) },
    async run({ db, project, caller, query: { open }, now }) {
      const trunk_ids = await seenTrunks(db, project.id, caller, undefined)
      const rows = await listContainments(db, project.id, open === true ? { since: now } : {})
      const seen = rows.filter(
        row => !Array.isArray(trunk_ids) || (row.trunk_id !== null && trunk_ids.includes(row.trunk_id)),
      )
      const shown = open === true ? seen.filter(row => row.released_at === null) : seen
      return { status: 200, body: { data: await presentContainments(db, shown) } }
    },
  }),

  route({
    method: 'get',
    path: '/containments/{containment_id}/release-requests',
    summary: 'List the release requests of a containment and their decisions, newest first',
    scope: 'service_configuration:read',
    replies: { 200: listOf(ReleaseRequest) },
    async run({ db, containment }) {
      const rows = await listReleaseRequestsOf(db, containment.id)
      return { status: 200, body: { data: rows.map(presentRequest) } }
    },
  }),

  route({
    method: 'post',
    path: '/containments/{containment_id}/release-requests',
    summary: 'Ask the operator to open a closed prefix again',
    scope: 'service_configuration:write',
    idempotent: true,
    audit: { kind: 'alerts', action: 'containment.release_requested' },
    body: input('ReleaseRequestInput', { note: Note }),
    replies: { 201: ReleaseRequest },
    refusals: ['state_conflict'],
    async run({ db, containment, body, caller, now }) {
      const name = `containment ${containment.id}`
      if (containment.released_at !== null) return refuse('state_conflict', { name, value: 'released' })
      if (containment.expires_at <= now) return refuse('state_conflict', { name, value: 'expired' })
      const row = await requestRelease(db, {
        containment_id: containment.id,
        note: body.note,
        requested_at: now,
        requested_by: caller.actor.name,
      })
      if (!row) return refuse('state_conflict', { name, value: 'waiting for a decision' })
      return {
        status: 201,
        body: presentRequest(row),
        change: {
          resource: { type: 'containment', id: containment.id, name: `+${containment.prefix}`, href: null },
          summary: `Asked for the release of +${containment.prefix}`,
          before: null,
          after: null,
          detail: body.note,
          trunk_id: containment.trunk_id,
        },
      }
    },
  }),
]
