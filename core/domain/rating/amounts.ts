import { CURRENCY } from './currency.ts'
import type { Tariff } from './types.ts'

/** Amounts as people read them, exact to the last digit. */

/** Made at the first use: most processes write no prices, and ICU costs each 20 ms and 8 MiB. */
let made: { readonly money: Intl.NumberFormat; readonly symbol: string } | null = null

function formats() {
  if (made) return made
  const money = new Intl.NumberFormat('en', {
    style: 'currency',
    currency: CURRENCY,
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: 2,
    maximumFractionDigits: 8,
  })
  const symbol = money.formatToParts(0).find(({ type }) => type === 'currency')?.value ?? CURRENCY
  made = { money, symbol }
  return made
}

const MICRO_PER_MAJOR = 100_000_000n

/** Formats millionths of a minor unit: 933,333 as `₦0.00933333`. */
export function microText(micro: bigint): string {
  const positive = micro < 0n ? -micro : micro
  const digits = `${positive / MICRO_PER_MAJOR}.${(positive % MICRO_PER_MAJOR).toString().padStart(8, '0')}`
  return formats().money.format(`${micro < 0n ? '-' : ''}${digits}` as `${number}`)
}

/** Formats 900 minor units as `₦9.00`. Intl takes ten times as long. */
export const amountText = (minor: number): string =>
  `${minor < 0 ? '-' : ''}${formats().symbol}${majorOf(Math.abs(minor))}`

/**
 * Formats 900 minor units as `NGN 9.00`, as decisions and refusals say amounts: they leave in headers of SIP, which are
 * ASCII. Admission writes several for each call, and a text of ASCII alone is stored in half the time.
 */
export const codedAmount = (minor: number): string => `${CURRENCY} ${minor < 0 ? '-' : ''}${majorOf(Math.abs(minor))}`

function majorOf(minor: number): string {
  const cents = minor % 100
  return `${inThousands(Math.floor(minor / 100))}.${cents < 10 ? '0' : ''}${cents}`
}

const inThousands = (whole: number): string =>
  whole < 1000 ? String(whole) : `${inThousands(Math.floor(whole / 1000))},${String(whole % 1000).padStart(3, '0')}`

/** Formats a rate as `₦9.00/min`. */
export const rateText = ({ rate_micro, rate_unit }: Pick<Tariff, 'rate_micro' | 'rate_unit'>): string =>
  `${microText(BigInt(rate_micro))}/${rate_unit === 'minute' ? 'min' : 's'}`
