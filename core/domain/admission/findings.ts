import { codedAmount } from '../rating/amounts.ts'
import { type Reason, type ReasonFacts, reasonSentence } from '../reasons/index.ts'
import type { CheckResult, LevelFacts, LevelFinding } from './types.ts'

type Value = string | number | null

export const passed = (sentence: string, limit: Value, used: Value, levels?: readonly LevelFinding[]): CheckResult =>
  levels ? { result: 'passed', limit, used, sentence, levels } : { result: 'passed', limit, used, sentence }

export const skipped = (sentence: string): CheckResult => ({ result: 'skipped', limit: null, used: null, sentence })

/** `facts.value` is the actual value and `facts.limit` the expected one. The trace stores both. */
export const refused = (reason: Reason, facts: ReasonFacts, levels?: readonly LevelFinding[]): CheckResult => ({
  result: 'refused',
  reason,
  limit: facts['limit'] ?? null,
  used: facts['value'] ?? null,
  sentence: reasonSentence(reason, facts),
  facts,
  ...(levels ? { levels } : {}),
})

/** Returns the name of a level for a sentence, such as `trunk "Lagos office"`. */
export const levelName = ({ level, name }: Pick<LevelFacts, 'level' | 'name'>): string => `${level} "${name}"`

interface Compared {
  readonly limit: number | null
  readonly used: number
}

interface LevelCheck {
  readonly reason: Reason
  /** The noun of a passing finding, such as `calls in progress`; of amounts, such as `the spend of today`. */
  readonly noun: string
  /** The ceiling is an amount in minor units. */
  readonly of_money?: boolean
  readonly compare: (level: LevelFacts) => Compared
  /** The amount that this call adds: one call, or its reservation in minor units. */
  readonly adds: number
  /** Whether a refusal shows what is used now, or what would be used with this call. */
  readonly shows: 'used' | 'with_this_call'
}

/**
 * Refuses at the first level whose ceiling this call would exceed. Null means no ceiling; 0 admits nothing, not even
 * free calls. A passing finding names the tightest level.
 */
export function withinLevels(
  levels: readonly LevelFacts[],
  { reason, noun, of_money = false, compare, adds, shows }: LevelCheck,
): CheckResult {
  const findings: LevelFinding[] = []
  let tightest: { level: LevelFacts; compared: Compared; left: number } | null = null
  for (const level of levels) {
    const compared = compare(level)
    findings.push({ level: level.level, id: level.id, limit: compared.limit, used: compared.used })
    if (compared.limit === null) continue
    const left = compared.limit - compared.used - adds
    if (compared.limit <= 0 || left < 0)
      return refused(
        reason,
        { value: compared.used + (shows === 'used' ? 0 : adds), limit: compared.limit, name: levelName(level) },
        findings,
      )
    if (!tightest || left < tightest.left) tightest = { level, compared, left }
  }
  if (!tightest) return passed(`no ceiling on ${noun}`, null, levels[0] ? compare(levels[0]).used : 0, findings)
  const { level, compared } = tightest
  const { limit, used } = compared
  const sentence = of_money
    ? `${noun} is ${codedAmount(used)}, at most ${codedAmount(limit ?? 0)} for ${levelName(level)}`
    : `${used} of ${limit} ${noun} of ${levelName(level)}`
  return passed(sentence, limit, used, findings)
}
