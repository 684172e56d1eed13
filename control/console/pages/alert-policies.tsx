import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { AlertPolicy } from '../lib/api-types.ts'
import { useAction, useData, withRow } from '../lib/data.ts'
import { words } from '../lib/format.ts'
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
  const action = useAction()
  const save = async () => {
    if (!edited) return
    const { channels, enabled, threshold } = edited
    const done = await action.run(async () =>
      of.change(
        withRow(
          await ask<AlertPolicy>('PATCH', `/v1/alerts/policies/${edited.id}`, {
            body: { channels, enabled, threshold },
            on: edited,
          }),
        ),
      ),
    )
    if (!done) return
    setEdited(null)
    toast('Saved as the next revision')
  }
  const set = (changes: Partial<AlertPolicy['threshold']>) =>
    edited && setEdited({ ...edited, threshold: { ...edited.threshold, ...changes } })
  return (
    <Loaded of={of}>
      {({ data }) => (
        <Card title="Alert policies" flush>
          <Table
            label="Alert policies"
            rows={data}
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
                    <Button small kind="quiet" label={`Change ${words(row.kind)}`} onClick={() => setEdited(row)}>
                      Change
                    </Button>
                  ),
              },
            ]}
          />
          {edited && (
            <Dialog title={words(edited.kind)} onClose={() => setEdited(null)}>
              <Form
                onSubmit={() => void save()}
                submit="Save"
                busy={action.busy}
                problem={action.problem}
                fields={['/threshold', '/channels']}
              >
                <CheckField
                  label="Enabled"
                  checked={edited.enabled}
                  onInput={enabled => setEdited({ ...edited, enabled })}
                />
                <Chips
                  legend="Sent by"
                  values={edited.channels}
                  onInput={channels => setEdited({ ...edited, channels })}
                  options={CHANNELS}
                />
                <div class="grid-2">
                  {edited.threshold.amount_minor !== null && (
                    <MoneyField
                      label="Amount, ₦"
                      value={edited.threshold.amount_minor}
                      onInput={amount_minor => set({ amount_minor })}
                      problem={action.problem}
                      at="/threshold/amount_minor"
                    />
                  )}
                  {edited.threshold.percent !== null && (
                    <TextField
                      label="Percent"
                      value={edited.threshold.percent}
                      onInput={percent => set({ percent })}
                      problem={action.problem}
                      at="/threshold/percent"
                    />
                  )}
                  {edited.threshold.min_events !== null && (
                    <NumberField
                      label="Events"
                      value={edited.threshold.min_events}
                      onInput={min_events => set({ min_events })}
                      problem={action.problem}
                      at="/threshold/min_events"
                    />
                  )}
                  {edited.threshold.window_seconds !== null && (
                    <NumberField
                      label="Within seconds"
                      value={edited.threshold.window_seconds}
                      onInput={window_seconds => set({ window_seconds })}
                      problem={action.problem}
                      at="/threshold/window_seconds"
                    />
                  )}
                </div>
              </Form>
            </Dialog>
          )}
        </Card>
      )}
    </Loaded>
  )
}
