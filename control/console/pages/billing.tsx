import { useMemo } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { readBytes } from '../lib/api.ts'
import type { Balance, BillingDocument, Usage } from '../lib/api-types.ts'
import { type Data, useAction, useData } from '../lib/data.ts'
import { count, dayText, duration, instantOf, money, monthText } from '../lib/format.ts'
import { query, setQuery } from '../lib/router.ts'
import { saveAs } from '../lib/save-as.ts'
import type { ListOf } from '../lib/types.ts'
import { Bars } from '../ui/bars.tsx'
import { Button, Card, Empty, Loaded, NoRows, PageHead, ProblemBox, Stat, Stats, Status } from '../ui/basics.tsx'
import { Chart } from '../ui/chart.tsx'
import { SelectField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'

type Group = 'day' | 'trunk' | 'destination'
interface Grouping {
  readonly value: Group
  readonly text: string
}
const DAYS: Grouping = { value: 'day', text: 'Day' }
const GROUPS: readonly Grouping[] = [
  DAYS,
  { value: 'trunk', text: 'Trunk' },
  { value: 'destination', text: 'Destination' },
]

export function Billing() {
  const { value: group, text } = GROUPS.find(({ value }) => value === query.value.get('by')) ?? DAYS
  const balance = useData<Balance>('/v1/billing/balance', { poll_ms: 15_000 })
  const days = useUsage('day')
  const destinations = useUsage('destination')
  const trunks = useUsage('trunk', group === 'trunk')
  return (
    <>
      <PageHead title="Billing" sub="Balance, usage and statements." />
      <Loaded of={balance}>
        {data => (
          <Stats>
            <Stat name="Balance" value={money(data.balance_minor)} hint={data.prepaid ? 'prepaid' : 'postpaid'} />
            <Stat name="Held by calls" value={money(data.held_minor)} />
            <Stat name="Credit" value={money(data.credit_minor)} />
            <Stat name="Available" value={data.available_minor === null ? 'no limit' : money(data.available_minor)} />
          </Stats>
        )}
      </Loaded>
      <UsageCharts days={days} destinations={destinations} />
      <div class="filters">
        <SelectField label="Usage by" value={group} onInput={value => setQuery({ by: value })} options={GROUPS} />
      </div>
      <Loaded of={{ day: days, destination: destinations, trunk: trunks }[group]}>
        {usage => <UsageTable of={usage} title={text} />}
      </Loaded>
      <Statements />
    </>
  )
}

const UsageTable = ({ of: { data, total, from, to }, title }: { of: Usage; title: string }) => (
  <Card
    title="Usage"
    hint={`${dayText(from)} to ${dayText(to)}: ${counted(total.calls, 'call')}, ${money(total.settled_spend_minor)}`}
    flush
  >
    {data.length === 0 ? (
      <Empty title="No usage in this time" />
    ) : (
      <Table
        label="Usage"
        rows={data}
        keyOf={row => row.day ?? row.trunk_id ?? row.destination ?? 'other'}
        columns={[
          { title, cell: row => (row.day ? dayText(row.day) : (row.trunk_name ?? row.destination ?? 'other')) },
          { title: 'Calls', cell: row => count(row.calls), right: true },
          { title: 'Answered', cell: row => count(row.answered_calls), right: true, wide: true },
          { title: 'Time', cell: row => duration(row.billed_seconds), right: true, wide: true },
          { title: 'Spend', cell: row => money(row.settled_spend_minor), right: true },
        ]}
      />
    )}
  </Card>
)

function Statements() {
  const documents = useData<ListOf<BillingDocument>>('/v1/billing/documents')
  const action = useAction()
  const open = (document: BillingDocument) =>
    action.run(async () => {
      const bytes = await readBytes(`/v1/billing/documents/${document.id}.pdf`)
      saveAs(new Blob([bytes], { type: 'application/pdf' }), `${document.period}.pdf`)
    })
  return (
    <Loaded of={documents}>
      {({ data }) => (
        <Card title="Statements" flush>
          {data.length === 0 ? (
            <Empty title="No statement yet">One is made for each month.</Empty>
          ) : (
            <Table
              label="Statements"
              rows={data}
              keyOf={row => row.id}
              columns={[
                { title: 'Month', cell: row => monthText(row.period) },
                { title: 'Status', cell: row => <Status of={row.status} /> },
                { title: 'Charges', cell: row => money(row.charges_minor), right: true },
                {
                  title: '',
                  right: true,
                  cell: row => (
                    <Button small icon="download" label={`PDF of ${row.period}`} onClick={() => void open(row)}>
                      PDF
                    </Button>
                  ),
                },
              ]}
            />
          )}
          {action.problem && (
            <div class="body">
              <ProblemBox problem={action.problem} />
            </div>
          )}
        </Card>
      )}
    </Loaded>
  )
}

/** Each call that ends adds to it. */
const USAGE_MS = 60_000
const useUsage = (group: Group, wanted = true): Data<Usage> =>
  useData<Usage>(wanted ? `/v1/billing/usage?group_by=${group}` : null, { poll_ms: USAGE_MS })

/** Usage by day and by destination, as bars. */
function UsageCharts({ days, destinations }: { days: Data<Usage>; destinations: Data<Usage> }) {
  const { times, series } = useMemo(() => {
    const spent = new Map((days.data?.data ?? []).map(row => [row.day, row.settled_spend_minor]))
    const all = days.data ? daysBetween(days.data.from, days.data.to) : []
    return {
      // A day begins at midnight of the organization's zone, in which the chart writes times.
      times: all.map(day => Date.parse(instantOf(`${day}T00:00`)) / 1000),
      series: [{ name: 'Spend', values: all.map(day => (spent.get(day) ?? 0) / 100), color: '--accent' }],
    }
  }, [days.data])
  const rows = (destinations.data?.data ?? []).slice(0, MOST_DESTINATIONS)
  return (
    <div class="columns">
      <Card title="Spend by day" hint="In ₦">
        {days.data ? (
          <Chart
            label="Spend by day"
            times={times}
            series={series}
            bars
            show={major => money(Math.round(major * 100))}
          />
        ) : (
          <NoRows of={days}>{null}</NoRows>
        )}
      </Card>
      <Card title="Spend by destination">
        {rows.length === 0 ? (
          <NoRows of={destinations}>
            <Empty title="No usage in this time" />
          </NoRows>
        ) : (
          <Bars
            label="Spend by destination"
            rows={rows.map(row => ({
              name: row.destination ?? 'Without a rate',
              value: row.settled_spend_minor,
              text: `${money(row.settled_spend_minor)} · ${counted(row.calls, 'call')}`,
            }))}
          />
        )}
      </Card>
    </div>
  )
}

const MOST_DESTINATIONS = 10
const DAY_MS = 86_400_000

/** Every day from the first to the last, `YYYY-MM-DD`. */
const daysBetween = (from: string, to: string): string[] =>
  Array.from({ length: Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1 }, (_, index) =>
    new Date(Date.parse(from) + index * DAY_MS).toISOString().slice(0, 10),
  )
