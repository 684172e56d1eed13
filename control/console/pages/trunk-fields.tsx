import { NumberField } from '../ui/form.tsx'

// Fields that the forms to create and to change a trunk share.

export interface Ceilings {
  readonly concurrency: number | null
  readonly cps: number | null
  readonly max_call_duration_seconds: number | null
}

interface CeilingFieldsProps {
  readonly of: Ceilings
  readonly set: (changes: Partial<Ceilings>) => void
  /** Returns the API's message about the field at a JSON pointer. */
  readonly wrongAt: (pointer: string) => string | null
  readonly required?: boolean
}

export const CeilingFields = ({ of, set, wrongAt, required }: CeilingFieldsProps) => (
  <div class="grid-2">
    <NumberField
      label="Calls at once"
      value={of.concurrency}
      onInput={concurrency => set({ concurrency })}
      wrong={wrongAt('/limits/concurrency')}
      required={required}
    />
    <NumberField
      label="Calls per second"
      value={of.cps}
      onInput={cps => set({ cps })}
      wrong={wrongAt('/limits/cps')}
      required={required}
    />
    <NumberField
      label="Longest call, seconds"
      value={of.max_call_duration_seconds}
      onInput={max_call_duration_seconds => set({ max_call_duration_seconds })}
      wrong={wrongAt('/limits/max_call_duration_seconds')}
      required={required}
    />
  </div>
)
