import { endOrHangUp, findProjectCall, listProjectCalls } from '../../core/state/call-history.ts'
import { refuse } from '../http/reply.ts'
import { listOf } from '../http/schema.ts'
import { CallSummary, noCall, presentCall, seenCall } from './call-present.ts'
import { route } from './route.ts'

export const liveCalls = [
  route({
    method: 'get',
    path: '/live-calls',
    summary: 'Calls in progress, newest first',
    scope: 'live_calls:read',
    restricted_keys: true,
    replies: { 200: listOf(CallSummary) },
    async run({ db, project, caller }) {
      const filter = { live: true, ...(caller.subaccount_id === null ? {} : { subaccount_id: caller.subaccount_id }) }
      const rows = await listProjectCalls(db, project.id, filter, { limit: 1000 })
      return { status: 200, body: { data: rows.map(presentCall) } }
    },
  }),

  route({
    method: 'post',
    path: '/live-calls/{call_id}/hang-up',
    summary: 'Ask for the end of a call in progress; the answer may come before the end',
    scope: 'service_configuration:write',
    restricted_keys: true,
    audit: { kind: 'trunks', action: 'call.hung_up' },
    replies: { 200: CallSummary },
    refusals: ['call_not_live'],
    async run({ db, project, caller, params, services }) {
      const row = await seenCall(db, project.id, caller, params.call_id)
      if (!row) return noCall(params.call_id)
      if (row.ended_at !== null) return refuse('call_not_live', { value: row.sid, limit: row.status })
      await endOrHangUp(db, row, services.clock.now())
      const shown = presentCall((await findProjectCall(db, project.id, row.sid)) ?? row)
      const resource = {
        type: 'call',
        id: row.sid,
        name: `${row.from_number} to ${row.to_number}`,
        href: `/v1/calls/${row.sid}`,
      }
      const change = { resource, summary: `Hung up ${row.sid}`, before: null, after: null, trunk_id: row.trunk_id }
      return { status: 200, body: shown, change, wake: [['commands', row.sid] as const] }
    },
  }),
]
