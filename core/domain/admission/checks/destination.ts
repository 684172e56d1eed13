import { decideDestination } from '../../policies/destinations.ts'
import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

/**
 * A high-risk destination must have been opened by an operator (docs/calls.md), and every policy must allow it: a
 * subtrunk inherits its trunk's policy and can only narrow it.
 */
export const destination: Check = {
  name: 'destination',
  reasons: ['destination_high_risk', 'destination_denied'],
  asked: ['outbound'],
  decide({ called, policies, risk }) {
    if (!called.number) return skipped('there is no number')
    if (risk && !risk.open)
      return refused('destination_high_risk', { value: called.number.e164, name: risk.label, limit: risk.name })
    if (policies.length === 0) return skipped('no policy applies')
    const decided: string[] = []
    for (const policy of policies) {
      const { allowed, rule } = decideDestination(called.number.digits, policy)
      const why = rule
        ? `${rule.op} ${rule.kind} ${rule.value}`
        : policy.has_allow
          ? 'not in its allow list'
          : 'no rule'
      if (!allowed)
        return refused('destination_denied', { value: called.number.e164, name: `"${policy.name}"`, limit: why })
      decided.push(`"${policy.name}": ${why}`)
    }
    return passed(`allowed by policy ${decided.join(', ')}`, decided.join(', '), called.number.e164)
  },
}
