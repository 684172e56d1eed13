import { CURRENCY } from './currency.ts'
import type { Tariff } from './types.ts'

/** Amounts as people read them, exact to the last digit. */

const MONEY = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: CURRENCY,
  currencyDisplay: 'narrowSymbol',
  minimumFractionDigits: 2,
  maximumFractionDigits: 8,
})
const MICRO_PER_MAJOR = 100_000_000n

function formatMicro(micro: bigint): string {
  const positive = micro < 0n ? -micro : micro
  const digits = `${positive / MICRO_PER_MAJOR}.${(positive % MICRO_PER_MAJOR).toString().padStart(8, '0')}`
  return MONEY.format(`${micro < 0n ? '-' : ''}${digits}` as `${number}`)
}

/** Formats 900 minor units as `₦9.00`. */
export const amountText = (minor: number): string => formatMicro(BigInt(minor) * 1_000_000n)

/** Formats a rate as `₦9.00/min`. */
export const rateText = ({ rate_micro, rate_unit }: Pick<Tariff, 'rate_micro' | 'rate_unit'>): string =>
  `${formatMicro(BigInt(rate_micro))}/${rate_unit === 'minute' ? 'min' : 's'}`
