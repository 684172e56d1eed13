import { setImmediate as turn } from 'node:timers/promises'
import pino from 'pino'
import { Registry } from 'prom-client'
import type { CallRow } from '../../../../core/state/calls/running-calls.ts'
import type { CallContext } from '../../../../signaling/b2bua/context.ts'
import { type CallPlan, InboundCall } from '../../../../signaling/b2bua/inbound-call.ts'
import type { LegPolicy } from '../../../../signaling/b2bua/media.ts'
import { createCallMetrics } from '../../../../signaling/b2bua/metrics.ts'
import { CallRegistry } from '../../../../signaling/b2bua/registry.ts'
import type { CallScript, ScriptHost } from '../../../../signaling/b2bua/script-host.ts'
import { CallerGone, type Dialog, type InboundInvite } from '../../../../signaling/drachtio/types.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import t from '../../../support/harness/index.ts'
import { AGREED, legServices, sessionWith } from '../../../support/one-leg.ts'

// What an unanswered caller gets. The call and its leg are real; the script, the SIP stack, the media worker and the
// state are fakes. No row is written, so the calls stay in their registry.

const SCRIPT = { kind: 'script', entry: {} } as CallPlan
const POLICY: LegPolicy = {
  ...{ codecs: ['PCMU'], security: 'rtp', source_validation: 'relaxed', sources: [], signalled_from: null },
  telephone_event: true,
}
const DIALOG = {
  id: 'd',
  call_id: 'c',
  request: async () => undefined,
  bye: async () => undefined,
} as unknown as Dialog

/** A call by an INVITE with these headers, on which a script rings. */
async function calling(headers: Record<string, string> = {}, accept: InboundInvite['accept'] = async () => DIALOG) {
  const clock = new ManualClock()
  const refused: number[] = []
  const invite = {
    ...{ method: 'INVITE', uri: 'sip:x', call_id: 'c', headers, body: 'v=0', accept },
    header: (name: string) => headers[name] ?? null,
    content: () => ({ sdp: 'v=0 theirs', parts: [], refused: null, notes: [] }),
    source: { address: '192.0.2.1', port: 5060, transport: 'udp' },
    ...{ onEarly: () => undefined, onCancel: () => undefined, progress: async () => undefined },
    refuse: (status: number) => void refused.push(status),
  } as InboundInvite
  const hosts: ScriptHost[] = []
  const scripts = {
    create: (host: ScriptHost) => {
      hosts.push(host)
      return { start: () => undefined, legEnded: () => undefined } as unknown as CallScript
    },
  }
  const ctx = {
    ...legServices({ clock, sip: {} as CallContext['sip'] }),
    ...{ scripts, calls: new CallRegistry(), log: pino({ level: 'silent' }), state: { db: {} } },
    ...{
      metrics: createCallMetrics(new Registry(), clock),
      bus: { ring: () => undefined },
      ends: { keep: () => undefined },
    },
  } as unknown as CallContext
  const row = { sid: 'CA1', project_id: 'prj_1', trunk_id: null, origin: 'trunk', request: null } as CallRow
  const limits = { max_duration_seconds: null, max_duration_reason: null, paid_until_seconds: null }
  const call = new InboundCall(ctx, { row, session: await sessionWith(() => AGREED), invite, limits })
  await call.begin(POLICY, SCRIPT)
  const [host] = hosts
  if (!host) throw new Error('no script runs')
  return { call, clock, refused, host }
}

t.test('an INVITE that expires while a document rings is refused with 487', async t => {
  const { call, clock, refused } = await calling({ expires: '30' })
  clock.advance(29_999)
  t.same([call.ended, refused], [false, []])
  clock.advance(1)
  t.same(refused, [487], 'RFC 3261 §13.3.1')
  t.match(call.final, { status: 'no-answer', sip_code: 487, reason: 'no_answer', ended_by: 'platform' })
})

t.test('Expires ends no call that is answered, or whose INVITE has none', async t => {
  const answered = await calling({ expires: '30' })
  await answered.host.answer()
  const endless = await calling({ expires: '0' })
  for (const { call, clock } of [answered, endless]) {
    clock.advance(3_600_000)
    t.equal(call.ended, false)
  }
})

t.test('a caller whose connection is gone has not acknowledged the answer, which is no fault of ours', async t => {
  const gone = async (): Promise<never> => {
    throw new CallerGone('transport for response has been shutdown or closed')
  }
  const { call, host } = await calling({}, gone)
  // Both wait for rows of the end.
  host.answer().catch(() => undefined)
  await turn()
  const unanswered = { status: 'failed', sip_code: 408, reason: 'no_ack', ended_by: 'platform' }
  t.match(call.final, unanswered)

  // Another telephone takes the call: only the caller's call ends.
  const taken = await calling({}, gone)
  taken.call.pickedUp((await calling()).call.leg).catch(() => undefined)
  await turn()
  t.match(taken.call.final, unanswered)
})
