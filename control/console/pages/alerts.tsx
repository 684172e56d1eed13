import { useEffect, useState } from 'preact/hooks'
import type { PageProps } from '../app.tsx'
import { ask } from '../lib/api.ts'
import { useAction, useData } from '../lib/data.ts'
import { count, money, words } from '../lib/format.ts'
import { onLive } from '../lib/live.ts'
import { hrefOf, query, setQuery } from '../lib/router.ts'
import { may, session } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Button, Card, Empty, Facts, Loaded, PageHead, ProblemBox, Status, Tabs, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { AreaField, CheckField, Chips, Form, MoneyField, NumberField, SelectField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'

export interface Alert {
  readonly id: string
  readonly kind: string
  readonly severity: string
  readonly state: string
  readonly source_state: string
  readonly reason: string
  readonly remediation: string
  readonly subject: { readonly id: string; readonly name: string; readonly type: string }
  readonly evidence: readonly {
    readonly label: string
    readonly text: string | null
    readonly amount_minor: number | null
    readonly currency: string | null
    readonly note: string | null
  }[]
  readonly suggested_actions: readonly { readonly href: string; readonly label: string }[]
  readonly trunk_id: string | null
  readonly fired_at: string
  readonly acknowledged_at: string | null
  readonly acknowledged_by: string | null
  readonly resolved_at: string | null
}

interface Containment {
  readonly id: string
  readonly prefix: string
  readonly trunk_name: string | null
  readonly case_ref: string
  readonly reason_category: string
  readonly reason_detail: string
  readonly rejection_count: number
  readonly starts_at: string
  readonly expires_at: string
  readonly released_at: string | null
  readonly released_by: string | null
  readonly release_request: {
    readonly id: string
    readonly state: string
    readonly note: string
    readonly requested_by: string
  } | null
}

interface AlertPolicy {
  readonly id: string
  readonly kind: string
  readonly enabled: boolean
  readonly channels: readonly string[]
  readonly scope: { readonly label: string; readonly type: string }
  readonly threshold: Readonly<Record<'amount_minor' | 'min_events' | 'window_seconds', number | null>> & {
    readonly percent: string | null
  }
  readonly resolution: { readonly rule: string }
  readonly revision: number
}

const RANGES = [
  { value: '24h', text: 'Last 24 hours' },
  { value: '7d', text: 'Last 7 days' },
  { value: '30d', text: 'Last 30 days' },
  { value: '90d', text: 'Last 90 days' },
]

export function Alerts({ params }: PageProps) {
  const tab = params['tab'] ?? ''
  return (
    <>
      <PageHead title="Alerts" sub="What needs a look, with the evidence and what to do." />
      <Tabs
        items={[
          { id: '', text: 'Alerts', href: hrefOf('/alerts') },
          { id: 'containments', text: 'Containments', href: hrefOf('/alerts/containments') },
          { id: 'policies', text: 'Alert policies', href: hrefOf('/alerts/policies') },
        ]}
        current={tab}
      />
      {tab === '' && <AlertList />}
      {tab === 'containments' && <Containments />}
      {tab === 'policies' && <Policies />}
    </>
  )
}

/** Links of suggested actions lead to pages of the console where there is one. */
const actionHref = (href: string): string =>
  href.startsWith('/console') ? href : href.startsWith('/v1/trunks/') ? hrefOf(href.slice(3)) : href

function AlertList() {
  const range = query.value.get('range') ?? '7d'
  const of = useData<{ alerts: readonly Alert[] }>(`/v1/alerts?range=${range}`, { poll_ms: 10_000 })
  const { reload } = of
  const action = useAction()
  useEffect(() => onLive(event => event.type === 'alert' && reload()), [reload])
  const acknowledge = (id: string) =>
    action.run(async () => {
      await ask('POST', `/v1/alerts/${id}/acknowledge`)
      reload()
    })
  return (
    <>
      <div class="filters">
        <SelectField label="Range" value={range} onInput={value => setQuery({ range: value })} options={RANGES} />
      </div>
      <ProblemBox problem={action.problem} />
      <Loaded of={of}>
        {({ alerts }) =>
          alerts.length === 0 ? (
            <Card flush>
              <Empty
                title="Nothing to look at"
                api={'curl "$STROWGER_URL/v1/alerts?range=7d" -H "Authorization: Bearer $STROWGER_API_KEY"'}
              >
                No alert has fired in this range.
              </Empty>
            </Card>
          ) : (
            alerts.map(alert => (
              <Card
                key={alert.id}
                title={
                  <>
                    {words(alert.kind)}: {alert.subject.name}
                  </>
                }
                actions={
                  <>
                    <Status of={alert.severity} />
                    <Status of={alert.state} />
                    {alert.state === 'firing' && may('service_configuration:write') && (
                      <Button small onClick={() => void acknowledge(alert.id)}>
                        Acknowledge
                      </Button>
                    )}
                  </>
                }
              >
                <p>{alert.reason}</p>
                <Facts
                  rows={[
                    ...alert.evidence.map(
                      item =>
                        [
                          item.label,
                          item.text ?? (item.amount_minor === null ? (item.note ?? '–') : money(item.amount_minor)),
                        ] as const,
                    ),
                    ['What to do', alert.remediation] as const,
                    ['Fired', <Time key="f" at={alert.fired_at} />] as const,
                    alert.acknowledged_at ? (['Acknowledged', `by ${alert.acknowledged_by}`] as const) : null,
                    alert.resolved_at ? (['Resolved', <Time key="r" at={alert.resolved_at} />] as const) : null,
                  ]}
                />
                <div class="row">
                  {alert.suggested_actions.map(suggested => (
                    <a class="button small" key={suggested.href} href={actionHref(suggested.href)}>
                      {suggested.label}
                    </a>
                  ))}
                </div>
              </Card>
            ))
          )
        }
      </Loaded>
    </>
  )
}

function Containments() {
  const of = useData<ListOf<Containment>>('/v1/containments', { poll_ms: 8000 })
  const [asked, setAsked] = useState<Containment | null>(null)
  const [note, setNote] = useState('')
  const [making, setMaking] = useState(false)
  const action = useAction()
  const operator = session.value?.member.operator ?? false
  const request = async () => {
    if (!asked) return
    const done = await action.run(() =>
      ask('POST', `/v1/containments/${asked.id}/release-requests`, { body: { note } }),
    )
    if (!done) return
    setAsked(null)
    of.reload()
    toast('The operator has been asked')
  }
  const decide = (containment: Containment, decision: 'approved' | 'rejected') =>
    action.run(async () => {
      await ask(
        'POST',
        `/containments/${containment.id}/release-requests/${containment.release_request?.id}/decision`,
        {
          body: { decision, reason: decision === 'approved' ? 'Released in the console' : 'Refused in the console' },
        },
      )
      of.reload()
    })
  return (
    <Card
      title="Containments"
      hint="Destinations that calls are kept from for a while, because they looked like fraud."
      flush
      actions={
        operator && (
          <Button small icon="plus" onClick={() => setMaking(true)}>
            Contain a prefix
          </Button>
        )
      }
    >
      <Loaded of={of}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="Nothing is contained" />
          ) : (
            <Table
              label="Containments"
              rows={data}
              keyOf={row => row.id}
              columns={[
                { title: 'Prefix', cell: row => <span class="mono">{row.prefix}</span> },
                { title: 'Trunk', cell: row => row.trunk_name ?? 'all trunks', wide: true },
                { title: 'Why', cell: row => `${words(row.reason_category)}: ${row.reason_detail}` },
                { title: 'Refused calls', cell: row => count(row.rejection_count), right: true },
                {
                  title: 'Ends',
                  cell: row =>
                    row.released_at ? (
                      <>
                        released <Time at={row.released_at} />
                      </>
                    ) : (
                      <Time at={row.expires_at} />
                    ),
                  wide: true,
                },
                {
                  title: '',
                  right: true,
                  cell: row => {
                    if (row.released_at !== null) return <span class="muted">{row.case_ref}</span>
                    if (row.release_request?.state === 'pending')
                      return operator ? (
                        <span class="row">
                          <Button small onClick={() => void decide(row, 'approved')}>
                            Release
                          </Button>
                          <Button small kind="quiet" onClick={() => void decide(row, 'rejected')}>
                            Refuse
                          </Button>
                        </span>
                      ) : (
                        <Status of="pending" />
                      )
                    return (
                      may('service_configuration:write') && (
                        <Button small onClick={() => setAsked(row)}>
                          Ask for release
                        </Button>
                      )
                    )
                  },
                },
              ]}
            />
          )
        }
      </Loaded>
      {action.problem && !asked && (
        <div class="body">
          <ProblemBox problem={action.problem} />
        </div>
      )}
      {asked && (
        <Dialog title={`Release of ${asked.prefix}`} onClose={() => setAsked(null)}>
          <Form
            onSubmit={() => void request()}
            submit="Ask the operator"
            busy={action.busy}
            problem={action.problem}
            fields={['/note']}
          >
            <AreaField
              label="Why these calls are yours"
              value={note}
              onInput={setNote}
              problem={action.problem}
              at="/note"
            />
          </Form>
        </Dialog>
      )}
      {making && <Contain onClose={() => setMaking(false)} onDone={of.reload} />}
    </Card>
  )
}

