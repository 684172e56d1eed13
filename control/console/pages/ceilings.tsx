import type { Problem } from '../lib/problem.ts'
import { MoneyField, NumberField } from '../ui/form.tsx'

export interface Ceilings {
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_cap_minor: number | null
  readonly velocity_cap_minor: number | null
  readonly max_call_duration_seconds: number | null
  readonly max_destination_rate_minor: number | null
}

export const NO_CEILINGS: Ceilings = {
  concurrency: null,
  cps: null,
  daily_spend_cap_minor: null,
  velocity_cap_minor: null,
  max_call_duration_seconds: null,
  max_destination_rate_minor: null,
}

const NUMBERS = [
  ['concurrency', 'Calls at once'],
  ['cps', 'Calls per second'],
  ['max_call_duration_seconds', 'Longest call, seconds'],
] as const
const AMOUNTS = [
  ['daily_spend_cap_minor', 'Daily spend, ₦'],
  ['velocity_cap_minor', 'Spend in an hour, ₦'],
  ['max_destination_rate_minor', 'Highest rate, ₦ a minute'],
] as const

/** Fields for the ceilings of a subtrunk. An empty field means no ceiling. */
export const CeilingFields = ({
  value,
  onInput,
  problem,
  below,
}: {
  value: Ceilings
  onInput: (value: Ceilings) => void
  problem: Problem | null
  below: string
}) => (
  <>
    <div class="grid-2">
      {NUMBERS.map(([name, label]) => (
        <NumberField
          key={name}
          label={label}
          placeholder="no ceiling"
          value={value[name]}
          onInput={given => onInput({ ...value, [name]: given })}
          problem={problem}
          at={`${below}/${name}`}
        />
      ))}
      {AMOUNTS.map(([name, label]) => (
        <MoneyField
          key={name}
          label={label}
          value={value[name]}
          onInput={given => onInput({ ...value, [name]: given })}
          problem={problem}
          at={`${below}/${name}`}
        />
      ))}
    </div>
    <p class="muted small">Empty is no ceiling of its own; 0 admits nothing. What stands above it holds as well.</p>
  </>
)
