import { problemOf } from '../../core/domain/reasons/index.ts'
import { newId } from '../../core/runtime/ids.ts'
import { placeCall } from '../../core/state/calls/calls.ts'
import { findOwnedNumber } from '../../core/state/configuration/numbers.ts'
import { findVoiceAccount } from '../../core/state/people/voice-accounts.ts'
import { checkDocument } from '../../markup/check.ts'
import { invalid, notFound } from '../http/reply.ts'
import { input, nullable, optional, resource, Type } from '../http/schema.ts'
import { route } from './route.ts'

const ADMINS_AND_ENGINEERS = ['org:admin', 'org:engineer'] as const
const PHONE = '^\\+[1-9][0-9]{6,14}$'
const MAX_MARKUP_CHARACTERS = 4000
const RING_SECONDS = 60

/** Calls that try out a document. */
export const telephone = [
  route({
    method: 'post',
    path: '/test-calls',
    summary: 'Place a call that runs a document, to try it out',
    scope: null,
    roles: ADMINS_AND_ENGINEERS,
    idempotent: true,
    audit: { kind: 'numbers', action: 'test_call.placed', category: 'configuration' },
    body: input('PlaceTestCallRequest', {
      to: Type.String({ pattern: PHONE }),
      from: Type.String({ pattern: PHONE }),
      markup: optional(nullable(Type.String({ maxLength: MAX_MARKUP_CHARACTERS }))),
      url: optional(nullable(Type.String({ format: 'uri', maxLength: 2048 }))),
    }),
    replies: { 201: resource('PlacedTestCall', { call_id: Type.String() }) },
    async run({ db, project, body, services }) {
      const { to, from } = body
      const markup = body.markup ?? null
      const url = body.url ?? null
      if ((markup === null) === (url === null)) return invalid('/markup', 'exactly one of markup and url is needed')
      if (markup !== null && !checkDocument(markup, { url: null }).ok)
        return invalid('/markup', 'has errors: see its check')
      const account = await findVoiceAccount(db, project.id)
      const number = await findOwnedNumber(db, project.id, from)
      if (!account) return notFound('voice account')
      if (!number) return invalid('/from', 'is not a number of the project')
      const sid = newId.call()
      const application_id = number.route_kind === 'voice_application' ? number.route_id : null
      const placed = await placeCall(db, {
        sid,
        project_id: project.id,
        account_sid: account.account_sid,
        from_number: from,
        to_number: to,
        caller_id: null,
        number_id: number.id,
        application_id,
        request: JSON.stringify({ url, method: 'POST', markup, timeout_seconds: RING_SECONDS }),
        now_ms: services.clock.now(),
      })
      if (!('row' in placed)) return invalid('/to', `is refused: ${problemOf(placed.refused, placed.facts).detail}`)
      return {
        status: 201,
        wake: ['commands'] as const,
        body: { call_id: sid },
        change: {
          resource: { type: 'call', id: sid, name: to, href: `/v1/calls/${sid}` },
          summary: `Placed a call to ${to} that runs a document`,
          before: null,
          after: null,
        },
      }
    },
  }),
]
