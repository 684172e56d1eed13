import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { Subaccount } from '../lib/api-types.ts'
import { type Action, useAction, useData } from '../lib/data.ts'
import { count, money, words } from '../lib/format.ts'
import { go, hrefOf, type PageProps } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Button, Card, Empty, Id, Loaded, Meter, Notice, PageHead, Stat, Stats, Status, Time } from '../ui/basics.tsx'
import { ConfirmByName, Dialog } from '../ui/dialog.tsx'
import { Form, MoneyField, NumberField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import { Board } from './board.tsx'
import { RefusedCalls } from './refused-calls.tsx'

/** The ceilings that a person sets. */
type Configuration = Pick<
  Subaccount,
  'daily_spend_cap_minor' | 'max_call_duration_seconds' | 'max_concurrent' | 'max_cps' | 'max_destination_rate_minor'
>

const NONE: Configuration = {
  daily_spend_cap_minor: null,
  max_call_duration_seconds: null,
  max_concurrent: null,
  max_cps: null,
  max_destination_rate_minor: null,
}

const bodyOf = (name: string, configuration: Configuration) => ({
  name: name.trim(),
  configuration: { currency: 'NGN', ...configuration },
})

interface FieldsProps {
  /** The form was asked for, and takes the focus. */
  readonly asked?: boolean
  readonly name: string
  readonly onName: (name: string) => void
  readonly value: Configuration
  readonly onInput: (value: Configuration) => void
  readonly action: Action
}

const Fields = ({ asked = false, name, onName, value, onInput, action }: FieldsProps) => {
  const at = (pointer: string) => ({ problem: action.problem, at: `/configuration/${pointer}` })
  return (
    <>
      <TextField
        label="Name"
        value={name}
        onInput={onName}
        problem={action.problem}
        at="/name"
        required
        autoFocus={asked}
      />
      <div class="grid-2">
        <NumberField
          label="Calls at once"
          placeholder="no ceiling"
          value={value.max_concurrent}
          onInput={max_concurrent => onInput({ ...value, max_concurrent })}
          {...at('max_concurrent')}
        />
        <NumberField
          label="Calls per second"
          placeholder="no ceiling"
          value={value.max_cps}
          onInput={max_cps => onInput({ ...value, max_cps })}
          {...at('max_cps')}
        />
        <NumberField
          label="Longest call, seconds"
          placeholder="no ceiling"
          value={value.max_call_duration_seconds}
          onInput={max_call_duration_seconds => onInput({ ...value, max_call_duration_seconds })}
          {...at('max_call_duration_seconds')}
        />
        <MoneyField
          label="Daily spend, ₦"
          value={value.daily_spend_cap_minor}
          onInput={daily_spend_cap_minor => onInput({ ...value, daily_spend_cap_minor })}
          {...at('daily_spend_cap_minor')}
        />
        <MoneyField
          label="Highest rate, ₦ a minute"
          value={value.max_destination_rate_minor}
          onInput={max_destination_rate_minor => onInput({ ...value, max_destination_rate_minor })}
          {...at('max_destination_rate_minor')}
        />
      </div>
    </>
  )
}

export function Subaccounts() {
  const of = useData<ListOf<Subaccount>>('/v1/subaccounts', { poll_ms: 10_000 })
  const [adding, setAdding] = useState(false)
  const create = may('subaccounts:write') && (
    <Button kind="main-one" icon="plus" onClick={() => setAdding(true)}>
      Create a subaccount
    </Button>
  )
  return (
    <>
      <PageHead
        title="Subaccounts"
        sub="Customers or departments of yours, each with ceilings, trunks and usage of its own."
        actions={create}
      />
      <Loaded of={of}>
        {({ data }) => (
          <Card flush>
            {data.length === 0 ? (
              <Empty
                title="No subaccount yet"
                action={create}
                api={`curl -X POST "$STROWGER_URL/v1/subaccounts" -H "Authorization: Bearer $STROWGER_API_KEY" \\\n  -H "Idempotency-Key: $(uuidgen)" -H "Content-Type: application/json" \\\n  -d '{"name": "Kano branch", "configuration": {"currency": "NGN", "max_concurrent": 10}}'`}
              />
            ) : (
              <Table
                label="Subaccounts"
                rows={data}
                keyOf={row => row.id}
                hrefOf={row => hrefOf(`/subaccounts/${row.id}`)}
                columns={[
                  { title: 'Name', cell: row => row.name },
                  { title: 'Status', cell: row => <Status of={row.status} /> },
                  {
                    title: 'Calls now',
                    cell: row =>
                      row.max_concurrent === null
                        ? count(row.live_calls)
                        : `${count(row.live_calls)} of ${count(row.max_concurrent)}`,
                    right: true,
                  },
                  {
                    title: 'Calls in 30 days',
                    cell: row => count(row.usage_30d.call_attempts),
                    right: true,
                    wide: true,
                  },
                  {
                    title: 'Spend in 30 days',
                    cell: row => money(row.usage_30d.settled_spend_minor),
                    right: true,
                    wide: true,
                  },
                ]}
              />
            )}
          </Card>
        )}
      </Loaded>
      {adding && <Create onClose={() => setAdding(false)} />}
    </>
  )
}

function Create({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [value, setValue] = useState(NONE)
  const action = useAction()
  const add = () =>
    action.run(async () => {
      const made = await ask<Subaccount>('POST', '/v1/subaccounts', { body: bodyOf(name, value), once: true })
      go(`/subaccounts/${made.id}`)
    })
  return (
    <Dialog title="Create a subaccount" onClose={onClose}>
      <Form
        onSubmit={() => void add()}
        submit="Create"
        busy={action.busy}
        problem={action.problem}
        fields={['/name', '/configuration']}
      >
        <Fields asked name={name} onName={setName} value={value} onInput={setValue} action={action} />
      </Form>
    </Dialog>
  )
}

export function SubaccountPage({ params }: PageProps) {
  const path = `/v1/subaccounts/${params['id']}`
  const of = useData<Subaccount>(path, { poll_ms: 5000 })
  const [asking, setAsking] = useState(false)
  const back = { href: hrefOf('/subaccounts'), text: 'Subaccounts' }
  return (
    <Loaded of={of} page={{ title: 'Subaccount', back }}>
      {subaccount => {
        const usage = subaccount.usage_30d
        const verb = subaccount.status === 'enabled' ? 'suspend' : 'resume'
        return (
          <>
            <PageHead
              title={subaccount.name}
              back={back}
              badges={<Status of={subaccount.status} />}
              sub={<Id value={subaccount.id} />}
              actions={
                may('subaccounts:write') && (
                  <Button kind={verb === 'suspend' ? 'danger' : undefined} onClick={() => setAsking(true)}>
                    {words(verb)}
                  </Button>
                )
              }
            />
            <Usage of={usage} />
            {may('call_diagnostics:read') && <Board of={{ subaccount_id: subaccount.id }} />}
            <div class="columns">
              <Card title="In use">
                <Meter name="Calls at once" used={subaccount.live_calls} limit={subaccount.max_concurrent} />
              </Card>
              <RefusedCalls refusals={usage.refusals} />
            </div>
            <BindingPolicies of={subaccount.policy_ceilings} />
            {may('subaccounts:write') && (
              <Edit key={subaccount.revision} subaccount={subaccount} path={path} onSaved={of.set} />
            )}
            {asking && (
              <ChangeStatus
                subaccount={subaccount}
                verb={verb}
                path={path}
                onClose={() => setAsking(false)}
                onChanged={of.set}
              />
            )}
          </>
        )
      }}
    </Loaded>
  )
}

const Usage = ({ of }: { of: Subaccount['usage_30d'] }) => (
  <Stats>
    <Stat name="Calls in 30 days" value={count(of.call_attempts)} hint={`${count(of.answered_calls)} answered`} />
    <Stat
      name="Spend in 30 days"
      value={money(of.settled_spend_minor)}
      hint={`${money(of.pending_spend_minor)} reserved`}
    />
    <Stat name="Most calls at once" value={count(of.peak_concurrent)} hint={<Time at={of.peak_concurrent_at} />} />
    <Stat
      name="Day of the highest spend"
      value={of.busiest_day ? money(of.busiest_day.settled_spend_minor) : '–'}
      hint={of.busiest_day?.date}
    />
  </Stats>
)

const BindingPolicies = ({ of }: { of: Subaccount['policy_ceilings'] }) => (
  <Card title="Policies that bind its trunks" flush>
    {of.length === 0 ? (
      <Empty title="None of its trunks has a policy" />
    ) : (
      <Table
        label="Policies that bind its trunks"
        rows={of}
        keyOf={row => row.trunk_id + row.policy_id}
        columns={[
          { title: 'Trunk', cell: row => <a href={hrefOf(`/trunks/${row.trunk_id}`)}>{row.trunk_name}</a> },
          {
            title: 'Policy',
            cell: row => <a href={hrefOf(`/policies/${row.policy_id}`)}>{row.policy_name}</a>,
          },
          {
            title: 'Revision',
            cell: row => `${row.runtime_revision} of ${row.policy_revision}`,
            right: true,
          },
        ]}
      />
    )}
  </Card>
)

interface ChangeStatusProps {
  readonly subaccount: Subaccount
  readonly verb: 'suspend' | 'resume'
  readonly path: string
  readonly onClose: () => void
  readonly onChanged: (value: Subaccount) => void
}

const ChangeStatus = ({ subaccount, verb, path, onClose, onChanged }: ChangeStatusProps) => (
  <ConfirmByName
    title={`${words(verb)} the subaccount`}
    name={subaccount.name}
    verb={words(verb)}
    onClose={onClose}
    onConfirm={async ({ confirm_name }) =>
      onChanged(
        await ask<Subaccount>('POST', `${path}/${verb}`, {
          body: { confirm_name },
          on: subaccount,
        }),
      )
    }
  >
    <Notice tone="warn">
      {verb === 'suspend'
        ? 'New calls of all its trunks are refused. Calls that run go on.'
        : 'Its trunks take calls again.'}
    </Notice>
  </ConfirmByName>
)

function Edit({
  subaccount,
  path,
  onSaved,
}: {
  subaccount: Subaccount
  path: string
  onSaved: (value: Subaccount) => void
}) {
  const [name, setName] = useState(subaccount.name)
  const [value, setValue] = useState<Configuration>({
    daily_spend_cap_minor: subaccount.daily_spend_cap_minor,
    max_call_duration_seconds: subaccount.max_call_duration_seconds,
    max_concurrent: subaccount.max_concurrent,
    max_cps: subaccount.max_cps,
    max_destination_rate_minor: subaccount.max_destination_rate_minor,
  })
  const action = useAction()
  const save = () =>
    action.run(async () => {
      onSaved(await ask<Subaccount>('PATCH', path, { body: bodyOf(name, value), on: subaccount }))
      toast('Saved; applying')
    })
  return (
    <Card title="Ceilings">
      <Form
        onSubmit={() => void save()}
        submit="Save and apply"
        busy={action.busy}
        problem={action.problem}
        fields={['/name', '/configuration']}
      >
        <Fields name={name} onName={setName} value={value} onInput={setValue} action={action} />
      </Form>
    </Card>
  )
}
