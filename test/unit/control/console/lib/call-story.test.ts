import type { CallDetail } from '../../../../../control/console/lib/api-types.ts'
import { offset, storyOf, ticksOf } from '../../../../../control/console/lib/call-story.ts'
import { headlineOf, outcomeOf, statusOfCall } from '../../../../../control/console/lib/outcome.ts'
import t from '../../../../support/harness/index.ts'

const BEGIN_MS = Date.parse('2026-11-26T10:00:00.000Z')
const at = (ms: number): string => new Date(BEGIN_MS + ms).toISOString()

const CALL: CallDetail = {
  ...{ id: 'CA1', account_sid: null, application_id: null, direction: 'outbound', duration_seconds: 0 },
  ...{
    ended_at: at(0),
    ended_by: null,
    from: '+2342010000001',
    number_id: null,
    origin: 'trunk',
    parent_call_id: null,
  },
  ...{ queued_at: at(0), reason: null, sip_code: null, start_time: null, status: 'failed', to: '+2348030000001' },
  ...{ trunk_id: null, attempts: [], carrier_id: null, diverters: [], events: [], first_diverter: null },
  ...{ initiated_at: null, last_diverter: null, media: null, price: null, price_explanation: null, record: null },
  ...{ recordings: [], ringing_at: null, sip_call_id: null },
}
const told = { messages: [], legs: [], now_ms: BEGIN_MS + 60_000 }
const words = { duration: (seconds: number | null) => `${seconds} s`, words: (name: string) => name }

t.test('a call that was refused at once has an axis, and a call that runs ends now', async t => {
  const refused = storyOf({ call: CALL, ...told })
  t.ok(refused.end_ms > refused.begin_ms)
  const running = storyOf({ call: { ...CALL, ended_at: null, start_time: at(1000) }, ...told })
  t.equal(running.end_ms, BEGIN_MS + 60_000)
  t.same(running.lanes[0]?.items.at(-1)?.label, 'Talking')
})

t.test(
  'a request lies on the axis from its sending to its answer, and widens the axis when it began before',
  async t => {
    const request = { method: 'POST', url: 'https://app.example/voice' }
    const http = (response: object) => ({
      at: at(200),
      kind: 'http' as const,
      number: null,
      detail: { request, response },
    })
    const lane = (response: object) =>
      storyOf({ call: { ...CALL, events: [http(response)] }, ...told }).lanes.find(({ id }) => id === 'webhooks')
    const good = lane({ response_code: 200, request_duration: 500 })?.items[0]
    t.match(good, { from_ms: BEGIN_MS - 300, to_ms: BEGIN_MS + 200, tone: 'good' })
    t.equal(good?.label, 'POST https://app.example/voice → 200')
    const dead = lane({ response_code: null, request_duration: 5000, error_message: 'no answer within 5 s' })?.items[0]
    t.match(dead, { tone: 'bad', label: /no answer within 5 s/ })
    const events = [http({ response_code: 200, request_duration: 500 })]
    t.equal(storyOf({ call: { ...CALL, events }, ...told }).begin_ms, BEGIN_MS - 300)
  },
)

t.test('a call is as red as its document', async t => {
  const error = { at: at(0), kind: 'error' as const, number: 11100, detail: { detail: 'no URL' } }
  const answered = { ...CALL, status: 'completed' as const, sip_code: 200, events: [error] }
  const failed = { ...answered, reason: 'document_failed' }
  t.match(outcomeOf(failed, words), { tone: 'bad', fault: 11100, text: /Its script failed: 11100: no URL\./ })
  t.match(outcomeOf(answered, words), { tone: 'warn', text: /A step of its script failed/ })
  t.match(outcomeOf({ ...answered, events: [] }, words), { tone: 'good', fault: null })
  t.same([statusOfCall(failed), statusOfCall(answered)], ['document-failed', 'completed'])
  t.equal(headlineOf(error), '11100: no URL')
})

t.test('an axis has round marks within its view, counted from the begin', async t => {
  t.same(ticksOf(BEGIN_MS, BEGIN_MS, BEGIN_MS + 34_000, 4), [0, 10_000, 20_000, 30_000])
  t.same(ticksOf(BEGIN_MS, BEGIN_MS + 8400, BEGIN_MS + 8500, 5), [8400, 8420, 8440, 8460, 8480, 8500])
  t.same([offset(1250), offset(0), offset(125_000)], ['1.25 s', '0 s', '2:05'])
})
