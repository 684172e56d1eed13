import { askAdmission } from '../../core/state/calls/leases.ts'
import { findSubtrunk } from '../../core/state/configuration/subtrunks.ts'
import { findTrunk } from '../../core/state/configuration/trunks.ts'
import { findApplication } from '../../core/state/configuration/voice-applications.ts'
import type { Db } from '../../core/state/index.ts'
import { invalid } from '../http/reply.ts'
import {
  Flag,
  input,
  list,
  Money,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Transport,
  Type,
} from '../http/schema.ts'
import { ServiceType } from './outbound-policy-present.ts'
import { route } from './route.ts'

const DryRun = resource('AdmissionDryRun', {
  admitted: Flag,
  reason: nullable(Type.String()),
  sentence: nullable(Type.String()),
  called: nullable(Type.String()),
  caller: nullable(Type.String()),
  max_duration_seconds: nullable(Type.Integer()),
  reserve_minor: nullable(Money),
  price: nullable(
    resource('DryRunPrice', {
      price_book_id: Type.String(),
      match: Type.String(),
      label: Type.String(),
      rate_minor: Type.Number(),
      rate_unit: oneOf('minute', 'second'),
      increment_initial_seconds: Type.Integer(),
      increment_additional_seconds: Type.Integer(),
      currency: Type.String(),
    }),
  ),
  trace: list(Type.Record(Type.String(), Type.Unknown())),
})

const PhoneText = Type.String({ minLength: 1, maxLength: 40, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })

async function hasService(db: Db, project_id: string, type: Static<typeof ServiceType>, id: string): Promise<boolean> {
  if (type === 'automation') return true
  const find = { trunk: findTrunk, subtrunk: findSubtrunk, voice_application: findApplication }[type]
  return (await find(db, project_id, id)) !== undefined
}

export const admission = [
  route({
    method: 'post',
    path: '/admission/dry-run',
    summary: 'Ask whether a hypothetical call would be admitted: the verdict, its full trace, and the price',
    description: 'Decided by the same rules as a call, on the same rows; nothing is taken and nothing changes.',
    scope: 'call_diagnostics:read',
    body: input('AdmissionDryRunRequest', {
      service_type: ServiceType,
      service_id: Type.String({ minLength: 1, maxLength: 128 }),
      called: PhoneText,
      caller: PhoneText,
      transport: optional(nullable(Transport)),
      offer: optional(
        nullable(
          input('DryRunOffer', {
            codecs: Type.Array(Type.String({ maxLength: 40 }), { maxItems: 20 }),
            sdes_srtp: Flag,
          }),
        ),
      ),
    }),
    replies: { 200: DryRun },
    example: { service_type: 'automation', service_id: 'console', called: '+2348030000001', caller: '+2342010000001' },
    async run({ db, project, body, services }) {
      const { service_type: type, service_id, called, caller } = body
      const id = type === 'automation' ? project.id : service_id
      if (!(await hasService(db, project.id, type, id)))
        return invalid('/service_id', `is not a ${type.replace('_', ' ')} of the project`)
      const outcome = await askAdmission(db, {
        call_sid: 'dry-run',
        part: 'outbound',
        way: type === 'trunk' || type === 'subtrunk' ? 'peer' : 'create',
        node_id: 'dry-run',
        project_id: project.id,
        service: { type, id },
        called,
        caller,
        transport: body.transport ?? null,
        offer: body.offer ?? null,
        now_ms: services.clock.now(),
      })
      const price = outcome.price && {
        price_book_id: outcome.price.price_book_id,
        match: `+${outcome.price.rate_prefix}`,
        label: outcome.price.label,
        rate_minor: outcome.price.rate_minor,
        rate_unit: outcome.price.rate_unit,
        increment_initial_seconds: outcome.price.increment_initial_seconds,
        increment_additional_seconds: outcome.price.increment_additional_seconds,
        currency: outcome.price.currency,
      }
      const answer: Static<typeof DryRun> = {
        admitted: outcome.admitted,
        reason: outcome.admitted ? null : outcome.reason,
        sentence: outcome.admitted ? null : outcome.sentence,
        called: outcome.called?.e164 ?? null,
        caller: outcome.caller_e164,
        max_duration_seconds: outcome.admitted ? outcome.max_duration_seconds : null,
        reserve_minor: outcome.admitted ? outcome.reserve_minor : null,
        price,
        trace: outcome.trace.map(finding => ({ ...finding })),
      }
      return { status: 200, body: answer, change: null }
    },
  }),
]
