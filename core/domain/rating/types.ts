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
  /** Digits after the plus, or a class of legs: `SIP_CLASS`. */
  readonly prefix: string
  readonly label: string
}

/** The rate of legs to SIP URIs, in place of a prefix; a book without it has them for nothing. */
export const SIP_CLASS = 'sip'

/** A prefix or a class, for people. */
export const shownPrefix = (prefix: string): string => (prefix === SIP_CLASS ? prefix : `+${prefix}`)

export const MICRO_PER_MINOR = 1_000_000
