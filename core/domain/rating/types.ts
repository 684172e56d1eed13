/**
 * The price of a second or a minute. Millionths of a minor unit allow decimals in rates and keep sums exact.
 */
export interface Tariff {
  readonly rate_micro: number
  readonly rate_unit: 'minute' | 'second'
  /** The minimum of billed seconds of an answered call. */
  readonly increment_initial_seconds: number
  /** The step in which further seconds are billed. */
  readonly increment_additional_seconds: number
}

export interface Rate extends Tariff {
  readonly id: string
  /** Digits after the plus, or a class of legs: `SIP_CLASS`. */
  readonly prefix: string
  readonly label: string
}

/** Replaces the prefix in the rate of legs to SIP URIs. They are free in a book without it. */
export const SIP_CLASS = 'sip'

/** Formats a prefix or a class. */
export const shownPrefix = (prefix: string): string => (prefix === SIP_CLASS ? prefix : `+${prefix}`)

export const MICRO_PER_MINOR = 1_000_000
