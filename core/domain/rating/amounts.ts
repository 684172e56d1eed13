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

/** Formats millionths of a minor unit: 933,333 as `₦0.00933333`. */
export function microText(micro: bigint): string {
  const positive = micro < 0n ? -micro : micro
  const digits = `${positive / MICRO_PER_MAJOR}.${(positive % MICRO_PER_MAJOR).toString().padStart(8, '0')}`
  return MONEY.format(`${micro < 0n ? '-' : ''}${digits}` as `${number}`)
}

const SYMBOL = MONEY.formatToParts(0).find(({ type }) => type === 'currency')?.value ?? CURRENCY

/** Formats 900 minor units as `₦9.00`. Admission writes several amounts for each call; Intl takes ten times as long. */
export function amountText(minor: number): string {
  const positive = Math.abs(minor)
  const whole = String(Math.floor(positive / 100)).replace(/\B(?=(\d{3})+$)/g, ',')
  return `${minor < 0 ? '-' : ''}${SYMBOL}${whole}.${String(positive % 100).padStart(2, '0')}`
}

/** Writes amounts with the code of the currency where only ASCII may stand: `NGN 9.00`. */
export const amountsInAscii = (text: string): string => text.replaceAll(SYMBOL, `${CURRENCY} `)

/** Formats a rate as `₦9.00/min`. */
export const rateText = ({ rate_micro, rate_unit }: Pick<Tariff, 'rate_micro' | 'rate_unit'>): string =>
  `${microText(BigInt(rate_micro))}/${rate_unit === 'minute' ? 'min' : 's'}`
