/** What decides how much an account may still spend, in minor units. */
interface Means {
  /** 1 when the account pays before its calls. */
  readonly prepaid: number | null
  readonly balance_minor: number
  /** How far the balance may fall below zero. */
  readonly credit_minor: number
  /** Reserved by running calls. */
  readonly held_minor: number
}

/** Returns what an account may still spend, in minor units; null for one that pays later. */
export const availableMinor = ({ prepaid, balance_minor, credit_minor, held_minor }: Means): number | null =>
  prepaid === 1 ? balance_minor + credit_minor - held_minor : null
