import { findAnyAudit, INSTALLATION } from '../../core/state/people/audit.ts'
import { isRefusal, notFound } from '../http/reply.ts'
import { optional, Type } from '../http/schema.ts'
import { AUDIT_QUERY, AuditDetail, AuditPage, auditDetail, auditPage } from '../v1/audit.ts'
import { route } from './route.ts'

const Text = Type.String({ minLength: 1, maxLength: 128 })

export const audit = [
  route({
    method: 'get',
    path: '/audit',
    summary: 'Read the trail of the installation, or of one organization, newest first',
    description: 'The trail of the installation has every write of an operator, with who did it.',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(
      { ...AUDIT_QUERY, organization_id: optional(Text), actor_name: optional(Text), action: optional(Text) },
      { additionalProperties: false },
    ),
    replies: { 200: AuditPage },
    async run({ db, query: { organization_id = INSTALLATION, actor_name, action, ...asked }, services }) {
      const more = { ...(actor_name ? { actor_name } : {}), ...(action ? { action } : {}) }
      const page = await auditPage(db, organization_id, asked, services.clock.now(), more)
      return isRefusal(page) ? page : { status: 200, body: page }
    },
  }),

  route({
    method: 'get',
    path: '/audit/{event_id}',
    summary: 'Read an event of any trail with what it changed, field by field',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: AuditDetail },
    async run({ db, params, services }) {
      const row = await findAnyAudit(db, params.event_id)
      if (!row) return notFound(`audit event ${params.event_id.slice(0, 60)}`)
      return { status: 200, body: await auditDetail(db, row, services.clock.now()) }
    },
  }),
]
