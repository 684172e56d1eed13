import type { Level } from '../../../domain/admission/index.ts'
import { type Query, sized, tuples } from './steps.ts'

/** Levels of a call with their daily and velocity caps as they were when it was admitted. */
export type Caps = readonly (readonly [level: Level, id: string, daily: number | null, velocity: number | null])[]

export interface SpendChange {
  readonly caps: Caps
  readonly day: string
  /** Of the steady clock: a jump of the wall clock must not empty a rolling hour. */
  readonly minute: number
  /** Null when the payer is known to have none. */
  readonly account: string | null
  /** More money held, or less: what was held and not needed. */
  readonly minor: number
}

// Only subtrunks (spec) and projects (the operator) have a velocity cap. A subtrunk's hour is counted always, so that a
// cap that is set finds what was spent before; a project's only when it is capped, because every call would pay for it.
const countsHour = (level: Level, velocity: number | null): boolean => level === 'subtrunk' || velocity !== null

const ADD_DAY = sized(
  count => `insert into spend_day (level, subject_id, day, spent_minor) values ${tuples(count, 4)}
    on conflict (subject_id, level, day) do update set
      spent_minor = case when spend_day.spent_minor + ? < 0 then 0 else spend_day.spent_minor + ? end`,
)
const ADD_MINUTE = sized(
  count => `insert into spend_minute (level, subject_id, minute, spent_minor) values ${tuples(count, 4)}
    on conflict (subject_id, level, minute) do update set
      spent_minor = case when spend_minute.spent_minor + ? < 0 then 0 else spend_minute.spent_minor + ? end`,
)

/** Counts held money at every level, whether capped or not, so that a cap set later finds what was spent before. */
export function addSpend(query: Query, { caps, day, minute, account, minor }: SpendChange): void {
  addToWindows(query, caps, day, minute, minor)
  if (account !== null) query('update billing_account set held_minor = held_minor + ? where id = ?', minor, account)
}

/** The windows alone, without the balance. */
export function addToWindows(query: Query, caps: Caps, day: string, minute: number, minor: number): void {
  query(ADD_DAY(caps.length), ...caps.flatMap(([level, id]) => [level, id, day, Math.max(0, minor)]), minor, minor)
  const counted = caps.filter(([level, , , velocity]) => countsHour(level, velocity))
  if (counted.length === 0) return
  query(
    ADD_MINUTE(counted.length),
    ...counted.flatMap(([level, id]) => [level, id, minute, Math.max(0, minor)]),
    minor,
    minor,
  )
}
