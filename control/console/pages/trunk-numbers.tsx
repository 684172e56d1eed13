import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { SubtrunkDetail, SubtrunkSummary } from '../lib/api-types.ts'
import { useAction, useData } from '../lib/data.ts'
import { count, money } from '../lib/format.ts'
import { go, hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Button, Card, Empty, Facts, LinkButton, Loaded, Status } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Form, TextField } from '../ui/form.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { CeilingFields, type Ceilings, NO_CEILINGS } from './ceilings.tsx'
import type { TrunkTab } from './trunk-tab.ts'

export function TrunkNumbers({ trunk }: TrunkTab) {
  const inventory = trunk.number_inventory
  return (
    <>
      <Card
        title="Numbers"
        actions={
          <LinkButton small href={hrefOf('/numbers')}>
            Route numbers to this trunk
          </LinkButton>
        }
      >
        <Facts
          rows={[
            ['Ring this trunk', count(inventory.routed)],
            ['Range', inventory.range ?? '–'],
            [
              'Delegated to subtrunks',
              `${count(inventory.delegated.count)}${inventory.delegated.to ? ` to ${inventory.delegated.to}` : ''}`,
            ],
            ['In quarantine', count(inventory.quarantined.count)],
          ]}
        />
      </Card>
      <Subtrunks trunk_id={trunk.id} />
    </>
  )
}

const SUBTRUNK_COLUMNS: readonly Column<SubtrunkSummary>[] = [
  { title: 'Name', cell: row => row.name },
  { title: 'Status', cell: row => <Status of={row.status} /> },
  {
    title: 'Calls at once',
    cell: row => `${row.limits.concurrency.child} of ${row.limits.concurrency.parent}`,
    right: true,
  },
  { title: 'Numbers', cell: row => count(row.limits.delegated), right: true },
  {
    title: 'Daily spend',
    cell: row =>
      row.limits.daily_spend_cap.child_minor === null ? 'no ceiling' : money(row.limits.daily_spend_cap.child_minor),
    right: true,
    wide: true,
  },
]

function Subtrunks({ trunk_id }: { trunk_id: string }) {
  const subtrunks = useData<ListOf<SubtrunkSummary>>(`/v1/trunks/${trunk_id}/subtrunks`, { poll_ms: 10_000 })
  const [adding, setAdding] = useState<{ name: string; configuration: Ceilings } | null>(null)
  const action = useAction()
  const add = () =>
    action.run(async () => {
      const body = { ...adding, status: 'enabled' }
      const made = await ask<SubtrunkDetail>('POST', `/v1/trunks/${trunk_id}/subtrunks`, { body, once: true })
      go(`/trunks/${trunk_id}/subtrunks/${made.id}`)
    })
  return (
    <Card
      title="Subtrunks"
      hint="Parts of a trunk with numbers and ceilings of their own."
      flush
      actions={
        may('service_configuration:write') && (
          <Button small icon="plus" onClick={() => setAdding({ name: '', configuration: NO_CEILINGS })}>
            Add a subtrunk
          </Button>
        )
      }
    >
      <Loaded of={subtrunks}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No subtrunk">Use them when a site or a customer shares this trunk.</Empty>
          ) : (
            <Table
              label="Subtrunks"
              rows={data}
              keyOf={row => row.id}
              hrefOf={row => hrefOf(`/trunks/${trunk_id}/subtrunks/${row.id}`)}
              columns={SUBTRUNK_COLUMNS}
            />
          )
        }
      </Loaded>
      {adding && (
        <Dialog title="Add a subtrunk" onClose={() => setAdding(null)}>
          <Form
            onSubmit={() => void add()}
            submit="Add"
            busy={action.busy}
            problem={action.problem}
            fields={['/name', '/configuration']}
          >
            <TextField
              label="Name"
              value={adding.name}
              onInput={name => setAdding({ ...adding, name })}
              problem={action.problem}
              at="/name"
              required
              autoFocus
            />
            <CeilingFields
              value={adding.configuration}
              onInput={configuration => setAdding({ ...adding, configuration })}
              problem={action.problem}
              below="/configuration"
            />
          </Form>
        </Dialog>
      )}
    </Card>
  )
}
