import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { AlertPolicy } from '../lib/api-types.ts'
import { useAction, useData, withRow } from '../lib/data.ts'
import { words } from '../lib/format.ts'
import type { Problem } from '../lib/problem.ts'
import { may } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Button, Card, Loaded, Status } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { CheckField, Chips, Form, MoneyField, NumberField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'

const CHANNELS = (['email', 'webhook', 'in_app', 'sms'] as const).map(value => ({ value, text: words(value) }))

export function AlertPolicies() {
  const of = useData<ListOf<AlertPolicy>>('/v1/alerts/policies')
  const [edited, setEdited] = useState<AlertPolicy | null>(null)
  return (
    <Loaded of={of}>
      {({ data }) => (
        <Card title="Alert policies" flush>
          <PolicyTable rows={data} onEdit={setEdited} />
          {edited && (
            <Edit
              policy={edited}
              onClose={() => setEdited(null)}
              onSaved={saved => {
                of.change(withRow(saved))
                setEdited(null)
                toast('Saved as the next revision')
              }}
            />
          )}
        </Card>
      )}
    </Loaded>
  )
}

const PolicyTable = ({ rows, onEdit }: { rows: readonly AlertPolicy[]; onEdit: (row: AlertPolicy) => void }) => (
  <Table
    label="Alert policies"
    rows={rows}
    keyOf={row => row.id}
    columns={[
      { title: 'Kind', cell: row => words(row.kind) },
      { title: 'State', cell: row => <Status of={row.enabled ? 'enabled' : 'disabled'} /> },
      { title: 'Sent by', cell: row => row.channels.map(words).join(', ') || 'nobody' },
      { title: 'Ends', cell: row => words(row.resolution.rule), wide: true },
      { title: 'Revision', cell: row => row.revision, right: true, wide: true },
      {
        title: '',
        right: true,
        cell: row =>
          may('service_configuration:write') && (
            <Button small kind="quiet" label={`Change ${words(row.kind)}`} onClick={() => onEdit(row)}>
              Change
            </Button>
          ),
      },
    ]}
  />
)

interface EditProps {
  readonly policy: AlertPolicy
  readonly onClose: () => void
  readonly onSaved: (policy: AlertPolicy) => void
}

function Edit({ policy, onClose, onSaved }: EditProps) {
  const [channels, setChannels] = useState(policy.channels)
  const [enabled, setEnabled] = useState(policy.enabled)
  const [threshold, setThreshold] = useState(policy.threshold)
  const action = useAction()
  const save = () =>
    action.run(async () => {
      const body = { channels, enabled, threshold }
      onSaved(await ask<AlertPolicy>('PATCH', `/v1/alerts/policies/${policy.id}`, { body, on: policy }))
    })
  return (
    <Dialog title={words(policy.kind)} onClose={onClose}>
      <Form
        onSubmit={() => void save()}
        submit="Save"
        busy={action.busy}
        problem={action.problem}
        fields={['/threshold', '/channels']}
      >
        <CheckField label="Enabled" checked={enabled} onInput={setEnabled} />
        <Chips legend="Sent by" values={channels} onInput={setChannels} options={CHANNELS} />
        <Threshold
          of={threshold}
          set={changes => setThreshold({ ...threshold, ...changes })}
          problem={action.problem}
        />
      </Form>
    </Dialog>
  )
}

interface ThresholdProps {
  readonly of: AlertPolicy['threshold']
  readonly set: (changes: Partial<AlertPolicy['threshold']>) => void
  readonly problem: Problem | null
}

/** What a policy of this kind measures: the others are null. */
const Threshold = ({ of, set, problem }: ThresholdProps) => (
  <div class="grid-2">
    {of.amount_minor !== null && (
      <MoneyField
        label="Amount, ₦"
        value={of.amount_minor}
        onInput={amount_minor => set({ amount_minor })}
        problem={problem}
        at="/threshold/amount_minor"
      />
    )}
    {of.percent !== null && (
      <TextField
        label="Percent"
        value={of.percent}
        onInput={percent => set({ percent })}
        problem={problem}
        at="/threshold/percent"
      />
    )}
    {of.min_events !== null && (
      <NumberField
        label="Events"
        value={of.min_events}
        onInput={min_events => set({ min_events })}
        problem={problem}
        at="/threshold/min_events"
      />
    )}
    {of.window_seconds !== null && (
      <NumberField
        label="Within seconds"
        value={of.window_seconds}
        onInput={window_seconds => set({ window_seconds })}
        problem={problem}
        at="/threshold/window_seconds"
      />
    )}
  </div>
)
