import { findCountry } from '../numbers/countries.ts'
import type { ReasonFacts } from '../reasons/index.ts'

/** A customer's change of a policy's destination rules. */
interface RuleChange {
  readonly kind: 'country' | 'prefix'
  readonly op: 'allow' | 'deny' | 'remove'
  readonly value: string
  readonly label: string | null
}

/** A change with its compiled prefix. `value` identifies a rule within its kind. */
export interface ReadRule extends RuleChange {
  /** Digits after the plus. */
  readonly prefix: string
}

type RuleReading =
  | { readonly rule: ReadRule }
  | { readonly refused: 'validation_failed' | 'country_code_shared'; readonly facts: ReasonFacts }

/** Compiles a country rule to its calling code. A country that shares its code with another is refused. */
export function readRule(change: RuleChange): RuleReading {
  if (change.kind === 'country') {
    const country = findCountry(change.value)
    if (!country)
      return { refused: 'validation_failed', facts: { value: `${change.value} is not an ISO country code` } }
    if (country.shared_code && change.op !== 'remove')
      return { refused: 'country_code_shared', facts: { value: country.iso_code } }
    const label = change.label ?? country.name
    return { rule: { ...change, value: country.iso_code, prefix: country.calling_code, label } }
  }
  const digits = change.value.replace(/[\s()-]/g, '').replace(/^(\+|00)/, '')
  if (!/^[0-9]{1,15}$/.test(digits))
    return { refused: 'validation_failed', facts: { value: `${change.value} is not a prefix of 1 to 15 digits` } }
  return { rule: { ...change, value: `+${digits}`, prefix: digits } }
}
