import { useEffect } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { AlertOverview } from '../lib/api-types.ts'
import { useAction, useData } from '../lib/data.ts'
import { onLive } from '../lib/live.ts'
import { hrefOf, type PageProps, query, setQuery } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { Button, Card, Empty, Loaded, PageHead, ProblemBox, Tabs } from '../ui/basics.tsx'
import { SelectField } from '../ui/form.tsx'
import { AlertCard } from './alert-card.tsx'
import { AlertPolicies } from './alert-policies.tsx'
import { Containments } from './containments.tsx'

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
      <PageHead title="Alerts" sub="Alerts that need attention, each with its evidence and what to do." />
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

function AlertList() {
  const range = query.value.get('range') ?? '7d'
  const of = useData<AlertOverview>(`/v1/alerts?range=${range}`, { poll_ms: 10_000 })
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
              <AlertCard
                key={alert.id}
                alert={alert}
                actions={
                  alert.state === 'firing' &&
                  may('service_configuration:write') && (
                    <Button small onClick={() => void acknowledge(alert.id)}>
                      Acknowledge
                    </Button>
                  )
                }
              />
            ))
          )
        }
      </Loaded>
    </>
  )
}
