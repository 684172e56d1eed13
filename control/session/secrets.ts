import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { seal, unseal } from '../../core/runtime/secrets.ts'
import {
  acceptRecordingConsent,
  findRecordingConsent,
  TERMS_VERSION,
} from '../../core/state/calls/recording-consent.ts'
import { saveEndpoint } from '../../core/state/delivery/webhook-endpoints.ts'
import { findVoiceAccount, saveVoiceAccount } from '../../core/state/people/voice-accounts.ts'
import { invalid, notFound } from '../http/reply.ts'
import { Flag, Instant, input, nullable, resource, Type } from '../http/schema.ts'
import { accountChange, presentVoiceAccount, VoiceAccount } from '../v1/voice-account.ts'
import { endpointChange, newSigningSecret, presentEndpoint } from '../v1/webhook-endpoints.ts'
import { route } from './route.ts'

const ADMINS_AND_ENGINEERS = ['org:admin', 'org:engineer'] as const
const HOUR_MS = 3_600_000

const AuthToken = resource('AuthToken', { account: VoiceAccount, auth_token: Type.String() })

const Consent = resource('ProjectRecordingConsent', {
  accepted: Flag,
  accepted_at: nullable(Instant),
  accepted_by: nullable(Type.String()),
  terms_version: Type.String(),
})

/** Actions on a project's secrets that only a person may perform. */
export const personalSecrets = [
  route({
    method: 'post',
    path: '/voice-account/auth-token/reveal',
    summary: 'Show the auth token of the voice account; the audit trail records who looked',
    scope: null,
    roles: ADMINS_AND_ENGINEERS,
    idempotent: false,
    audit: { kind: 'credentials', action: 'auth_token.revealed', category: 'security' },
    replies: { 200: AuthToken },
    async run({ db, project, now, services }) {
      const row = await findVoiceAccount(db, project.id)
      if (!row) return notFound('voice account')
      const account = await presentVoiceAccount(db, row, now)
      const auth_token = unseal(services.settings.master_key, row.auth_token_sealed)
      return {
        status: 200,
        body: { account, auth_token },
        change: accountChange('Looked at the auth token', row, null, null),
      }
    },
  }),

  route({
    method: 'post',
    path: '/voice-account/auth-token/rotate',
    summary: 'Replace the auth token of the voice account; the old one stops working at once',
    scope: null,
    roles: ADMINS_AND_ENGINEERS,
    idempotent: false,
    applies: true,
    audit: { kind: 'credentials', action: 'auth_token.rotated', category: 'security' },
    replies: { 200: AuthToken },
    async run({ db, project, now, services }) {
      const row = await findVoiceAccount(db, project.id)
      if (!row) return notFound('voice account')
      const auth_token = newId.authToken()
      const auth_token_sealed = seal(services.settings.master_key, auth_token)
      const saved = await saveVoiceAccount(db, row, { auth_token_sealed, key_id: `vak_${newId.uuid()}` })
      const before = await presentVoiceAccount(db, row, now)
      const account = await presentVoiceAccount(db, saved, now)
      const change = accountChange('Rotated the auth token', saved, before, account)
      return { status: 200, body: { account, auth_token }, change }
    },
  }),

  route({
    method: 'post',
    path: '/webhook-endpoints/{endpoint_id}/rotate-secret',
    summary: 'Replace the signing secret of a webhook endpoint; both secrets sign during the overlap',
    scope: null,
    roles: ADMINS_AND_ENGINEERS,
    idempotent: false,
    audit: { kind: 'credentials', action: 'webhook_endpoint.secret_rotated', category: 'security' },
    body: input('RotateWebhookSecretRequest', { overlap_hours: Type.Integer({ minimum: 0, maximum: 24 }) }),
    replies: { 200: resource('WebhookSecret', { signing_secret: Type.String(), previous_secret_retires_at: Instant }) },
    async run({ db, endpoint, body, now, services }) {
      const signing_secret = newSigningSecret()
      const previous_secret_retires_at = iso(services.clock.now() + body.overlap_hours * HOUR_MS)
      const saved = await saveEndpoint(
        db,
        endpoint,
        {
          secret_sealed: seal(services.settings.master_key, signing_secret),
          previous_secret_sealed: endpoint.secret_sealed,
          previous_secret_retires_at,
        },
        now,
      )
      const summary = `Rotated the secret of ${endpoint.url}`
      const change = endpointChange(summary, saved, presentEndpoint(endpoint), presentEndpoint(saved))
      return { status: 200, body: { signing_secret, previous_secret_retires_at }, change }
    },
  }),

  route({
    method: 'get',
    path: '/recording-consent',
    summary: 'Read the recording consent of the project and who gave it',
    scope: null,
    replies: { 200: Consent },
    async run({ db, project }) {
      const row = await findRecordingConsent(db, project.id)
      return {
        status: 200,
        body: {
          accepted: row !== undefined,
          accepted_at: row?.accepted_at ?? null,
          accepted_by: row?.accepted_by ?? null,
          terms_version: row?.terms_version ?? TERMS_VERSION,
        },
      }
    },
  }),

  route({
    method: 'post',
    path: '/recording-consent',
    summary: 'Accept the terms of recording for the project',
    scope: null,
    roles: ['org:admin'],
    audit: { kind: 'trunks', action: 'recording_consent.accepted', category: 'security' },
    body: input('RecordingConsentRequest', { terms_version: Type.String({ maxLength: 40 }) }),
    replies: { 200: Consent },
    async run({ db, project, caller, body, now }) {
      const { terms_version } = body
      if (terms_version !== TERMS_VERSION) return invalid('/terms_version', `is not the current one, ${TERMS_VERSION}`)
      const accepted_by = caller.actor.name
      await acceptRecordingConsent(db, { project_id: project.id, accepted_at: now, accepted_by, terms_version })
      const after = { accepted: true, accepted_at: now, accepted_by, terms_version }
      const resource = { type: 'project', id: project.id, name: project.name, href: '/v1/projects' }
      const summary = `Accepted the recording terms ${terms_version}`
      return { status: 200, body: after, change: { resource, summary, before: null, after } }
    },
  }),
]
