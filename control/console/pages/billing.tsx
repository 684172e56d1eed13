import { useMemo } from 'preact/hooks'
import { readBytes } from '../lib/api.ts'
import { useAction, useData } from '../lib/data.ts'
import { count, duration, money } from '../lib/format.ts'
import { query, setQuery } from '../lib/router.ts'
import { saveAs } from '../lib/save-as.ts'
import type { ListOf } from '../lib/types.ts'
import { Button, Card, Empty, Loaded, PageHead, ProblemBox, Stat, Stats, Status } from '../ui/basics.tsx'
import { Chart } from '../ui/chart.tsx'
import { SelectField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'

interface Balance {
  readonly available_minor: number | null
  readonly balance_minor: number
  readonly credit_minor: number
  readonly held_minor: number
  readonly prepaid: boolean
}

interface UsageRow {
  readonly answered_calls: number
  readonly billed_seconds: number
  readonly calls: number
  readonly pending_spend_minor: number
  readonly settled_spend_minor: number
  readonly day: string | null
  readonly destination: string | null
  readonly trunk_id: string | null
  readonly trunk_name: string | null
}

interface Document {
  readonly id: string
  readonly charges_minor: number
  readonly kind: string
  readonly period: string
  readonly status: string
  readonly pdf_href: string
}

export function Billing() {
  const group = query.value.get('by') ?? 'day'
  const balance = useData<Balance>('/v1/billing/balance', { poll_ms: 15_000 })
  const usage = useData<{ data: readonly UsageRow[]; total: UsageRow; from: string; to: string }>(
    `/v1/billing/usage?group_by=${group}`,
  )
  const documents = useData<ListOf<Document>>('/v1/billing/documents')
  const action = useAction()
  const open = (document: Document) =>
    action.run(async () => {
      const bytes = await readBytes(`/v1/billing/documents/${document.id}.pdf`)
      saveAs(new Blob([bytes], { type: 'application/pdf' }), `${document.period}.pdf`)
    })
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
      <div class="filters">
        <SelectField
          label="Usage by"
          value={group}
          onInput={value => setQuery({ by: value })}
          options={[
            { value: 'day', text: 'Day' },
            { value: 'trunk', text: 'Trunk' },
            { value: 'destination', text: 'Destination' },
          ]}
        />
      </div>
      <Loaded of={usage}>
        {({ data, total, from, to }) => (
          <Card
            title="Usage"
            hint={`${from} to ${to}: ${count(total.calls)} calls, ${money(total.settled_spend_minor)}`}
            flush
          >
            {data.length === 0 ? (
              <Empty title="No usage in this time" />
            ) : (
              <>
                {group === 'day' && data.length > 1 && <SpendChart rows={data} />}
                <Table
                  label="Usage"
                  rows={data}
                  keyOf={row => row.day ?? row.trunk_id ?? row.destination ?? 'other'}
                  columns={[
                    {
                      title: group === 'day' ? 'Day' : group === 'trunk' ? 'Trunk' : 'Destination',
                      cell: row => row.day ?? row.trunk_name ?? row.destination ?? 'other',
                    },
                    { title: 'Calls', cell: row => count(row.calls), right: true },
                    { title: 'Answered', cell: row => count(row.answered_calls), right: true, wide: true },
                    { title: 'Time', cell: row => duration(row.billed_seconds), right: true, wide: true },
                    { title: 'Spend', cell: row => money(row.settled_spend_minor), right: true },
                  ]}
                />
              </>
            )}
          </Card>
        )}
      </Loaded>
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
                  { title: 'Month', cell: row => row.period },
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
    </>
  )
}

function SpendChart({ rows }: { rows: readonly UsageRow[] }) {
  const { times, series } = useMemo(() => {
    const days = rows.filter(row => row.day !== null).toSorted((a, b) => (a.day ?? '').localeCompare(b.day ?? ''))
    return {
      times: days.map(row => Date.parse(row.day ?? '') / 1000),
      series: [
        { name: 'Spend, ₦', values: days.map(row => row.settled_spend_minor / 100), color: '--accent', fill: true },
      ],
    }
  }, [rows])
  return (
    <div class="body">
      <Chart label="Spend by day" times={times} series={series} />
    </div>
  )
}
