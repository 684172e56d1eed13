import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type { OperatorProject, OperatorProjectCeilings } from '../../lib/api-types.ts'
import { useAction } from '../../lib/data.ts'
import { Card } from '../../ui/basics.tsx'
import { Form, MoneyField, NumberField } from '../../ui/form.tsx'
import { toast } from '../../ui/toast.tsx'

type Name = keyof OperatorProjectCeilings

const COUNTS: readonly (readonly [Name, string])[] = [
  ['concurrency', 'Calls at once'],
  ['cps', 'Calls per second'],
  ['max_call_duration_seconds', 'Longest call, seconds'],
]
const AMOUNTS: readonly (readonly [Name, string])[] = [
  ['daily_spend_cap_minor', 'Daily spend, ₦'],
  ['velocity_cap_minor', 'Spend in one hour, ₦'],
  ['max_destination_rate_minor', 'Highest rate, ₦ a minute'],
]

interface Props {
  readonly project: OperatorProject
  readonly path: string
  readonly set: (project: OperatorProject) => void
}

/** The ceilings that an operator sets for a whole project. */
export function ProjectCeilings({ project, path, set }: Props) {
  const [value, setValue] = useState<OperatorProjectCeilings>(project.ceilings)
  const action = useAction()
  const save = () =>
    action.run(async () => {
      set(await ask<OperatorProject>('PUT', `${path}/ceilings`, { body: value, on: project }))
      toast('Saved; applying')
    })
  const fieldOf = (name: Name, label: string) => ({
    label,
    value: value[name],
    onInput: (next: number | null) => setValue({ ...value, [name]: next }),
    problem: action.problem,
    at: `/${name}`,
    placeholder: 'no ceiling',
  })
  return (
    <Card
      title="Ceilings"
      hint="They hold for the whole project. Ceilings of its trunks and policies count beside them; the lowest decides."
    >
      <Form
        onSubmit={() => void save()}
        submit="Save and apply"
        busy={action.busy}
        problem={action.problem}
        fields={[...COUNTS, ...AMOUNTS].map(([name]) => `/${name}`)}
      >
        <div class="grid-2">
          {COUNTS.map(([name, label]) => (
            <NumberField key={name} {...fieldOf(name, label)} />
          ))}
          {AMOUNTS.map(([name, label]) => (
            <MoneyField key={name} {...fieldOf(name, label)} />
          ))}
        </div>
      </Form>
    </Card>
  )
}
