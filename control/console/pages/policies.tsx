import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import { type Action, useAction, useData } from '../lib/data.ts'
import { count, money } from '../lib/format.ts'
import { readHours } from '../lib/hours-text.ts'
import { go, hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { ListOf, Policy, PolicySummary } from '../lib/types.ts'
import { Badge, Button, Card, Empty, Loaded, PageHead } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { AreaField, Form, MoneyField, NumberField, SelectField, TextField } from '../ui/form.tsx'
import { type Column, Table } from '../ui/table.tsx'

export interface PolicyForm {
  readonly name: string
  /** A window a line; empty: always. */
  readonly calling_hours: string
  readonly recording_mode: 'off' | 'all'
  readonly recording_retention_days: number
  readonly concurrency: number | null
  readonly cps: number | null
  readonly daily_spend_limit_minor: number | null
  readonly max_call_duration_seconds: number | null
  readonly max_destination_rate_minor: number | null
}

export const policyBody = (form: PolicyForm) => ({
  ...form,
  name: form.name.trim(),
  calling_hours: readHours(form.calling_hours),
  recording_channels: 2,
})
export const POLICY_FIELDS = [
  '/name',
  '/calling_hours',
  '/concurrency',
  '/cps',
  '/daily_spend_limit_minor',
  '/max_call_duration_seconds',
  '/max_destination_rate_minor',
  '/recording_mode',
  '/recording_retention_days',
]

const EMPTY: PolicyForm = {
  name: '',
  calling_hours: '',
  recording_mode: 'off',
  recording_retention_days: 30,
  concurrency: null,
  cps: null,
  daily_spend_limit_minor: null,
  max_call_duration_seconds: null,
  max_destination_rate_minor: null,
}

interface FieldsProps {
  /** The form was asked for, and takes the focus. */
  readonly asked?: boolean
  readonly form: PolicyForm
  readonly set: (changes: Partial<PolicyForm>) => void
  readonly action: Action
}

const placesIn = (action: Action) => (pointer: string) => ({ problem: action.problem, at: pointer })

export const PolicyFields = (props: FieldsProps) => (
  <>
    <TextField
      label="Name"
      value={props.form.name}
      onInput={name => props.set({ name })}
      required
      autoFocus={props.asked ?? false}
      {...placesIn(props.action)('/name')}
    />
    <div class="grid-2">
      <CeilingFields {...props} />
      <RecordingFields {...props} />
    </div>
  </>
)

function CeilingFields({ form, set, action }: FieldsProps) {
  const at = placesIn(action)
  return (
    <>
      <NumberField
        label="Calls at once"
        placeholder="no ceiling"
        value={form.concurrency}
        onInput={concurrency => set({ concurrency })}
        {...at('/concurrency')}
      />
      <NumberField
        label="Calls per second"
        placeholder="no ceiling"
        value={form.cps}
        onInput={cps => set({ cps })}
        {...at('/cps')}
      />
      <NumberField
        label="Longest call, seconds"
        placeholder="no ceiling"
        value={form.max_call_duration_seconds}
        onInput={max_call_duration_seconds => set({ max_call_duration_seconds })}
        {...at('/max_call_duration_seconds')}
      />
      <MoneyField
        label="Daily spend, ₦"
        value={form.daily_spend_limit_minor}
        onInput={daily_spend_limit_minor => set({ daily_spend_limit_minor })}
        {...at('/daily_spend_limit_minor')}
      />
      <MoneyField
        label="Highest rate, ₦ a minute"
        value={form.max_destination_rate_minor}
        onInput={max_destination_rate_minor => set({ max_destination_rate_minor })}
        {...at('/max_destination_rate_minor')}
      />
    </>
  )
}

/** When calls may begin, and what is kept of them. */
function RecordingFields({ form, set, action }: FieldsProps) {
  const at = placesIn(action)
  return (
    <>
      <AreaField
        label="Calling hours"
        hint="Days and times in which calls may begin, a window a line, such as: monday-friday 08:00-18:30. Empty: always."
        rows={2}
        value={form.calling_hours}
        onInput={calling_hours => set({ calling_hours })}
        {...at('/calling_hours')}
      />
      <SelectField
        label="Recording"
        value={form.recording_mode}
        onInput={value => set({ recording_mode: value as PolicyForm['recording_mode'] })}
        options={[
          { value: 'off', text: 'Off' },
          { value: 'all', text: 'All calls, two channels' },
        ]}
        {...at('/recording_mode')}
      />
      <SelectField
        label="Recordings are kept"
        value={String(form.recording_retention_days)}
        onInput={value => set({ recording_retention_days: Number(value) as PolicyForm['recording_retention_days'] })}
        options={['30', '90', '365'].map(value => ({ value, text: `${value} days` }))}
        {...at('/recording_retention_days')}
      />
    </>
  )
}

const ceiling = (value: number | null) => (value === null ? 'none' : count(value))

const POLICY_COLUMNS: readonly Column<PolicySummary>[] = [
  { title: 'Name', cell: row => row.name },
  {
    title: 'State',
    cell: row =>
      row.applied_services === row.attached_services ? (
        <Badge tone={row.attached_services === 0 ? 'idle' : 'good'}>
          {row.attached_services === 0 ? 'Not attached' : `Applied to ${row.applied_services}`}
        </Badge>
      ) : (
        <Badge tone="warn" busy>
          Applied to {row.applied_services} of {row.attached_services}
        </Badge>
      ),
  },
  {
    title: 'Calls at once',
    cell: row => ceiling(row.ceilings.concurrency.configured),
    right: true,
    wide: true,
  },
  {
    title: 'Spend today',
    cell: row =>
      `${money(row.ceilings.daily_spend.used_today_minor)}${row.ceilings.daily_spend.configured_minor === null ? '' : ` of ${money(row.ceilings.daily_spend.configured_minor)}`}`,
    right: true,
  },
  {
    title: 'Denied',
    cell: row => count(row.destination_summary.denied_prefixes),
    right: true,
    wide: true,
  },
  { title: 'Recording', cell: row => (row.recording.mode === 'all' ? 'All calls' : 'Off'), wide: true },
]

export function Policies() {
  const policies = useData<ListOf<PolicySummary>>('/v1/outbound-policies', { poll_ms: 10_000 })
  const [adding, setAdding] = useState<PolicyForm | null>(null)
  const action = useAction()
  const add = () =>
    action.run(async () => {
      if (!adding) return
      const made = await ask<Policy>('POST', '/v1/outbound-policies', { body: policyBody(adding), once: true })
      go(`/policies/${made.id}`)
    })
  const create = may('service_configuration:write') && (
    <Button kind="main-one" icon="plus" onClick={() => setAdding(EMPTY)}>
      Create a policy
    </Button>
  )
  return (
    <>
      <PageHead
        title="Outbound policies"
        sub="Ceilings, destinations and recording that trunks and applications share."
        actions={create}
      />
      <Loaded of={policies}>
        {({ data }) => (
          <Card flush>
            {data.length === 0 ? (
              <Empty
                title="No policy yet"
                action={create}
                api={`curl -X POST "$STROWGER_URL/v1/outbound-policies" -H "Authorization: Bearer $STROWGER_API_KEY" \\\n  -H "Idempotency-Key: $(uuidgen)" -H "Content-Type: application/json" \\\n  -d '{"name": "Standard", "recording_channels": 2, "recording_mode": "off", "recording_retention_days": 30}'`}
              >
                Without one, only the trunk's own ceilings hold.
              </Empty>
            ) : (
              <Table
                label="Outbound policies"
                rows={data}
                keyOf={row => row.id}
                hrefOf={row => hrefOf(`/policies/${row.id}`)}
                columns={POLICY_COLUMNS}
              />
            )}
          </Card>
        )}
      </Loaded>
      {adding && (
        <Dialog title="Create a policy" onClose={() => setAdding(null)}>
          <Form
            onSubmit={() => void add()}
            submit="Create"
            busy={action.busy}
            problem={action.problem}
            fields={POLICY_FIELDS}
          >
            <PolicyFields asked form={adding} set={changes => setAdding({ ...adding, ...changes })} action={action} />
          </Form>
        </Dialog>
      )}
    </>
  )
}
