import { rateText } from './amounts.ts'
import type { ImportedRate } from './import.ts'
import { shownPrefix, type Tariff } from './types.ts'

/** The changes from the current prices to a rate list. Each part is ordered by prefix. */
interface RatePlan {
  readonly added: readonly ImportedRate[]
  readonly changed: readonly { readonly was: ImportedRate; readonly is: ImportedRate }[]
  /** Prefixes missing from the list. Calls to them lose their specific price. */
  readonly ended: readonly ImportedRate[]
  readonly same: number
}

export function planRates(current: readonly ImportedRate[], wished: readonly ImportedRate[]): RatePlan {
  const before = new Map(current.map(rate => [rate.prefix, rate]))
  const after = new Set(wished.map(rate => rate.prefix))
  const added: ImportedRate[] = []
  const changed: { was: ImportedRate; is: ImportedRate }[] = []
  let same = 0
  for (const is of byPrefix(wished)) {
    const was = before.get(is.prefix)
    if (!was) added.push(is)
    else if (termsOf(was) !== termsOf(is) || was.label !== is.label) changed.push({ was, is })
    else same += 1
  }
  return { added, changed, ended: byPrefix(current.filter(rate => !after.has(rate.prefix))), same }
}

export const changesNothing = ({ added, changed, ended }: RatePlan): boolean =>
  added.length + changed.length + ended.length === 0

/**
 * Describes a plan: at most `most` lines of each kind, for added (+), removed (-) and changed (~) rates, and all
 * counts.
 */
export function describeRatePlan({ added, changed, ended, same }: RatePlan, most: number): readonly string[] {
  const shown = <T>(sign: '-' | '~' | '+', items: readonly T[], line: (item: T) => string): string[] => [
    ...items.slice(0, most).map(item => `${sign} ${line(item)}`),
    ...(items.length > most ? [`${sign} and ${items.length - most} more`] : []),
  ]
  return [
    ...shown('-', ended, rate => `${nameOf(rate)}: ${termsOf(rate)}`),
    ...shown('~', changed, ({ was, is }) => `${nameOf(is)}: ${changeOf(was, is)}`),
    ...shown('+', added, rate => `${nameOf(rate)}: ${termsOf(rate)}`),
    `${added.length} added, ${changed.length} changed, ${ended.length} ended, ${same} as they were`,
  ]
}

const byPrefix = (rates: readonly ImportedRate[]): readonly ImportedRate[] =>
  [...rates].sort((a, b) => (a.prefix < b.prefix ? -1 : 1))

const nameOf = ({ prefix, label }: ImportedRate): string => `${shownPrefix(prefix)} ${label}`

/** Formats a rate in the currency, as customers see prices, and its increments in seconds: `₦9.00/min, 60/60`. */
const termsOf = (rate: ImportedRate): string =>
  `${rateText(rate)}, ${rate.increment_initial_seconds}/${rate.increment_additional_seconds}`

/** A price that moves by this factor is more likely a wrong unit or currency than a new price. */
const LEAP = 10n

/** Describes the prices that move tenfold or more, up or down, or from or to zero. */
export const describeLeaps = ({ changed }: RatePlan): readonly string[] =>
  changed
    .filter(({ was, is }) => isLeap(perHour(was), perHour(is)))
    .map(({ was, is }) => `${nameOf(is)}: ${rateText(was)} to ${rateText(is)}`)

const perHour = ({ rate_micro, rate_unit }: Tariff): bigint =>
  BigInt(rate_micro) * (rate_unit === 'minute' ? 60n : 3600n)

const isLeap = (was: bigint, is: bigint): boolean =>
  was !== is && (was === 0n || is === 0n || is >= was * LEAP || was >= is * LEAP)

function changeOf(was: ImportedRate, is: ImportedRate): string {
  const terms = termsOf(was) === termsOf(is) ? termsOf(is) : `${termsOf(was)} to ${termsOf(is)}`
  return was.label === is.label ? terms : `${terms} (was ${was.label})`
}
