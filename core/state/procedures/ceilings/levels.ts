import type { Level, LevelFacts } from '../../../domain/admission/index.ts'
import { numberOf, numberOrNull, type Row, textOf } from '../query.ts'
import { type Second, takesWithin } from './window.ts'

/** The ceilings of one level, with the same names at every level. */
export interface LevelLimits {
  readonly level: Level
  readonly id: string
  readonly name: string
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_cap_minor: number | null
  readonly velocity_cap_minor: number | null
  readonly max_destination_rate_minor: number | null
  readonly max_call_duration_seconds: number | null
}

interface LevelRows {
  readonly project: Row
  readonly subaccount: Row | null
  readonly trunk: Row | null
  readonly subtrunk: Row | null
  readonly policies: readonly Row[]
}

/** Returns the levels in the order in which ceilings are checked: subtrunk, trunk, policy, subaccount, project. */
export function levelLimits({ project, subaccount, trunk, subtrunk, policies }: LevelRows): LevelLimits[] {
  return [
    ...(subtrunk ? [limitsOf('subtrunk', subtrunk)] : []),
    ...(trunk ? [limitsOf('trunk', trunk)] : []),
    // A subtrunk's own policy precedes the inherited one. If both are the same, it counts once.
    ...distinct(policies.toReversed()).map(policy => limitsOf('policy', policy)),
    ...(subaccount ? [limitsOf('subaccount', subaccount)] : []),
    limitsOf('project', project),
  ]
}

const distinct = (rows: readonly Row[]): Row[] =>
  rows.filter((row, index) => rows.findIndex(other => textOf(other, 'id') === textOf(row, 'id')) === index)

function limitsOf(level: Level, row: Row): LevelLimits {
  return {
    level,
    id: textOf(row, 'id'),
    name: textOf(row, 'name'),
    concurrency: numberOrNull(row, level === 'subaccount' ? 'max_concurrent' : 'concurrency'),
    cps: numberOrNull(row, level === 'subaccount' ? 'max_cps' : 'cps'),
    daily_spend_cap_minor: numberOrNull(row, level === 'policy' ? 'daily_spend_limit_minor' : 'daily_spend_cap_minor'),
    velocity_cap_minor: numberOrNull(row, 'velocity_cap_minor'),
    max_destination_rate_minor: numberOrNull(row, 'max_destination_rate_minor'),
    max_call_duration_seconds: numberOrNull(row, 'max_call_duration_seconds'),
  }
}

/** Combines a level's limits with their usage, from the rows of the usage tables. */
export function levelFacts(
  limits: LevelLimits,
  used: readonly Row[],
  hour: readonly Row[],
  second: Second,
): LevelFacts {
  const mine = (row: Row): boolean => textOf(row, 'subject_id') === limits.id && textOf(row, 'level') === limits.level
  const use = used.find(mine)
  const money = (row: Row | undefined): number => Math.max(0, numberOf(row ?? {}, 'spent_minor'))
  return {
    level: limits.level,
    id: limits.id,
    name: limits.name,
    concurrency: { limit: limits.concurrency, used: use ? numberOf(use, 'live') : 0 },
    cps: { limit: limits.cps, used: use ? takesWithin(second, textOf(use, 'takes')) : 0 },
    daily_spend: { limit: limits.daily_spend_cap_minor, used: money(use) },
    velocity: { limit: limits.velocity_cap_minor, used: money(hour.find(mine)) },
    max_destination_rate_minor: limits.max_destination_rate_minor,
    max_call_duration_seconds: limits.max_call_duration_seconds,
  }
}
