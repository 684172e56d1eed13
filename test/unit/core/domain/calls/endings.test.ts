import { type Cause, type EndFacts, ending } from '../../../../../core/domain/calls/endings.ts'
import { callbackParameters, rfc2822, standardParameters } from '../../../../../core/domain/calls/parameters.ts'
import { readCallRequest } from '../../../../../core/domain/calls/request.ts'
import t from '../../../../support/harness/index.ts'

t.test('the cause of an unanswered call’s end determines its status, code and reason', async t => {
  const table: [EndFacts['cause'], number | null, string, number, string | null, string][] = [
    ['caller_hung_up', null, 'canceled', 487, 'canceled', 'caller'],
    ['refused', 486, 'busy', 486, 'peer_busy', 'called'],
    ['refused', 600, 'busy', 600, 'peer_busy', 'called'],
    ['refused', 603, 'busy', 603, 'peer_busy', 'called'],
    ['refused', 480, 'no-answer', 480, 'no_answer', 'called'],
    ['refused', 408, 'no-answer', 408, 'no_answer', 'called'],
    ['refused', 404, 'failed', 404, 'peer_rejected', 'called'],
    ['refused', 302, 'failed', 480, 'peer_rejected', 'called'],
    ['refused', 503, 'failed', 503, 'peer_failed', 'called'],
    ['unreachable', null, 'failed', 503, 'target_unreachable', 'platform'],
    ['unreachable', 408, 'failed', 408, 'target_unreachable', 'platform'],
    ['ring_timeout', null, 'no-answer', 487, 'no_answer', 'platform'],
    ['api', null, 'canceled', 487, 'canceled', 'api'],
    ['lost', null, 'canceled', 487, 'canceled', 'platform'],
    ['media_unavailable', null, 'failed', 503, 'media_unavailable', 'platform'],
    ['node_lost', null, 'failed', 503, 'node_lost', 'platform'],
    ['draining', null, 'failed', 503, 'draining', 'platform'],
    ['internal', null, 'failed', 500, 'internal', 'platform'],
  ]
  for (const [cause, sip_code, status, code, reason, ended_by] of table)
    t.match(
      ending({ cause, answered: false, sip_code }),
      { status, sip_code: code, reason, ended_by },
      `${cause} ${sip_code ?? ''}`,
    )
})

t.test('an answered call is `completed` whatever ended it, and keeps a reason only when no party ended it', async t => {
  const quiet: Cause[] = ['caller_hung_up', 'called_hung_up', 'api', 'script']
  for (const cause of quiet)
    t.match(ending({ cause, answered: true }), { status: 'completed', sip_code: 200, reason: null })
  const told: Cause[] = ['max_duration', 'spend_exhausted', 'media_timeout', 'session_expired', 'node_lost', 'no_ack']
  for (const cause of told)
    t.match(ending({ cause, answered: true }), { status: 'completed', sip_code: 200, reason: cause })
})

t.test('a Reject keeps the status and code that the script chose', async t => {
  t.match(ending({ cause: 'rejected', answered: false, sip_code: 486, status: 'busy', reason: null }), {
    status: 'busy',
    sip_code: 486,
    reason: null,
  })
})

const call = {
  sid: 'CA1',
  account_sid: 'AC1',
  parent_call_sid: null,
  direction: 'inbound',
  from: '+2348030000099',
  to: '+2342010000001',
  status: 'ringing',
  number_sid: 'PN1',
  sip: { domain: 'x', username: 'u', call_id: 'c', source_ip: '10.0.0.1', headers: { 'X-Case': '4' } },
}

t.test('the standard parameters have both names of the parties, and the X- headers of the INVITE', async t => {
  t.match(standardParameters(call), {
    CallSid: 'CA1',
    From: '+2348030000099',
    Caller: '+2348030000099',
    To: '+2342010000001',
    Called: '+2342010000001',
    PhoneNumberSid: 'PN1',
    ApiVersion: '2010-04-01',
    SipHeader_X_Case: undefined,
    'SipHeader_X-Case': '4',
  })
  t.notOk('ParentCallSid' in standardParameters(call), 'what there is not is not said')
})

t.test('the last callback reports the duration and the final status', async t => {
  const facts = { status: 'completed', sequence: 3, at_ms: 0, duration_seconds: 61, sip_code: 200, sip_call_id: 'c' }
  t.match(callbackParameters(call, { ...facts, event: 'completed' }), {
    CallStatus: 'completed',
    SequenceNumber: '3',
    CallDuration: '61',
    Duration: '2',
    SipResponseCode: '200',
    Timestamp: 'Thu, 01 Jan 1970 00:00:00 +0000',
  })
  t.match(callbackParameters(call, { ...facts, event: 'answered' }), { CallStatus: 'in-progress' })
  t.equal(rfc2822(Date.UTC(2026, 10, 21, 13, 5, 9)), 'Sat, 21 Nov 2026 13:05:09 +0000')
})

t.test('an unreadable stored request is treated as empty', async t => {
  for (const json of [null, '', '[]', '"x"', '{', 'null']) t.same(readCallRequest(json), {})
  t.same(readCallRequest('{"url":"http://x"}'), { url: 'http://x' })
})
