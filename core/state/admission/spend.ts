import type { Level } from '../../domain/admission/index.ts'
import { query, type Steps, tuples } from './steps.ts'

/** Levels of a call with their daily and velocity caps as they were when it was admitted. */
export type Caps = readonly (readonly [level: Level, id: string, daily: number | null, velocity: number | null])[]

export interface SpendChange {
  readonly caps: Caps
  readonly day: string
  /** Of the steady clock: a jump of the wall clock must not empty a rolling hour. */
  readonly minute: number
  readonly billing_account_id: string
  /** More money held, or less: what was held and not needed. */
  readonly minor: number
}

// Policies, trunks and subaccounts have no velocity cap (spec: subtrunk configuration); the project's is the operator's.
const VELOCITY_LEVELS: ReadonlySet<Level> = new Set(['subtrunk', 'project'])

/** Counts held money at every level, whether capped or not, so that a cap set later finds what was spent before. */
export function* addSpend({ caps, day, minute, billing_account_id, minor }: SpendChange): Steps<void> {
  yield* addToWindows(caps, day, minute, minor)
  yield* query('update billing_account set held_minor = held_minor + ? where id = ?', minor, billing_account_id)
}

/** The windows alone, without the balance. */
export function* addToWindows(caps: Caps, day: string, minute: number, minor: number): Steps<void> {
  yield* query(
    `insert into spend_day (level, subject_id, day, spent_minor) values ${tuples(caps.length, 4)}
    on conflict (subject_id, level, day) do update set
      spent_minor = case when spend_day.spent_minor + ? < 0 then 0 else spend_day.spent_minor + ? end`,
    ...caps.flatMap(([level, id]) => [level, id, day, Math.max(0, minor)]),
    minor,
    minor,
  )
  const counted = caps.filter(([level]) => VELOCITY_LEVELS.has(level))
  if (counted.length === 0) return
  yield* query(
    `insert into spend_minute (level, subject_id, minute, spent_minor) values ${tuples(counted.length, 4)}
    on conflict (subject_id, level, minute) do update set
      spent_minor = case when spend_minute.spent_minor + ? < 0 then 0 else spend_minute.spent_minor + ? end`,
    ...counted.flatMap(([level, id]) => [level, id, minute, Math.max(0, minor)]),
    minor,
    minor,
  )
}
