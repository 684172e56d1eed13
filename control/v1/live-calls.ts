import { endOrHangUp, findProjectCall, listProjectCalls } from '../../core/state/calls/call-history.ts'
import { refuse } from '../http/reply.ts'
import { listOf } from '../http/schema.ts'
import { CallSummary, ListedCall, presentCall, presentListed } from './call-present.ts'
import { route } from './route.ts'

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
    summary: 'Ask for the end of a call in progress; the answer may come before the end',
    scope: 'service_configuration:write',
    audit: { kind: 'trunks', action: 'call.hung_up' },
    replies: { 200: CallSummary },
    refusals: ['call_not_live'],
    async run({ db, project, call, services }) {
      if (call.ended_at !== null) return refuse('call_not_live', { value: call.sid, limit: call.status })
      await endOrHangUp(db, call, services.clock.now())
      const shown = presentCall((await findProjectCall(db, project.id, call.sid)) ?? call)
      const resource = {
        type: 'call',
        id: call.sid,
        name: `${call.from_number} to ${call.to_number}`,
        href: `/v1/calls/${call.sid}`,
      }
      const change = { resource, summary: `Hung up ${call.sid}`, before: null, after: null, trunk_id: call.trunk_id }
      return { status: 200, body: shown, change, wake: ['commands'] as const }
    },
  }),
]
