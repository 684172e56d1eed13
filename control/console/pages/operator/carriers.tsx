import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type { OperatorCarrier, OperatorMargin, OperatorMargins } from '../../lib/api-types.ts'
import { useAction, useData } from '../../lib/data.ts'
import { count, money, percent, words } from '../../lib/format.ts'
import { go, hrefOf } from '../../lib/router.ts'
import type { ListOf } from '../../lib/types.ts'
import { Badge, Button, Card, Empty, Loaded, PageHead, Status } from '../../ui/basics.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Table } from '../../ui/table.tsx'
import { CarrierForm, type Draft, emptyDraft, requestOf } from './carrier-form.tsx'
import { lastDays } from './days.ts'

/** Days of the margins beside the carriers. */
const DAYS = 30

/** Carriers with what calls brought and cost by each. */
export function Carriers() {
  const of = useData<ListOf<OperatorCarrier>>('/operator/v1/carriers', { poll_ms: 10_000 })
  const margins = useData<OperatorMargins>(`/operator/v1/margins?${lastDays(DAYS)}&group_by=carrier`)
  const [adding, setAdding] = useState(false)
  const create = (
    <Button kind="main-one" icon="plus" onClick={() => setAdding(true)}>
      Add a carrier
    </Button>
  )
  const byCarrier = new Map((margins.data?.data ?? []).map(row => [row.key, row]))
  return (
    <>
      <PageHead title="Carriers" sub="Where calls of live projects leave and arrive." actions={create} />
      <Loaded of={of}>
        {({ data }) => (
          <Card flush>
            {data.length === 0 ? (
              <Empty title="No carrier yet" action={create} api="strowger carriers add --help" />
            ) : (
              <CarrierTable rows={data} marginOf={({ id }) => byCarrier.get(id)} />
            )}
          </Card>
        )}
      </Loaded>
      {adding && <Create onClose={() => setAdding(false)} />}
    </>
  )
}

const CarrierTable = ({
  rows,
  marginOf,
}: {
  rows: readonly OperatorCarrier[]
  marginOf: (carrier: OperatorCarrier) => OperatorMargin | undefined
}) => (
  <Table
    label="Carriers"
    rows={rows}
    keyOf={row => row.id}
    hrefOf={row => hrefOf(`/operator/carriers/${row.id}`)}
    columns={[
      { title: 'Name', cell: row => row.name },
      { title: 'State', cell: row => <CarrierState of={row} /> },
      { title: 'Targets', cell: row => count(row.targets.length), right: true, wide: true },
      { title: 'Routes', cell: row => count(row.routes.length), right: true, wide: true },
      { title: 'Calls', cell: row => count(marginOf(row)?.calls ?? 0), right: true },
      { title: 'Charged', cell: row => money(marginOf(row)?.charge_minor ?? 0), right: true, wide: true },
      { title: 'Cost', cell: row => money(marginOf(row)?.cost_minor ?? 0), right: true, wide: true },
      { title: 'Margin', cell: row => <Margin of={marginOf(row)} />, right: true },
    ]}
  />
)

const Margin = ({ of }: { of: OperatorMargin | undefined }) =>
  of === undefined || of.charge_minor === 0 ? (
    <span>{money(of?.margin_minor ?? 0)}</span>
  ) : (
    <>
      {money(of.margin_minor)} <span class="muted">({percent(of.margin_minor / of.charge_minor, 0)})</span>
    </>
  )

export const CarrierState = ({ of }: { of: OperatorCarrier }) => (
  <span class="row">
    {of.sandbox ? (
      <Badge tone="note">Sandbox</Badge>
    ) : (
      <Badge tone={of.enabled ? 'good' : 'warn'}>{of.enabled ? 'Enabled' : 'Drained'}</Badge>
    )}
    {of.registration && (
      <span title={of.registration.detail ?? words(of.registration.state)}>
        <Status of={of.registration.state} />
      </span>
    )}
  </span>
)

function Create({ onClose }: { onClose: () => void }) {
  const [draft, setDraft] = useState<Draft>(emptyDraft)
  const action = useAction()
  const add = () =>
    action.run(async () => {
      const made = await ask<OperatorCarrier>('POST', '/operator/v1/carriers', { body: requestOf(draft) })
      go(`/operator/carriers/${made.id}`)
    })
  return (
    <Dialog title="Add a carrier" onClose={onClose} wide>
      <CarrierForm draft={draft} set={setDraft} submit="Add the carrier" action={action} onSubmit={() => void add()} />
    </Dialog>
  )
}
