/**
 * Destinations whose calls are worth stealing: whoever owns the called range shares in what callers pay. They are
 * closed to a project until an operator opens them by name.
 *
 * Source of the ranges: ITU-T, "List of Recommendation ITU-T E.164 assigned country codes" (Operational Bulletin 1114,
 * 15 December 2016), with its codes for satellite systems, international networks and the international premium rate
 * service; NANPA for 900. Cuba and Latvia lead published lists of revenue-share fraud (Commsrisk, 8 April 2020).
 */
export const HIGH_RISK_AS_OF = '2026-11-01'

interface HighRisk {
  /** By which an operator opens it. */
  readonly name: string
  readonly label: string
  /** Digits after the plus. */
  readonly prefixes: readonly string[]
}

const HIGH_RISKS = [
  { name: 'satellite', label: 'satellite telephones', prefixes: ['870', '881', '88213', '88216'] },
  { name: 'international-networks', label: 'international networks', prefixes: ['882', '883'] },
  { name: 'international-premium', label: 'international premium rate numbers', prefixes: ['979'] },
  { name: 'north-american-premium', label: 'premium rate numbers of North America', prefixes: ['1900'] },
  { name: 'cuba', label: 'Cuba', prefixes: ['53'] },
  { name: 'latvia', label: 'Latvia', prefixes: ['371'] },
] as const satisfies readonly HighRisk[]

export const HIGH_RISK_NAMES = HIGH_RISKS.map(({ name }) => name)

/** Finds the class of a number by its longest prefix; null for an ordinary destination. `digits` has no plus. */
export function highRiskOf(digits: string): HighRisk | null {
  let best: { readonly risk: HighRisk; readonly length: number } | null = null
  for (const risk of HIGH_RISKS)
    for (const prefix of risk.prefixes)
      if (digits.startsWith(prefix) && prefix.length > (best?.length ?? 0)) best = { risk, length: prefix.length }
  return best?.risk ?? null
}
