import { ask } from '../lib/api.ts'
import { useAction, useData } from '../lib/data.ts'
import type { Revised } from '../lib/revisions.ts'
import { may } from '../lib/session.ts'
import type { ListOf, PolicySummary } from '../lib/types.ts'
import { Card, ProblemBox } from '../ui/basics.tsx'
import { SelectField } from '../ui/form.tsx'
import { toast } from '../ui/toast.tsx'

interface PolicyChoiceProps<Service> {
  /** The service's own path, such as `/v1/trunks/{id}`. */
  readonly path: string
  readonly of: { readonly outbound_policy: { readonly id: string } | null }
  /** The service as a row that is written. */
  readonly on: Revised
  /** What the policy rules here. */
  readonly hint: string
  readonly onSaved: (service: Service) => void
}

/** Attaches an outbound policy to a service, puts another in its place, or detaches it. */
export function PolicyChoice<Service>({ path, of, on, hint, onSaved }: PolicyChoiceProps<Service>) {
  const policies = useData<ListOf<PolicySummary>>('/v1/outbound-policies')
  const action = useAction()
  const choose = (policy_id: string) =>
    action.run(async () => {
      const body = { policy_id: policy_id === '' ? null : policy_id }
      onSaved(await ask<Service>('PUT', `${path}/outbound-policy`, { body, on }))
      toast('Saved; applying')
    })
  return (
    <Card title="Outbound policy" hint={hint}>
      <SelectField
        label="Policy"
        value={of.outbound_policy?.id ?? ''}
        onInput={value => void choose(value)}
        disabled={action.busy || !may('service_configuration:write')}
        options={[
          { value: '', text: 'None of its own' },
          ...(policies.data?.data ?? []).map(({ id, name }) => ({ value: id, text: name })),
        ]}
      />
      <ProblemBox problem={action.problem} />
    </Card>
  )
}
