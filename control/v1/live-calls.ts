import type { ActivityCommand } from '../../core/domain/calls/control-commands.ts'
import { endOrHangUp, findProjectCall, listProjectCalls } from '../../core/state/calls/call-history.ts'
import { insertCommand } from '../../core/state/calls/calls.ts'
import { findRecordingConsent } from '../../core/state/calls/recording-consent.ts'
import type { Trx } from '../../core/state/index.ts'
import { findOrganization } from '../../core/state/people/organizations.ts'
import { type Change, refuse } from '../http/reply.ts'
import { described, E164, input, listOf, oneOf, optional, resource, Type } from '../http/schema.ts'
import { transferCall } from '../live/calls.ts'
import { LISTENS } from '../live/listeners.ts'
import { CallSummary, ListedCall, presentCall, presentListed } from './call-present.ts'
import { route } from './route.ts'

interface AboutCall {
  readonly sid: string
  readonly from_number: string
  readonly to_number: string
  readonly trunk_id: string | null
}

const about = ({ sid, from_number, to_number, trunk_id }: AboutCall, summary: string): Change => ({
  resource: { type: 'call', id: sid, name: `${from_number} to ${to_number}`, href: `/v1/calls/${sid}` },
  summary,
  before: null,
  after: null,
  trunk_id,
})

/** What the parties hear while somebody listens, by the organization's choice. */
async function noticeOf(db: Trx, organization_id: string): Promise<string | null> {
  const organization = await findOrganization(db, organization_id)
  return organization?.listening_notice === 'spoken' ? SPOKEN_NOTICE : null
}

const SPOKEN_NOTICE = 'A supervisor of this company is listening to this call.'

const Listening = resource('Listening', {
  id: Type.String(),
  call_id: Type.String(),
  notice: oneOf('tone', 'spoken'),
  websocket_path: Type.String(),
})

export const liveCalls = [
  route({
    method: 'get',
    path: '/live-calls',
    summary: 'Calls in progress, newest first',
    scope: 'live_calls:read',
    restricted_keys: true,
    replies: { 200: listOf(ListedCall) },
    async run({ db, project, caller }) {
      const filter = { live: true, ...(caller.subaccount_id === null ? {} : { subaccount_id: caller.subaccount_id }) }
      const rows = await listProjectCalls(db, project.id, filter, { limit: 1000 })
      return { status: 200, body: { data: await presentListed(db, rows) } }
    },
  }),

  route({
    method: 'post',
    path: '/live-calls/{call_id}/hang-up',
    summary: 'End a call in progress; the answer may come before the end',
    scope: 'service_configuration:write',
    audit: { kind: 'trunks', action: 'call.hung_up' },
    replies: { 200: CallSummary },
    refusals: ['call_not_live'],
    async run({ db, project, call, services }) {
      if (call.ended_at !== null) return refuse('call_not_live', { value: call.sid, limit: call.status })
      await endOrHangUp(db, call, services.clock.now())
      const body = presentCall((await findProjectCall(db, project.id, call.sid)) ?? call)
      return { status: 200, body, change: about(call, `Hung up ${call.sid}`), wake: ['commands'] as const }
    },
  }),

  route({
    method: 'post',
    path: '/live-calls/{call_id}/listen',
    summary: 'Listen to a call in progress, whose parties are told',
    description:
      'Opens nothing yet: the answer names a WebSocket for the same credential, which brings both sides of the call as ' +
      'a media stream, and on which nothing is sent to the call. The parties hear a tone or a sentence, as the ' +
      'organization chooses. Needs the recording consent of the project. Closing the WebSocket ends it.',
    scope: LISTENS,
    audit: { kind: 'trunks', action: 'call.listened' },
    replies: { 201: Listening },
    refusals: ['call_not_live', 'recording_consent_required', 'limit_reached'],
    async run({ db, project, call, caller, services }) {
      if (call.status !== 'in-progress') return refuse('call_not_live', { value: call.sid, limit: call.status })
      if (!(await findRecordingConsent(db, project.id)))
        return refuse('recording_consent_required', { name: project.id })
      const spoken = await noticeOf(db, project.organization_id)
      const id = services.listeners.make({ call_sid: call.sid, project_id: project.id, caller })
      if (typeof id !== 'string') return refuse('limit_reached', { name: id.of, value: 'listeners', limit: id.limit })
      const command: ActivityCommand = { act: 'listen', listener_id: id, spoken }
      await insertCommand(db, call.sid, 'activity', command, services.clock.now())
      const notice = spoken === null ? ('tone' as const) : ('spoken' as const)
      return {
        status: 201,
        body: { id, call_id: call.sid, notice, websocket_path: `/v1/listeners/${id}` },
        change: about(call, `Listened to ${call.sid}`),
        wake: ['commands'] as const,
      }
    },
  }),

  route({
    method: 'post',
    path: '/live-calls/{call_id}/transfer',
    summary:
      'Transfer a call in progress: it leaves its document and the calls that the document placed, and dials another number',
    description:
      'The new leg is a call of its own, made by this one, and is admitted and priced like every other. ' +
      'Calls between a trunk and a carrier are transferred by the PBX. The answer may come before the transfer.',
    scope: 'service_configuration:write',
    audit: { kind: 'trunks', action: 'call.transferred' },
    body: input('TransferCallRequest', {
      to: described(E164, 'The number that it dials.'),
      from: optional(
        described(E164, 'The calling number that `to` sees: one of the project. Default: as the Dial of a document.'),
      ),
    }),
    replies: { 200: CallSummary },
    refusals: ['call_not_live', 'state_conflict'],
    example: { to: '+2348030000008' },
    async run({ db, project, call, body: { to, from = null }, services }) {
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const refused = await transferCall(asked, call, { to, from })
      if (refused) return refused
      const change = about(call, `Transferred ${call.sid} to ${to}`)
      return { status: 200, body: presentCall(call), change, wake: ['commands'] as const }
    },
  }),
]
