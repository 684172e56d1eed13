import type { ParsedNumber } from '../numbers/parse.ts'

/**
 * Destinations whose calls are worth stealing: whoever owns the called range shares in what callers pay. They are
 * closed to a project until an operator opens them by name.
 *
 * Sources, as read on the date below:
 * - ITU-T, "List of Recommendation ITU-T E.164 assigned country codes" (Operational Bulletin 1114, 15 December 2016; no
 *   later edition): codes without a country, for satellite systems (+870, +881), international networks (+882, +883; of
 *   these 882 13 is EMSAT and 882 16 Thuraya), personal numbers (+878) and premium rates (+979). +888 was reclaimed.
 * - NANPA, area codes by country: 900, and the countries of zone 1 that a PBX dials as if they were domestic, without
 *   the territories of the United States.
 * - libphonenumber, for the premium rate numbers of each national plan.
 * - Commsrisk, 8 April 2020: Cuba and Latvia lead published lists of revenue-share fraud.
 */
export const HIGH_RISK_AS_OF = '2026-11-26'

interface HighRisk {
  /** By which an operator opens it. */
  readonly name: string
  readonly label: string
  /** Digits after the plus. */
  readonly prefixes: readonly string[]
  /** Numbers of this kind that no prefix names. */
  readonly kind?: ParsedNumber['kind']
}

// biome-ignore format: one area code after the other.
const CARIBBEAN = [
  '242', '246', '264', '268', '284', '345', '441', '473', '649', '658', '664', '721', '758', '767', '784', '809', '829',
  '849', '868', '869', '876',
]

const HIGH_RISKS = [
  { name: 'satellite', label: 'satellite telephones', prefixes: ['870', '881', '88213', '88216'] },
  { name: 'international-networks', label: 'international networks', prefixes: ['878', '882', '883', '888'] },
  { name: 'international-premium', label: 'international premium rate numbers', prefixes: ['979'] },
  { name: 'north-american-premium', label: 'premium rate numbers of North America', prefixes: ['1900'] },
  { name: 'cuba', label: 'Cuba', prefixes: ['53'] },
  { name: 'latvia', label: 'Latvia', prefixes: ['371'] },
  { name: 'national-premium', label: 'premium rate numbers of a country', prefixes: [], kind: 'premium' },
  { name: 'caribbean', label: 'the Caribbean and Bermuda', prefixes: CARIBBEAN.map(code => `1${code}`) },
] as const satisfies readonly HighRisk[]

export const HIGH_RISK_NAMES = HIGH_RISKS.map(({ name }) => name)

/** Finds the class of a number by its longest prefix, else by its kind; null for an ordinary destination. */
export function highRiskOf({ digits, kind }: Pick<ParsedNumber, 'digits' | 'kind'>): HighRisk | null {
  const risks: readonly HighRisk[] = HIGH_RISKS
  let best: { readonly risk: HighRisk; readonly length: number } | null = null
  for (const risk of risks)
    for (const prefix of risk.prefixes)
      if (digits.startsWith(prefix) && prefix.length > (best?.length ?? 0)) best = { risk, length: prefix.length }
  return best?.risk ?? risks.find(risk => risk.kind === kind) ?? null
}
