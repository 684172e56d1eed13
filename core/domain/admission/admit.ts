import { affordable, heldMinor } from './affordable.ts'
import { calledNumber } from './checks/called-number.ts'
import { callerNumber } from './checks/caller-number.ts'
import { callingHours } from './checks/calling-hours.ts'
import { concurrency } from './checks/concurrency.ts'
import { containment } from './checks/containment.ts'
import { cps } from './checks/cps.ts'
import { destination } from './checks/destination.ts'
import { direction } from './checks/direction.ts'
import { enabled } from './checks/enabled.ts'
import { media } from './checks/media.ts'
import { rateAndRoute } from './checks/rate-and-route.ts'
import { rateCeiling } from './checks/rate-ceiling.ts'
import { spend } from './checks/spend.ts'
import { transportSecurity } from './checks/transport-security.ts'
import { skipped } from './findings.ts'
import type { AdmissionFacts, Check, CheckResult, TracedFinding, Verdict } from './types.ts'

/** The order is a contract (design section 4): the first check that refuses gives the reason. */
export const CHECKS: readonly Check[] = [
  enabled,
  direction,
  transportSecurity,
  media,
  calledNumber,
  callerNumber,
  callingHours,
  destination,
  containment,
  rateAndRoute,
  rateCeiling,
  concurrency,
  cps,
  spend,
]

/** Decides whether a call may be placed. The trace has every check up to the one that refused. */
export function admit(facts: AdmissionFacts): Verdict {
  const trace: TracedFinding[] = []
  for (const check of CHECKS) {
    const finding = check.asked.includes(facts.direction)
      ? check.decide(facts)
      : skipped(`not asked of ${facts.direction} calls`)
    trace.push(traced(check.name, finding))
    if (finding.result === 'refused' && finding.reason)
      return { admitted: false, reason: finding.reason, sentence: finding.sentence, facts: finding.facts ?? {}, trace }
  }
  return { admitted: true, ...affordable(facts), reserve_minor: heldMinor(facts), trace }
}

/** Writes the properties one by one: to spread a finding takes longer than most checks. */
function traced(check: string, finding: CheckResult): TracedFinding {
  if (finding.result === 'refused') return { check, ...finding }
  const { result, limit, used, sentence, levels } = finding
  return levels ? { check, result, limit, used, sentence, levels } : { check, result, limit, used, sentence }
}
