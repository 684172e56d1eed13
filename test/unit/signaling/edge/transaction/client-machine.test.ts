import fc from 'fast-check'
import t from 'tap'
import {
  type ClientEffect,
  type ClientEvent,
  type ClientRules,
  type ClientState,
  clientStep,
} from '../../../../../signaling/edge/transaction/client-machine.ts'

const RULES: ClientRules = { invite: true, reliable: false, patience_ms: 32_000, t1: 500, t2: 4_000, t4: 5_000 }
const INVITE = RULES
const OTHER: ClientRules = { ...RULES, invite: false }
const response = (status: number): ClientEvent => ({ kind: 'response', status })

/** States and effects of a sequence of events. */
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

/** The waits of timer A or E, as a clock that only this timer moves would see them. */
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

t.test('over UDP an INVITE is sent again after T1, 2×T1, 4×T1 …, other requests at most T2 apart', async t => {
  const begin: ClientEvent = { kind: 'begin' }
  t.same(waits(INVITE, [begin], 5), [500, 1000, 2000, 4000, 8000])
  t.same(waits(OTHER, [begin], 5), [500, 1000, 2000, 4000, 4000])
  t.same(waits(OTHER, [begin, response(100)], 3), [500, 4000, 4000], 'a provisional response slows it down to T2')
  t.same(run({ ...INVITE, reliable: true }, [begin]).last, [{ deadline_ms: 32_000 }, 'send'], 'never over a stream')
  t.same(run(INVITE, [begin, response(180), { kind: 'resend', waited_ms: 500 }]).last, [], 'nor once it rings')
})

t.test('an INVITE: a failure is acknowledged each time that it comes, a 2xx is its user’s each time', async t => {
  const failed = run(INVITE, [{ kind: 'begin' }, response(486)])
  t.same(failed.last, ['stop_timers', 'ack', { deadline_ms: 32_000 }, 'tell_response'])
  t.same(run(INVITE, [{ kind: 'begin' }, response(486), response(486)]).last, ['ack_again'])
  t.same(run(INVITE, [{ kind: 'begin' }, response(486), response(200)]).last, [], 'a 2xx that is late is nobody’s')
  t.same(run(INVITE, [{ kind: 'begin' }, response(200), response(200)]).last, ['tell_response'], 'RFC 6026')
  t.same(run(INVITE, [{ kind: 'begin' }, response(200), response(486)]).last, [])
  t.equal(run(INVITE, [{ kind: 'begin' }, response(200), { kind: 'deadline' }]).state, 'terminated', 'Timer M')
})

t.test('deadlines: a request without an answer times out, an INVITE that rings does not', async t => {
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

t.test('whatever comes, in whatever order: one end, one outcome, and nothing after it', async t => {
  fc.assert(
    fc.property(anyRules, fc.array(anyEvent, { maxLength: 12 }), (rules, events) => {
      const { state, effects } = run(rules, [{ kind: 'begin' }, ...events])
      const all = effects.flat()
      const count = (wanted: ClientEffect): number => all.filter(effect => effect === wanted).length
      const outcomes = count('tell_timeout') + count('tell_unreachable')
      if (count('end') !== (state === 'terminated' ? 1 : 0)) return false
      if (outcomes > 1 || count('ack') > 1) return false
      // Who was refused, and has acknowledged it, hears of no timeout.
      if (count('ack') > 0 && outcomes > 0) return false
      const ended = effects.findIndex(of => of.includes('end'))
      return ended === -1 || effects.slice(ended + 1).every(of => of.length === 0)
    }),
    { numRuns: 20_000 },
  )
  t.pass()
})
