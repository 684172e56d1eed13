import { useState } from 'preact/hooks'
import { counted } from '../../../../core/domain/text/counted.ts'
import { ask } from '../../lib/api.ts'
import type { OperatorNumber, OperatorProject, StockedNumbers } from '../../lib/api-types.ts'
import { useAction, useAll, usePages } from '../../lib/data.ts'
import { digitsAsked } from '../../lib/digits-asked.ts'
import { money } from '../../lib/format.ts'
import { hrefOf, query, setQuery } from '../../lib/router.ts'
import { Button, Card, Empty, NoRows, PageHead, ProblemBox, Status, Time } from '../../ui/basics.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Form, MoneyField, PrefixField, SelectField, TextField } from '../../ui/form.tsx'
import { LongTable } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'

const keyOf = (row: OperatorNumber) => row.id

const STATES = [
  { value: '', text: 'Any' },
  { value: 'available', text: 'Available' },
  { value: 'held', text: 'Held' },
  { value: 'quarantined', text: 'Quarantined' },
]

/** Every number of the installation, whoever holds it. */
export function NumberStock() {
  const status = query.value.get('status') ?? ''
  const prefix = query.value.get('prefix') ?? ''
  const asked = new URLSearchParams({
    limit: '200',
    ...(status === '' ? {} : { status }),
    ...digitsAsked(prefix),
  })
  const of = usePages<OperatorNumber>(`/operator/v1/numbers?${asked}`, { key: keyOf })
  const projects = useAll<OperatorProject>('/operator/v1/projects?limit=200')
  const [adding, setAdding] = useState(false)
  const names = new Map(projects.map(({ id, name }) => [id, name]))
  return (
    <>
      <PageHead
        title="Number stock"
        sub="Free numbers, numbers that projects hold, and numbers in quarantine."
        actions={
          <Button kind="main-one" icon="plus" onClick={() => setAdding(true)}>
            Add numbers
          </Button>
        }
      />
      <div class="filters">
        <SelectField label="State" value={status} onInput={value => setQuery({ status: value })} options={STATES} />
        <PrefixField value={prefix} onInput={value => setQuery({ prefix: value })} />
      </div>
      <ProblemBox problem={of.problem} />
      <Card flush>
        {of.rows.length === 0 ? (
          <NoRows of={of}>
            <Empty title="No such number" api="bin/strowger numbers add --help" />
          </NoRows>
        ) : (
          <>
            <Stock of={of} nameOf={id => names.get(id) ?? id} />
            <div class="table-foot">
              {counted(of.rows.length, 'number')}
              {of.more ? ' so far' : ''}
            </div>
          </>
        )}
      </Card>
      {adding && (
        <Add
          onClose={() => setAdding(false)}
          onAdded={() => {
            setAdding(false)
            of.reload()
          }}
        />
      )}
    </>
  )
}

const Stock = ({
  of,
  nameOf,
}: {
  of: ReturnType<typeof usePages<OperatorNumber>>
  nameOf: (project_id: string) => string
}) => (
  <LongTable
    label="Number stock"
    rows={of.rows}
    keyOf={keyOf}
    more={of.more}
    onNearEnd={of.loadMore}
    columns={[
      { title: 'Number', cell: row => <span class="num">{row.e164}</span> },
      { title: 'State', cell: row => <Status of={row.status} /> },
      {
        title: 'Held by',
        cell: row =>
          row.project_id === null ? (
            <span class="muted">nobody</span>
          ) : (
            <a href={hrefOf(`/operator/projects/${row.project_id}`)}>{nameOf(row.project_id)}</a>
          ),
      },
      { title: 'A month', cell: row => money(row.monthly_minor), right: true, wide: true },
      { title: 'Quarantine ends', cell: row => <Time at={row.quarantined_until} />, wide: true },
    ]}
  />
)

function Add({ onClose, onAdded }: { onClose: () => void; onAdded: () => void }) {
  const [first, setFirst] = useState('')
  const [last, setLast] = useState('')
  const [monthly_minor, setMonthly] = useState<number | null>(null)
  const action = useAction()
  const add = () =>
    action.run(async () => {
      const made = await ask<StockedNumbers>('POST', '/operator/v1/numbers', {
        body: { first, ...(last === '' ? {} : { last }), ...(monthly_minor === null ? {} : { monthly_minor }) },
        once: true,
      })
      toast(`${counted(made.added, 'number')} added to the stock`)
      onAdded()
    })
  return (
    <Dialog title="Add numbers" onClose={onClose}>
      <Form
        onSubmit={() => void add()}
        submit="Add"
        busy={action.busy}
        problem={action.problem}
        fields={['/first', '/last', '/monthly_minor']}
      >
        <div class="grid-2">
          <TextField
            label="First number"
            type="tel"
            placeholder="+2342011111000"
            value={first}
            onInput={value => setFirst(value.trim())}
            problem={action.problem}
            at="/first"
            required
            autoFocus
          />
          <TextField
            label="Last number"
            type="tel"
            hint="Empty: one number."
            value={last}
            onInput={value => setLast(value.trim())}
            problem={action.problem}
            at="/last"
          />
        </div>
        <MoneyField
          label="Price a month, ₦"
          placeholder="free"
          value={monthly_minor}
          onInput={setMonthly}
          problem={action.problem}
          at="/monthly_minor"
        />
      </Form>
    </Dialog>
  )
}
