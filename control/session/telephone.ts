import { CLIENT_TOKEN_SECONDS, isClientName } from '../../core/domain/identity/client-token.ts'
import { problemOf } from '../../core/domain/reasons/index.ts'
import { makeClientCredential } from '../../core/runtime/client-token.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import { placeCall } from '../../core/state/calls/calls.ts'
import { findOwnedNumber, listNumbers } from '../../core/state/configuration/numbers.ts'
import { findVoiceAccount } from '../../core/state/people/voice-accounts.ts'
import { check } from '../../markup/check.ts'
import { invalid, notFound } from '../http/reply.ts'
import { Instant, input, nullable, optional, resource, Type } from '../http/schema.ts'
import { memberOf, route } from './route.ts'

const ADMINS_AND_ENGINEERS = ['org:admin', 'org:engineer'] as const
const PHONE = '^\\+[1-9][0-9]{6,14}$'
const MAX_MARKUP_CHARACTERS = 4000
const RING_SECONDS = 60

const VoiceToken = resource('ConsoleVoiceToken', {
  client: Type.String(),
  sip_uri: Type.String(),
  domain: Type.String(),
  username: Type.String(),
  password: Type.String(),
  ws_port: Type.Integer(),
  caller: Type.String(),
  expires_at: Instant,
})

/** Derives the client name of a member's softphone from the local part of the email address. */
function clientNameOf(email: string): string {
  const name = (email.split('@')[0] ?? '').replaceAll(/[^A-Za-z0-9_.+-]/g, '-').replace(/^[^A-Za-z0-9]+/, '')
  return isClientName(name) ? name : 'console'
}

/** Routes for the console's softphone: short-lived credentials, and calls that try out a document. */
export const telephone = [
  route({
    method: 'post',
    path: '/voice-token',
    summary: "Short-lived SIP credentials for the member's softphone",
    scope: null,
    roles: ADMINS_AND_ENGINEERS,
    idempotent: false,
    audit: { kind: 'credentials', action: 'voice_token.made', category: 'security' },
    body: input('VoiceTokenRequest', {
      client: optional(nullable(Type.String({ maxLength: 121 }))),
      caller: optional(nullable(Type.String({ pattern: PHONE }))),
    }),
    replies: { 200: VoiceToken },
    async run({ db, project, caller, body, services }) {
      const account = await findVoiceAccount(db, project.id)
      if (!account) return notFound('voice account')
      const client = body.client ?? clientNameOf(memberOf(caller).member.email)
      if (!isClientName(client)) return invalid('/client', 'is letters, digits and . _ + -')
      const number = body.caller ?? (await listNumbers(db, project.id, { limit: 1 }))[0]?.e164
      if (number === undefined) return invalid('/caller', 'the project has no number yet')
      if (!(await findOwnedNumber(db, project.id, number))) return invalid('/caller', 'is not a number of the project')
      const { settings, clock } = services
      const expires_at_seconds = Math.floor(clock.now() / 1000) + CLIENT_TOKEN_SECONDS.standard
      const auth_token = unseal(settings.master_key, account.auth_token_sealed)
      const made = makeClientCredential(
        { client, caller: number, expires_at_seconds },
        { project_id: project.id, domain: settings.domain, auth_token },
      )
      const { sip_uri, domain, username, password } = made
      const expires_at = iso(expires_at_seconds * 1000)
      return {
        status: 200,
        body: { client, sip_uri, domain, username, password, ws_port: settings.ws_port, caller: number, expires_at },
        change: {
          resource: { type: 'voice_account', id: account.account_sid, name: client, href: '/v1/voice-account' },
          summary: `Made a softphone token for ${client}, good until ${expires_at}`,
          before: null,
          after: null,
        },
      }
    },
  }),

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
      if (markup !== null && !check(markup, { url: null }).ok) return invalid('/markup', 'has errors: see its check')
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