function Contain({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [prefix, setPrefix] = useState('')
  const [reason_category, setCategory] = useState('destination_risk')
  const [reason_detail, setDetail] = useState('')
  const [hours, setHours] = useState<number | null>(24)
  const action = useAction()
  const make = async () => {
    const body = { prefix, reason_category, reason_detail, expires_in_seconds: (hours ?? 1) * 3600 }
    if (!(await action.run(() => ask('POST', '/containments', { body })))) return
    onDone()
    onClose()
  }
  return (
    <Dialog title="Contain a prefix" onClose={onClose}>
      <Form
        onSubmit={() => void make()}
        submit="Contain"
        danger
        busy={action.busy}
        problem={action.problem}
        fields={['/prefix', '/reason_category', '/reason_detail', '/expires_in_seconds']}
      >
        <TextField
          label="Prefix"
          value={prefix}
          placeholder="+88213"
          onInput={value => setPrefix(value.trim())}
          problem={action.problem}
          at="/prefix"
          required
          autoFocus
        />
        <SelectField
          label="Kind"
          value={reason_category}
          onInput={setCategory}
          options={['destination_risk', 'spend_velocity', 'account_compromise'].map(value => ({
            value,
            text: words(value),
          }))}
        />
        <TextField
          label="Why"
          value={reason_detail}
          onInput={setDetail}
          problem={action.problem}
          at="/reason_detail"
          required
        />
        <NumberField
          label="For how many hours"
          min={1}
          value={hours}
          onInput={setHours}
          problem={action.problem}
          at="/expires_in_seconds"
          required
        />
      </Form>
    </Dialog>
  )
}

const CHANNELS = ['email', 'webhook', 'in_app', 'sms'].map(value => ({ value, text: words(value) }))

function Policies() {
  const of = useData<ListOf<AlertPolicy>>('/v1/alerts/policies')
  const [edited, setEdited] = useState<AlertPolicy | null>(null)
  const action = useAction()
  const save = async () => {
    if (!edited) return
    const { channels, enabled, threshold, revision } = edited
    const done = await action.run(() =>
      ask('PATCH', `/v1/alerts/policies/${edited.id}`, { body: { channels, enabled, threshold }, revision }),
    )
    if (!done) return
    setEdited(null)
    of.reload()
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
              { title: 'Told by', cell: row => row.channels.map(words).join(', ') || 'nobody' },
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
                  legend="Told by"
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
