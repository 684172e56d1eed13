import { rateText } from './amounts.ts'
import type { ImportedRate } from './import.ts'
import { type Breathe, inSlices, sortInSlices } from './slices.ts'
import { shownPrefix, type Tariff } from './types.ts'

/** The changes from the current prices to a rate list. Each part is ordered by prefix. */
export interface RatePlan {
  readonly added: readonly ImportedRate[]
  readonly changed: readonly { readonly was: ImportedRate; readonly is: ImportedRate }[]
  /** Prefixes missing from the list. Calls to them lose their specific price. */
  readonly ended: readonly ImportedRate[]
  readonly same: number
}

/** Compares a list with the current prices, breathing between slices. */
export async function planRates(
  current: readonly ImportedRate[],
  wished: readonly ImportedRate[],
  breathe: Breathe,
): Promise<RatePlan> {
  const before = new Map<string, ImportedRate>()
  await inSlices(current, breathe, rate => before.set(rate.prefix, rate))
  const added: ImportedRate[] = []
  const changed: { was: ImportedRate; is: ImportedRate }[] = []
  let same = 0
  await inSlices(await sortInSlices(wished, breathe, byPrefix), breathe, is => {
    const was = before.get(is.prefix)
    before.delete(is.prefix)
    if (!was) added.push(is)
    else if (!sameTerms(was, is) || was.label !== is.label) changed.push({ was, is })
    else same += 1
  })
  return { added, changed, ended: await sortInSlices([...before.values()], breathe, byPrefix), same }
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

const byPrefix = (a: ImportedRate, b: ImportedRate): number => (a.prefix < b.prefix ? -1 : 1)

const sameTerms = (a: ImportedRate, b: ImportedRate): boolean =>
  a.rate_micro === b.rate_micro &&
  a.rate_unit === b.rate_unit &&
  a.increment_initial_seconds === b.increment_initial_seconds &&
  a.increment_additional_seconds === b.increment_additional_seconds

const nameOf = ({ prefix, label }: ImportedRate): string => `${shownPrefix(prefix)} ${label}`

/** Formats a rate in the currency, as customers see prices, and its increments in seconds: `₦9.00/min, 60/60`. */
const termsOf = (rate: ImportedRate): string =>
  `${rateText(rate)}, ${rate.increment_initial_seconds}/${rate.increment_additional_seconds}`

/** A price that moves by this factor is more likely a wrong unit or currency than a new price. */
const LEAP = 10n

/** Describes the prices that move tenfold or more, up or down, or from or to zero. */
export async function describeLeaps({ changed }: RatePlan, breathe: Breathe): Promise<readonly string[]> {
  const leaps: string[] = []
  await inSlices(changed, breathe, ({ was, is }) => {
    if (isLeap(perHour(was), perHour(is))) leaps.push(`${nameOf(is)}: ${rateText(was)} to ${rateText(is)}`)
  })
  return leaps
}

const perHour = ({ rate_micro, rate_unit }: Tariff): bigint =>
  BigInt(rate_micro) * (rate_unit === 'minute' ? 60n : 3600n)

const isLeap = (was: bigint, is: bigint): boolean =>
  was !== is && (was === 0n || is === 0n || is >= was * LEAP || was >= is * LEAP)

function changeOf(was: ImportedRate, is: ImportedRate): string {
  const terms = termsOf(was) === termsOf(is) ? termsOf(is) : `${termsOf(was)} to ${termsOf(is)}`
  return was.label === is.label ? terms : `${terms} (was ${was.label})`
}
