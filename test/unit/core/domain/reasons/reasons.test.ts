import {
  isReason,
  problemOf,
  REASONS,
  type Reason,
  type ReasonEntry,
  reasonMend,
  reasonSentence,
  sipRefusal,
  templateInWords,
  voiceErrorOf,
} from '../../../../../core/domain/reasons/index.ts'
import { counted } from '../../../../../core/domain/text/counted.ts'
import t from '../../../../support/harness/index.ts'

const ALL = Object.keys(REASONS) as Reason[]

t.test('every reason has a sentence, a remedy, and codes within their ranges', async t => {
  for (const reason of ALL) {
    const entry: ReasonEntry = REASONS[reason]
    t.match(reason, /^(DESTINATION_CONTAINED|[a-z][a-z0-9_]*)$/)
    t.ok(entry.sentence.length > 5 && entry.mend.length > 5, `${reason} says what and what to do`)
    t.ok(
      entry.sip === null || (entry.sip >= 400 && entry.sip < 700 && entry.sip !== 486) || reason === 'peer_busy',
      reason,
    )
    t.ok(entry.http === null || (entry.http >= 400 && entry.http < 600), reason)
    t.equal(entry.voice === null, entry.voice_http === null, `${reason}: a voice number has a status`)
    for (const placeholder of `${templateInWords(entry.sentence)}${entry.mend}`.match(/\{[^}]*\}/g) ?? [])
      t.match(placeholder, /^\{(value|limit|name)\}$/, reason)
  }
  t.equal(isReason('no_rate'), true)
  t.equal(isReason('toString'), false)
})

t.test('refusals carry the codes of the design', async t => {
  const table: readonly [Reason, number, number | null, number | null][] = [
    ['project_disabled', 403, 409, 10001],
    ['subaccount_suspended', 403, 409, 10001],
    ['trunk_disabled', 403, 409, 10001],
    ['subtrunk_disabled', 403, 409, 10001],
    ['direction_not_allowed', 403, null, null],
    ['tls_required', 403, null, null],
    ['srtp_required', 488, null, null],
    ['no_common_codec', 488, null, null],
    ['number_invalid', 404, 422, 21211],
    ['caller_not_owned', 403, 422, 21210],
    ['destination_denied', 403, 403, 21215],
    ['DESTINATION_CONTAINED', 403, 403, 21216],
    ['no_rate', 404, 409, 21214],
    ['no_route', 404, 409, 21214],
    ['rate_above_ceiling', 403, 403, 21215],
    ['concurrency_exceeded', 503, 429, 20429],
    ['cps_exceeded', 503, 429, 32001],
    ['daily_spend_exceeded', 403, 403, 20403],
    ['velocity_exceeded', 403, 403, 20403],
    ['balance_exhausted', 403, 403, 20403],
    ['number_quarantined', 410, null, null],
    ['loop_detected', 482, null, null],
  ]
  for (const [reason, sip, http, voice] of table) t.match(REASONS[reason], { sip, http, voice }, reason)
})

t.test('every projection of a refusal contains the offending value', async t => {
  const facts = { value: '+2348031234567', limit: '+23480', name: 'CASE-7' }
  const refusal = sipRefusal('DESTINATION_CONTAINED', facts)
  t.same(refusal.headers, {
    Reason: 'X-Strowger;cause=403;text="DESTINATION_CONTAINED"',
    Warning: '399 strowger "the destination +2348031234567 is contained: prefix +23480, case CASE-7"',
  })
  t.match(problemOf('DESTINATION_CONTAINED', facts), {
    status: 403,
    code: 'DESTINATION_CONTAINED',
    detail: /\+2348031234567/,
  })
  t.match(voiceErrorOf('DESTINATION_CONTAINED', facts), {
    status: 403,
    code: 21216,
    message: /\+2348031234567/,
    details: { reason: 'DESTINATION_CONTAINED' },
  })
  t.match(reasonMend('DESTINATION_CONTAINED', facts), /containment/)
  t.equal(sipRefusal('cps_exceeded').headers['Retry-After'], '1')
})

t.test('one thing is one, several are several, in sentences and documents', async t => {
  const told = (value: number) => reasonSentence('concurrency_exceeded', { value, limit: 1, name: 'trunk PBX' })
  t.equal(told(1), '1 call is in progress and the concurrency of trunk PBX is 1')
  t.equal(told(1200), '1,200 calls are in progress and the concurrency of trunk PBX is 1')
  t.match(templateInWords(REASONS.concurrency_exceeded.sentence), /^\{value\} calls are in progress/)
  t.equal(counted(1, 'try', 'tries'), '1 try')
  t.equal(counted(0, 'rate'), '0 rates')
})

t.test('a peer’s value cannot inject into our headers', async t => {
  const { headers } = sipRefusal('number_invalid', { value: 'a"\\\r\nX-Evil: 1\u0000é', limit: 'NG' })
  t.match(headers.Warning, /^399 strowger "[\x20\x21\x23-\x5b\x5d-\x7e]*"$/)
  t.ok(sipRefusal('number_invalid', { value: 'x'.repeat(10_000) }).headers.Warning.length < 400)
  t.match(reasonSentence('number_invalid', {}), /none/)
})
