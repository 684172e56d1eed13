import { type DestinationGroup, isNew, type ServiceTraffic } from '../alerts/judge.ts'
import type { AlertKind } from '../alerts/types.ts'
import { counted } from '../text/counted.ts'

/** Proposes prefixes to close automatically, from the traffic of a service (design, "Containment"). */

type ReasonCategory = 'spend_velocity' | 'destination_risk' | 'account_compromise'

export interface Proposal {
  /** Digits after the plus. */
  readonly prefix: string
  readonly reason_category: ReasonCategory
  readonly reason_detail: string
  /** The kind of its alert, and the parts of that alert's key after kind and trunk. */
  readonly alert_kind: AlertKind
  readonly alert_key: readonly string[]
}

export interface FraudRules {
  /** A rate of at least this much per minute counts as expensive. */
  readonly high_cost_minor: number
  /** A service's spend in the window that counts as fast; null disables the rule. */
  readonly velocity_minor: number | null
  readonly velocity_min_calls: number
  readonly ceiling_minor: number | null
  /** Spend from a new source in the window that suggests a stolen account. */
  readonly compromise_minor: number
}

/** Calls in the window to an expensive destination that was never called before. */
const BURST_FIRST_SEEN = 5
/** Calls in the window to an expensive prefix, nearly all short: fraud paid per call, or a test of what works. */
const BURST_SHORT = 20
const SHORT_SHARE = 0.8
const BURST_NIGHT = 5
/** A closed prefix is at most this much longer than the rate's, because the next call goes to a neighbouring number. */
const CLOSER_DIGITS = 3

/** Returns at most one proposal for each destination, with the most severe reason. */
export function propose(service: ServiceTraffic, rules: FraudRules, now: string): Proposal[] {
  return service.destinations.flatMap(group => {
    const why = reasonToClose(service, group, rules, now)
    return why ? [{ prefix: prefixToClose(group), ...why }] : []
  })
}

export function prefixToClose({ rate_prefix, common_digits }: DestinationGroup): string {
  return common_digits.startsWith(rate_prefix)
    ? common_digits.slice(0, rate_prefix.length + CLOSER_DIGITS)
    : rate_prefix
}

function reasonToClose(
  service: ServiceTraffic,
  group: DestinationGroup,
  rules: FraudRules,
  now: string,
): Omit<Proposal, 'prefix'> | null {
  const dear = group.rate_minor_per_minute >= rules.high_cost_minor
  const fresh = isNew(group, now)
  const leads = group.spend_minor * 2 >= service.spend_minor
  const where = `+${group.rate_prefix} (${group.label})`
  const stranger = service.new_sources.find(source => source.spend_minor >= rules.compromise_minor)
  if (stranger && dear && leads)
    return {
      reason_category: 'account_compromise',
      reason_detail: `${counted(group.calls, 'call')} to ${where} from the new source ${stranger.address}`,
      alert_kind: 'new_source_ip',
      alert_key: [stranger.address],
    }
  const over = rules.velocity_minor !== null && service.spend_minor >= rules.velocity_minor
  const over_ceiling = rules.ceiling_minor !== null && service.ceiling_spend_minor >= rules.ceiling_minor
  // High spend to a usual destination only raises an alert. The prefix is closed when it is also expensive or new.
  if (leads && (over_ceiling || (over && group.calls >= rules.velocity_min_calls)) && (dear || fresh))
    return {
      reason_category: 'spend_velocity',
      reason_detail: `${counted(group.calls, 'call')} to ${where} within ${service.window_seconds} s made most of the spend`,
      alert_kind: 'spend_velocity',
      alert_key: [],
    }
  if (!dear) return null
  if (fresh && group.calls >= BURST_FIRST_SEEN)
    return risk(`${counted(group.calls, 'call')} to ${where}, which was never called before`, group)
  if (group.settled >= BURST_SHORT && group.short >= group.settled * SHORT_SHARE)
    return risk(`${group.short} of ${group.settled} calls to ${where} were shorter than 6 s`, group)
  if (service.night && group.earlier_nights === 0 && group.calls >= BURST_NIGHT)
    return risk(`${counted(group.calls, 'call')} at night to ${where}, which is not called at night`, group)
  return null
}

const risk = (reason_detail: string, group: DestinationGroup) => ({
  reason_category: 'destination_risk' as const,
  reason_detail,
  alert_kind: 'first_seen_high_cost_destination' as const,
  alert_key: [group.rate_prefix],
})

/**
 * Returns why a prefix is protected: an emergency or other protected number begins with it, or it lies within a prefix
 * that a policy of the project explicitly allows.
 */
export function protectedBy(
  prefix: string,
  facts: { readonly numbers: readonly string[]; readonly allowed_prefixes: readonly string[] },
): 'emergency' | 'allowed' | null {
  if (facts.numbers.some(digits => digits.startsWith(prefix))) return 'emergency'
  if (facts.allowed_prefixes.some(allowed => prefix.startsWith(allowed) || allowed.startsWith(prefix))) return 'allowed'
  return null
}
