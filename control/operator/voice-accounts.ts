import type { ProjectRow } from '../../core/state/people/organizations.ts'
import { saveVoiceAccount, type VoiceAccountRow } from '../../core/state/people/voice-accounts.ts'
import type { Change } from '../http/reply.ts'
import { Count64, described, input, oneOf, optional, resource, type Static, Type } from '../http/schema.ts'
import { accountChange } from '../v1/voice-account.ts'
import { route } from './route.ts'

const VoiceApi = described(
  oneOf('spec', 'extended'),
  'Which paths of the voice-calls API the account has: `spec` are those of the specification, and any other is 404 `voice_route_not_proxied`; `extended` are all that docs/voice-api.md lists.',
)
const EventHistory = oneOf('enabled', 'disabled')

const VoiceAccount = resource('OperatorVoiceAccount', {
  account_sid: Type.String(),
  project_id: Type.String(),
  status: oneOf('pending', 'active', 'revoked'),
  call_event_history: EventHistory,
  voice_api: VoiceApi,
  revision: Count64,
})

const present = (row: VoiceAccountRow): Static<typeof VoiceAccount> => ({
  account_sid: row.account_sid,
  project_id: row.project_id,
  status: row.status,
  call_event_history: row.call_event_history,
  voice_api: row.voice_api,
  revision: row.revision,
})

const changeOf = (
  { organization_id, id: project_id }: ProjectRow,
  summary: string,
  before: VoiceAccountRow,
  after: VoiceAccountRow,
): Change => ({
  ...accountChange(summary, after, present(before), present(after)),
  from_revision: before.revision,
  customer: { organization_id, project_id },
})

const PATH = '/projects/{project_id}/voice-account'

export const voiceAccounts = [
  route({
    method: 'get',
    path: PATH,
    summary: 'Read the voice account of a project',
    scope: 'operator:read',
    context: 'organization',
    loads: ['voice_account'],
    replies: { 200: VoiceAccount },
    async run({ account }) {
      return { status: 200, revision: account.revision, body: present(account) }
    },
  }),

  route({
    method: 'patch',
    path: PATH,
    summary:
      'Revoke the voice account of a project or make it active again, switch its event history, and widen its API',
    description: 'A revoked account is unknown to the voice-calls API, and no document is fetched in its name.',
    scope: 'operator:customers',
    context: 'organization',
    loads: ['voice_account'],
    if_match: 'account',
    applies: true,
    audit: { kind: 'credentials', action: 'voice_account.updated', category: 'security' },
    body: input('UpdateVoiceAccountRequest', {
      status: optional(oneOf('active', 'revoked')),
      call_event_history: optional(EventHistory),
      voice_api: optional(VoiceApi),
    }),
    replies: { 200: VoiceAccount },
    async run({ db, customer, account, body }) {
      const saved = await saveVoiceAccount(db, account, body)
      const change = changeOf(customer, `Changed the voice account ${account.account_sid}`, account, saved)
      return { status: 200, revision: saved.revision, body: present(saved), change }
    },
  }),
]
