import type { OperatorCarrier, OperatorMargins, OperatorProject } from '../../lib/api-types.ts'
import { useAll, useData } from '../../lib/data.ts'
import { count, money, percent } from '../../lib/format.ts'
import { query, setQuery } from '../../lib/router.ts'
import type { ListOf } from '../../lib/types.ts'
import { Card, Empty, Loaded, PageHead, Stat, Stats } from '../../ui/basics.tsx'
import { SelectField } from '../../ui/form.tsx'
import { Table } from '../../ui/table.tsx'
import { lastDays } from './days.ts'

const GROUPS = [
  { value: 'day', text: 'Day' },
  { value: 'carrier', text: 'Carrier' },
  { value: 'project', text: 'Project' },
  { value: 'destination', text: 'Destination' },
]
const DAYS = ['7', '30', '90', '365'].map(value => ({ value, text: `Last ${value} days` }))

/** The revenue of settled calls, and what their carriers charge. */
export function Margins() {
  const group = query.value.get('by') ?? 'day'
  const days = query.value.get('days') ?? '30'
  const of = useData<OperatorMargins>(`/operator/v1/margins?${lastDays(Number(days))}&group_by=${group}`)
  const projects = useAll<OperatorProject>(group === 'project' ? '/operator/v1/projects?limit=200' : null)
  const carriers = useData<ListOf<OperatorCarrier>>(group === 'carrier' ? '/operator/v1/carriers' : null)
  const names = new Map([...projects, ...(carriers.data?.data ?? [])].map(row => [row.id, row.name]))
  const nameOf = (key: string | null) => (key === null ? 'none' : (names.get(key) ?? key))
  return (
    <>
      <PageHead title="Money" sub="The revenue of settled calls, and what their carriers charge." />
      <div class="filters">
        <SelectField label="By" value={group} onInput={by => setQuery({ by })} options={GROUPS} />
        <SelectField label="When" value={days} onInput={value => setQuery({ days: value })} options={DAYS} />
      </div>
      <Loaded of={of}>
        {found => (
          <>
            <Stats>
              <Stat name="Calls" value={count(found.total.calls)} />
              <Stat name="Charged" value={money(found.total.charge_minor)} />
              <Stat name="Cost" value={money(found.total.cost_minor)} />
              <Stat
                name="Margin"
                value={money(found.total.margin_minor)}
                hint={found.total.charge_minor > 0 && percent(found.total.margin_minor / found.total.charge_minor)}
              />
            </Stats>
            <Card flush>
              {found.data.length === 0 ? (
                <Empty title="No calls were settled in this period" />
              ) : (
                <Table
                  label="Margins"
                  rows={found.data}
                  keyOf={row => row.key ?? ''}
                  columns={[
                    { title: GROUPS.find(({ value }) => value === group)?.text ?? 'Key', cell: row => nameOf(row.key) },
                    { title: 'Calls', cell: row => count(row.calls), right: true },
                    { title: 'Charged', cell: row => money(row.charge_minor), right: true },
                    { title: 'Cost', cell: row => money(row.cost_minor), right: true },
                    { title: 'Margin', cell: row => money(row.margin_minor), right: true },
                  ]}
                />
              )}
            </Card>
          </>
        )}
      </Loaded>
    </>
  )
}
