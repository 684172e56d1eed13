import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { DestinationCountry } from '../lib/api-types.ts'
import { type Action, useAction, useData } from '../lib/data.ts'
import { money, words } from '../lib/format.ts'
import type { Problem } from '../lib/problem.ts'
import { may } from '../lib/session.ts'
import type { ListOf, Policy } from '../lib/types.ts'
import { Button, Card, Empty } from '../ui/basics.tsx'
import { Form, SelectField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'

interface PolicyProps {
  readonly policy: Policy
  readonly path: string
  readonly onSaved: (value: Policy) => void
}

interface RuleChange {
  readonly kind: string
  readonly op: string
  readonly value: string
}

export function PolicyRules({ policy, path, onSaved }: PolicyProps) {
  const action = useAction()
  const change = (rule: RuleChange) =>
    action.run(async () => {
      const body = { rules: [rule] }
      onSaved(await ask<Policy>('PATCH', `${path}/destination-rules`, { body, on: policy }))
    })
  const write = may('service_configuration:write')
  return (
    <Card
      title="Destinations"
      hint="The longest matching rule wins; a deny wins a tie. One allow rule turns the policy into an allow list."
      flush
    >
      <RuleTable
        of={policy.destinations}
        remove={write ? (kind, value) => void change({ kind, op: 'remove', value }) : null}
      />
      {write && (
        <div class="body">
          <NewRule action={action} add={change} />
        </div>
      )}
    </Card>
  )
}

interface RuleTableProps {
  readonly of: Policy['destinations']
  /** Null when the member may not change the policy. */
  readonly remove: ((kind: string, match: string) => void) | null
}

const RuleTable = ({ of: { allowed, denied }, remove }: RuleTableProps) =>
  allowed.length + denied.length === 0 ? (
    <Empty title="Every destination with a rate is allowed" />
  ) : (
    <Table
      label="Destination rules"
      rows={[
        ...denied.map(rule => ({
          ...rule,
          kind: /^[A-Z]{2}$/.test(rule.match) ? 'country' : 'prefix',
          op: 'Denied',
          rate_minor: null,
        })),
        ...allowed.map(rule => ({ ...rule, op: 'Allowed', source: 'customer' })),
      ]}
      keyOf={rule => rule.op + rule.match}
      columns={[
        {
          title: 'Rule',
          cell: rule => <span class={`badge ${rule.op === 'Denied' ? 'bad' : 'good'}`}>{rule.op}</span>,
        },
        { title: 'Destination', cell: rule => `${rule.label} ${rule.match}` },
        { title: 'By', cell: rule => words(rule.source), wide: true },
        {
          title: 'Rate',
          cell: rule => (rule.rate_minor === null ? '–' : money(rule.rate_minor)),
          right: true,
          wide: true,
        },
        {
          title: '',
          right: true,
          cell: rule =>
            remove &&
            rule.source === 'customer' && (
              <Button
                small
                kind="quiet"
                label={`Remove the rule for ${rule.match}`}
                onClick={() => remove(rule.kind, rule.match)}
              >
                Remove
              </Button>
            ),
        },
      ]}
    />
  )

interface NewRuleProps {
  readonly action: Action
  /** Resolves with whether the rule was added. */
  readonly add: (rule: RuleChange) => Promise<boolean>
}

function NewRule({ action, add }: NewRuleProps) {
  const [op, setOp] = useState('deny')
  const [kind, setKind] = useState('country')
  const [value, setValue] = useState('')
  const submit = async () => {
    if (await add({ kind, op, value })) setValue('')
  }
  return (
    <Form
      onSubmit={() => void submit()}
      submit="Add the rule"
      busy={action.busy}
      problem={action.problem}
      disabled={value === ''}
      fields={['/rules']}
    >
      <div class="grid-2">
        <SelectField
          label="Rule"
          value={op}
          onInput={setOp}
          options={[
            { value: 'deny', text: 'Deny' },
            { value: 'allow', text: 'Allow' },
          ]}
        />
        <SelectField
          label="Kind"
          value={kind}
          onInput={given => {
            setKind(given)
            setValue('')
          }}
          options={[
            { value: 'country', text: 'Country' },
            { value: 'prefix', text: 'Prefix' },
          ]}
        />
        {kind === 'country' ? (
          <CountryField value={value} onInput={setValue} problem={action.problem} />
        ) : (
          <TextField
            label="Prefix"
            value={value}
            placeholder="+234803"
            onInput={given => setValue(given.trim())}
            problem={action.problem}
            at="/rules"
          />
        )}
      </div>
    </Form>
  )
}

interface CountryFieldProps {
  readonly value: string
  readonly onInput: (iso_code: string) => void
  readonly problem: Problem | null
}

function CountryField({ value, onInput, problem }: CountryFieldProps) {
  const countries = useData<ListOf<DestinationCountry>>('/v1/destination-countries')
  return (
    <SelectField
      label="Country"
      value={value}
      onInput={onInput}
      options={[
        { value: '', text: 'Choose' },
        ...(countries.data?.data ?? [])
          .filter(country => !country.shared_code)
          .map(country => ({ value: country.iso_code, text: `${country.name} ${country.calling_code}` })),
      ]}
      problem={problem}
      at="/rules"
    />
  )
}
