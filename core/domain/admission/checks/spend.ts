import { codedAmount } from '../../rating/amounts.ts'
import { heldMinor } from '../affordable.ts'
import { levelName, passed, refused, skipped, withinLevels } from '../findings.ts'
import type { AdmissionFacts, Check, CheckResult } from '../types.ts'

/**
 * Compares daily spend, then velocity, then the balance, each including the first increment of this call. Last, it
 * refuses a call whose maximum duration is 0.
 */
export const spend: Check = {
  name: 'spend',
  reasons: ['daily_spend_exceeded', 'velocity_exceeded', 'balance_exhausted', 'max_duration'],
  asked: ['outbound', 'inbound', 'on_net'],
  decide(facts) {
    const duration = runsAtAll(facts)
    if (facts.direction !== 'outbound' && !facts.rate)
      return duration.result === 'refused' ? duration : skipped('this side of the call has no price')
    const adds = heldMinor(facts)
    const daily = withinLevels(facts.levels, {
      reason: 'daily_spend_exceeded',
      noun: 'the spend of today',
      of_money: true,
      compare: level => level.daily_spend,
      adds,
      shows: 'with_this_call',
    })
    if (daily.result === 'refused') return daily
    const velocity = withinLevels(facts.levels, {
      reason: 'velocity_exceeded',
      noun: 'the spend of the last hour',
      of_money: true,
      compare: level => level.velocity,
      adds,
      shows: 'with_this_call',
    })
    if (velocity.result === 'refused') return velocity
    const { available_minor, name } = facts.balance
    if (available_minor !== null && facts.billing === 'rated' && adds > available_minor)
      return refused('balance_exhausted', { value: adds, limit: available_minor, name })
    if (duration.result === 'refused') return duration
    const left = available_minor === null ? 'no balance ceiling' : `${codedAmount(available_minor)} of balance`
    return { ...daily, sentence: `holds ${codedAmount(adds)}; ${daily.sentence}; ${velocity.sentence}; ${left}` }
  },
}

function runsAtAll({ levels }: AdmissionFacts): CheckResult {
  const none = levels.find(level => level.max_call_duration_seconds !== null && level.max_call_duration_seconds <= 0)
  return none
    ? refused('max_duration', { name: levelName(none), limit: none.max_call_duration_seconds, value: 0 })
    : passed('the call may run', null, null)
}
