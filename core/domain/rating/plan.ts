import { decimal } from './explain.ts'
import type { ImportedRate } from './import.ts'
import { shownPrefix } from './types.ts'

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

/** Formats a rate in minor units and its increments in seconds. */
const termsOf = (rate: ImportedRate): string =>
  `${decimal(rate.rate_micro)} a ${rate.rate_unit}, ${rate.increment_initial_seconds}/${rate.increment_additional_seconds}`

function changeOf(was: ImportedRate, is: ImportedRate): string {
  const terms = termsOf(was) === termsOf(is) ? termsOf(is) : `${termsOf(was)} to ${termsOf(is)}`
  return was.label === is.label ? terms : `${terms} (was ${was.label})`
}
