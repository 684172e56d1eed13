import {
  type ClientEffect,
  type ClientEvent,
  type ClientRules,
  type ClientState,
  clientStep,
} from '../../../../../signaling/edge/transaction/client-machine.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

const RULES: ClientRules = { invite: true, reliable: false, patience_ms: 32_000, t1: 500, t2: 4_000, t4: 5_000 }
const INVITE = RULES
const OTHER: ClientRules = { ...RULES, invite: false }
const response = (status: number): ClientEvent => ({ kind: 'response', status })

/** Runs a sequence of events. Returns the final state and the effects of each event. */
function run(rules: ClientRules, events: readonly ClientEvent[]) {
  let state: ClientState = 'trying'
  const effects: ClientEffect[][] = []
  for (const event of events) {
    const step = clientStep(rules, state, event)
    state = step.state
    effects.push([...step.effects])
  }
  return { state, effects, last: effects.at(-1) }
}

/** Returns the successive intervals of Timer A or E after the given events, while no other event occurs. */
function waits(rules: ClientRules, events: readonly ClientEvent[], count: number): number[] {
  const begun = run(rules, events)
  const found: number[] = []
  let waited_ms = begun.effects.flat().findLast(effect => typeof effect === 'object' && 'resend_ms' in effect)
  while (found.length < count && typeof waited_ms === 'object' && 'resend_ms' in waited_ms) {
    found.push(waited_ms.resend_ms)
    const step = clientStep(rules, begun.state, { kind: 'resend', waited_ms: waited_ms.resend_ms })
    waited_ms = step.effects.find(effect => typeof effect === 'object' && 'resend_ms' in effect)
  }
  return found
}

t.test('over UDP an INVITE is retransmitted after T1, 2×T1, 4×T1 …, other requests at most T2 apart', async t => {
  const begin: ClientEvent = { kind: 'begin' }
  t.same(waits(INVITE, [begin], 5), [500, 1000, 2000, 4000, 8000])
  t.same(waits(OTHER, [begin], 5), [500, 1000, 2000, 4000, 4000])
  t.same(waits(OTHER, [begin, response(100)], 3), [500, 4000, 4000], 'a provisional response sets the interval to T2')
  t.same(
    run({ ...INVITE, reliable: true }, [begin]).last,
    [{ deadline_ms: 32_000 }, 'send'],
    'no retransmission over a reliable transport',
  )
  t.same(
    run(INVITE, [begin, response(180), { kind: 'resend', waited_ms: 500 }]).last,
    [],
    'no retransmission after a provisional response',
  )
})

t.test('an INVITE transaction acknowledges every copy of a failure and passes on every copy of a 2xx', async t => {
  const failed = run(INVITE, [{ kind: 'begin' }, response(486)])
  t.same(failed.last, ['stop_timers', 'ack', { deadline_ms: 32_000 }, 'tell_response'])
  t.same(run(INVITE, [{ kind: 'begin' }, response(486), response(486)]).last, ['ack_again'])
  t.same(run(INVITE, [{ kind: 'begin' }, response(486), response(200)]).last, [], 'a 2xx after a failure is dropped')
  t.same(run(INVITE, [{ kind: 'begin' }, response(200), response(200)]).last, ['tell_response'], 'RFC 6026')
  t.same(run(INVITE, [{ kind: 'begin' }, response(200), response(486)]).last, [])
  t.equal(run(INVITE, [{ kind: 'begin' }, response(200), { kind: 'deadline' }]).state, 'terminated', 'Timer M')
})

t.test('a request without a final response times out, except an INVITE that rings', async t => {
  t.same(run(INVITE, [{ kind: 'begin' }, { kind: 'deadline' }]).last, ['end', 'tell_timeout'])
  t.same(run(OTHER, [{ kind: 'begin' }, response(100), { kind: 'deadline' }]).last, ['end', 'tell_timeout'])
  t.same(run(INVITE, [{ kind: 'begin' }, response(180), { kind: 'deadline' }]).last, [])
  t.same(run(OTHER, [{ kind: 'begin' }, response(200), { kind: 'deadline' }]).last, ['end'], 'Timer K')
})

const anyRules = fc.record({ invite: fc.boolean(), reliable: fc.boolean() }).map(some => ({ ...RULES, ...some }))
const anyEvent: fc.Arbitrary<ClientEvent> = fc.oneof(
  fc.constantFrom(100, 180, 183, 200, 202, 302, 404, 486, 503, 603).map(response),
  fc.constantFrom<ClientEvent>({ kind: 'resend', waited_ms: 500 }, { kind: 'deadline' }, { kind: 'unreachable' }),
)

t.test('any sequence of events has at most one end and one outcome, and no effects after the end', async t => {
  fc.assert(
    fc.property(anyRules, fc.array(anyEvent, { maxLength: 12 }), (rules, events) => {
      const { state, effects } = run(rules, [{ kind: 'begin' }, ...events])
      const all = effects.flat()
      const count = (wanted: ClientEffect): number => all.filter(effect => effect === wanted).length
      const outcomes = count('tell_timeout') + count('tell_unreachable')
      if (count('end') !== (state === 'terminated' ? 1 : 0)) return false
      if (outcomes > 1 || count('ack') > 1) return false
      // A failure that was acknowledged is not followed by a timeout.
      if (count('ack') > 0 && outcomes > 0) return false
      const ended = effects.findIndex(of => of.includes('end'))
      return ended === -1 || effects.slice(ended + 1).every(of => of.length === 0)
    }),
    { numRuns: 20_000 },
  )
  t.pass()
})
