import { voiceService } from '../../../../../core/domain/admission/index.ts'
import { ending } from '../../../../../core/domain/calls/endings.ts'
import { wrongCounters } from '../../../../../core/state/calls/counters.ts'
import { admitQueuedCall, writeCall } from '../../../../../core/state/calls/running-calls.ts'
import { endCallsOfLostNodes, NodeWatch, registerNode } from '../../../../../core/state/nodes/nodes.ts'
import { type ControlPlane, controlPlane, openSandbox } from '../../../../support/control-plane.ts'
import t from '../../../../support/harness/index.ts'
import { MACHINE } from '../../../../support/machine.ts'

// A queued call of the API holds nothing: it takes its slots when a node admits it, and every end gives them back.

const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const w = await controlPlane(t, { rate_limit: boundless, bad_credentials: boundless })
await openSandbox(w)
const NODE = 'node_q'

async function queued(): Promise<string> {
  const [From = ''] = w.demo.numbers
  const form = { To: '+447700900123', From, Twiml: '<Response/>' }
  const { status, body, text } = await w.voice('POST', '/Calls.json', form)
  if (status !== 201) throw new Error(text)
  return body.sid
}

/** The slots that are held, and whether the counters say the same. */
async function held(of: ControlPlane): Promise<string> {
  const leases = await of.state.db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
  const uses = await of.state.db.selectFrom('level_use').select('live').execute()
  const wrong = await wrongCounters(of.state.db)
  return `${leases.length} leases, ${uses.filter(({ live }) => live > 0).length > 0 ? 'counted' : 'none counted'}, ${wrong.length} wrong`
}
const NONE = '0 leases, none counted, 0 wrong'

async function admitted(sid: string): Promise<void> {
  const row = await w.state.db.selectFrom('call').selectAll().where('sid', '=', sid).executeTakeFirstOrThrow()
  const now_ms = w.clock.now()
  const request = {
    ...({ call_sid: sid, part: 'outbound', way: 'create', node_id: NODE, project_id: row.project_id } as const),
    ...{ service: voiceService(row.project_id, row.application_id), called: row.to_number, caller: row.from_number },
    ...{ transport: null, offer: null, now_ms },
  }
  const { decided } = await admitQueuedCall(w.state.db, { requests: [request], waits_for: null, now_ms })
  if (!decided.admitted) throw new Error(JSON.stringify(decided))
  t.match(await held(w), /^1 leases, counted, 0 wrong$/, 'an admitted call holds its slots')
}

const end = (sid: string, facts: Parameters<typeof ending>[0]) =>
  writeCall(w.state.db, sid, [
    {
      step: 'end',
      facts: { ending: ending(facts), ended_ms: w.clock.now(), pdd_ms: null, media: null },
    },
  ])

/** How a queued call ends that no node has admitted, and one that was admitted before its INVITE. */
const ENDS = {
  'it is canceled': { cause: 'api', answered: false },
  'its minute in the queue is over': { cause: 'not_admitted', answered: false, reason: 'cps_exceeded', sip_code: 503 },
  'no media can be opened': { cause: 'not_admitted', answered: false, reason: 'media_unavailable', sip_code: 503 },
  'its number turns out to be none': {
    cause: 'not_admitted',
    answered: false,
    reason: 'number_invalid',
    sip_code: 404,
  },
} as const

t.test('a queued call holds no slot, and none is left however it ends', async t => {
  for (const [what, facts] of Object.entries(ENDS)) {
    const waiting = await queued()
    t.equal(await held(w), NONE, 'queued')
    await end(waiting, facts)
    t.equal(await held(w), NONE, `${what}, while it waits`)
    const left = await queued()
    await admitted(left)
    await end(left, facts)
    t.equal(await held(w), NONE, `${what}, after it was admitted`)
  }
  const lost = await queued()
  await admitted(lost)
  await w.state.db.updateTable('call').set({ node_id: NODE }).where('sid', '=', lost).execute()
  await registerNode(w.state.db, { id: NODE, kind: 'signaling', ...MACHINE, pid: 1 }, w.clock.now())
  t.same(await endCallsOfLostNodes(w.state, w.clock, new NodeWatch(), { dead: ({ id }) => id === NODE }), [lost])
  t.equal(await held(w), NONE, 'its node is lost')
})
