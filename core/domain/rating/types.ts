/**
 * Price of a second or a minute, in millionths of a minor unit, so that a rate may have decimals and a sum stays
 * exact.
 */
export interface Tariff {
  readonly rate_micro: number
  readonly rate_unit: 'minute' | 'second'
  /** Seconds billed at least, once answered. */
  readonly increment_initial_seconds: number
  /** Steps in which more seconds are billed. */
  readonly increment_additional_seconds: number
}

export interface Rate extends Tariff {
  readonly id: string
  /** Digits after the plus. */
  readonly prefix: string
  readonly label: string
}

export const MICRO_PER_MINOR = 1_000_000
