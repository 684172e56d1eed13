import { useEffect } from 'preact/hooks'
import type { PageProps } from '../app.tsx'
import { ask } from '../lib/api.ts'
import { useAction, useData } from '../lib/data.ts'
import { money, words } from '../lib/format.ts'
import { onLive } from '../lib/live.ts'
import { hrefOf, query, setQuery } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { Button, Card, Empty, Facts, Loaded, PageHead, ProblemBox, Status, Tabs, Time } from '../ui/basics.tsx'
import { SelectField } from '../ui/form.tsx'
import { AlertPolicies } from './alert-policies.tsx'
import { Containments } from './containments.tsx'

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
      {tab === 'policies' && <AlertPolicies />}
    </>
  )
}

/** Returns the console page for the link of a suggested action, or the link itself when there is no page. */
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
