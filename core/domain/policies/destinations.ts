/** A compiled rule of an outbound policy. A country rule has the country's calling code as its prefix. */
export interface DestinationRule {
  readonly op: 'allow' | 'deny'
  readonly kind: 'country' | 'prefix'
  /** As the customer gave it: an ISO code, or digits with or without plus. */
  readonly value: string
  /** Digits after the plus. */
  readonly prefix: string
  readonly label: string | null
}

/** A policy's rules that match one destination, and whether the policy has any allow rule. */
export interface ApplicableRules {
  readonly rules: readonly DestinationRule[]
  readonly has_allow: boolean
}

interface DestinationDecision {
  readonly allowed: boolean
  /** The deciding rule; null when none matches. */
  readonly rule: DestinationRule | null
}

/**
 * Decides a destination. The longest matching prefix wins, deny wins a tie, and any allow rule turns the policy into an
 * allow list (design section 4). `digits` is the E.164 number without plus.
 */
export function decideDestination(digits: string, { rules, has_allow }: ApplicableRules): DestinationDecision {
  let best: DestinationRule | null = null
  for (const rule of rules) {
    if (!digits.startsWith(rule.prefix)) continue
    if (
      !best ||
      rule.prefix.length > best.prefix.length ||
      (rule.prefix.length === best.prefix.length && rule.op === 'deny')
    )
      best = rule
  }
  return { allowed: best ? best.op === 'allow' : !has_allow, rule: best }
}

/** The rules of a policy by prefix. A match costs one lookup per digit, however many rules exist. */
interface CompiledRules {
  readonly has_allow: boolean
  readonly by_prefix: ReadonlyMap<string, readonly DestinationRule[]>
  readonly longest: number
}

export function compileRules(rules: Iterable<DestinationRule>): CompiledRules {
  const by_prefix = new Map<string, DestinationRule[]>()
  let has_allow = false
  let longest = 0
  for (const rule of rules) {
    const same = by_prefix.get(rule.prefix)
    if (same) same.push(rule)
    else by_prefix.set(rule.prefix, [rule])
    has_allow ||= rule.op === 'allow'
    longest = Math.max(longest, rule.prefix.length)
  }
  return { has_allow, by_prefix, longest }
}

/** Returns the rules of the longest prefix that matches `digits`. No others can decide. */
export function applicableRules({ has_allow, by_prefix, longest }: CompiledRules, digits: string): ApplicableRules {
  for (let length = Math.min(longest, digits.length); length >= 0; length--) {
    const rules = by_prefix.get(digits.slice(0, length))
    if (rules) return { has_allow, rules }
  }
  return { has_allow, rules: [] }
}

/** Returns every prefix of a number, longest first. */
export function prefixesOf(digits: string): string[] {
  const prefixes: string[] = []
  for (let length = digits.length; length >= 0; length--) prefixes.push(digits.slice(0, length))
  return prefixes
}
