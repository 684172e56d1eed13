import {
  CLIENT_DIRECTIONS,
  CLIENT_TOKEN_SECONDS,
  type ClientDirection,
  isClientName,
} from '../../core/domain/identity/client-token.ts'
import { makeClientCredential } from '../../core/runtime/client-token.ts'
import { iso } from '../../core/runtime/clock.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import { findOwnedNumber, listNumbers } from '../../core/state/configuration/numbers.ts'
import { findVoiceAccount } from '../../core/state/people/voice-accounts.ts'
import { invalid, notFound } from '../http/reply.ts'
import { E164, Instant, input, list, nullable, oneOf, optional, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'

const Direction = oneOf(...CLIENT_DIRECTIONS)

/** SIP credentials of one browser client. The server stores none of them. */
const ClientToken = resource('ClientToken', {
  allowed: list(Direction),
  caller: nullable(Type.String()),
  domain: Type.String(),
  expires_at: Instant,
  identity: Type.String(),
  /** Null in the replay of a request. */
  password: nullable(Type.String()),
  sip_uri: Type.String(),
  username: Type.String(),
  ws_port: Type.Integer(),
})

/** Tokens with which browsers register and call. A program makes one for each of its users; so does the console. */
export const clientTokens = [
  route({
    method: 'post',
    path: '/client-tokens',
    summary: 'Make short-lived SIP credentials for a browser client',
    description:
      'Rotating the auth token of the voice account revokes every token. `allowed` holds `in` (it may register and be ' +
      'called), `out` (it may call), or both. `caller` is the number that it presents.',
    scope: 'service_configuration:write',
    idempotent: true,
    audit: { kind: 'credentials', action: 'client_token.made', category: 'security' },
    body: input('CreateClientTokenRequest', {
      identity: Type.String({ minLength: 1, maxLength: 121 }),
      allowed: optional(list(Direction, { maxItems: CLIENT_DIRECTIONS.length, uniqueItems: true })),
      caller: optional(nullable(E164)),
      ttl_seconds: optional(Type.Integer({ minimum: CLIENT_TOKEN_SECONDS.least, maximum: CLIENT_TOKEN_SECONDS.most })),
    }),
    replies: { 200: ClientToken },
    for_replay: (body: Static<typeof ClientToken>) => ({ ...body, password: null }),
    example: { identity: 'ada', allowed: ['in', 'out'], ttl_seconds: 900 },
    async run({ db, project, body, services }) {
      const { identity, ttl_seconds = CLIENT_TOKEN_SECONDS.standard } = body
      const asked = body.allowed ?? CLIENT_DIRECTIONS
      const allowed: ClientDirection[] = CLIENT_DIRECTIONS.filter(direction => asked.includes(direction))
      const account = await findVoiceAccount(db, project.id)
      if (!account) return notFound('voice account')
      if (!isClientName(identity)) return invalid('/identity', 'is letters, digits and . _ + -')
      if (allowed.length === 0) return invalid('/allowed', 'names no direction')
      const caller = body.caller ?? (await listNumbers(db, project.id, { limit: 1 }))[0]?.e164 ?? null
      if (caller === null && allowed.includes('out')) return invalid('/caller', 'the project has no number yet')
      if (caller !== null && !(await findOwnedNumber(db, project.id, caller)))
        return invalid('/caller', 'is not a number of the project')
      const { settings, clock } = services
      const expires_at_seconds = Math.floor(clock.now() / 1000) + ttl_seconds
      const { sip_uri, domain, username, password } = makeClientCredential(
        { client: identity, caller, expires_at_seconds, allowed },
        {
          project_id: project.id,
          domain: settings.domain,
          auth_token: unseal(settings.master_key, account.auth_token_sealed),
        },
      )
      const expires_at = iso(expires_at_seconds * 1000)
      const { ws_port } = settings
      return {
        status: 200,
        body: { allowed, caller, domain, expires_at, identity, password, sip_uri, username, ws_port },
        change: {
          resource: { type: 'voice_account', id: account.account_sid, name: identity, href: '/v1/voice-account' },
          summary: `Made a client token for ${identity} (${allowed.join(', ')}), good until ${expires_at}`,
          before: null,
          after: null,
        },
      }
    },
  }),
]
