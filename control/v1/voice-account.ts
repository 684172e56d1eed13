import { voiceService } from '../../core/domain/admission/index.ts'
import { appliedState } from '../../core/state/configuration/apply.ts'
import type { Db } from '../../core/state/index.ts'
import { findVoiceAccount, type VoiceAccountRow } from '../../core/state/people/voice-accounts.ts'
import { type Change, notFound } from '../http/reply.ts'
import { Count64, described, nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { AttachedPolicy, attachedPolicy } from './attached-policy.ts'
import { route } from './route.ts'
import { ProvisioningStatus } from './voice-applications.ts'

export const VoiceAccount = resource('VoiceAccount', {
  account_sid: Type.String(),
  auth_token_masked: Type.String(),
  call_event_history: described(
    oneOf('enabled', 'disabled'),
    'Whether the HTTP exchanges of calls are kept for `Calls/{CallSid}/Events`. The operator sets it.',
  ),
  desired_revision: Count64,
  effective_revision: Count64,
  key_id: Type.String(),
  outbound_policy: nullable(AttachedPolicy),
  project_id: Type.String(),
  provisioning_status: ProvisioningStatus,
  voice_api: described(
    oneOf('spec', 'extended'),
    'Which paths of the voice-calls API the account has: `spec` are those of the specification, and any other is 404 `voice_route_not_proxied`; `extended` are all that docs/voice-api.md lists. The operator sets it.',
  ),
  status: described(
    oneOf('pending', 'active', 'revoked'),
    'An account is `active` from the creation of its project, so that `pending` is never shown. The operator revokes it: its requests get 404 `voice_route_not_proxied`, and no document is fetched in its name.',
  ),
})

/** Replaces the whole token: no part of it is shown. */
const MASK = `sk_live_${'*'.repeat(32)}`

export async function presentVoiceAccount(
  db: Db,
  row: VoiceAccountRow,
  now: string,
): Promise<Static<typeof VoiceAccount>> {
  const applied = await appliedState(db, { id: row.project_id, revision: row.revision }, Date.parse(now))
  return {
    account_sid: row.account_sid,
    auth_token_masked: MASK,
    call_event_history: row.call_event_history,
    desired_revision: row.revision,
    effective_revision: applied.effective_revision,
    key_id: row.key_id,
    outbound_policy: await attachedPolicy(db, row.project_id, voiceService(row.project_id, null)),
    project_id: row.project_id,
    provisioning_status: applied.state,
    status: row.status,
    voice_api: row.voice_api,
  }
}

export const accountChange = (
  summary: string,
  account: VoiceAccountRow,
  before: object | null,
  after: object | null,
): Change => ({
  resource: { type: 'voice_account', id: account.account_sid, name: account.account_sid, href: '/v1/voice-account' },
  summary,
  before,
  after,
  to_revision: account.revision,
})

export const voiceAccount = [
  route({
    method: 'get',
    path: '/voice-account',
    summary: "Read the project's voice account; its token is always masked",
    scope: 'service_configuration:read',
    replies: { 200: VoiceAccount },
    async run({ db, project, now }) {
      const row = await findVoiceAccount(db, project.id)
      if (!row) return notFound('voice account')
      return { status: 200, revision: row.revision, body: await presentVoiceAccount(db, row, now) }
    },
  }),
]
