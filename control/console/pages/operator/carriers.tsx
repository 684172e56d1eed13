import { useEffect, useState } from 'preact/hooks'
import { ask, read } from '../../lib/api.ts'
import type { OperatorCarrier, OperatorCarrierMetrics, OperatorCarrierTotal } from '../../lib/api-types.ts'
import { useAction, useData } from '../../lib/data.ts'
import { count, duration, money, words } from '../../lib/format.ts'
import { go, hrefOf } from '../../lib/router.ts'
import type { ListOf } from '../../lib/types.ts'
import { Badge, Button, Card, Empty, Loaded, PageHead, Status } from '../../ui/basics.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Table } from '../../ui/table.tsx'
import { asrText, marginText, metricsPath, pddText } from './carrier-board.tsx'
import { CarrierForm, type Draft, emptyDraft, requestOf } from './carrier-form.tsx'

/** Days of the figures beside the carriers. */
const DAYS = 30

/** Carriers side by side: how their calls went, what they brought and cost. */
export function Carriers() {
  const of = useData<ListOf<OperatorCarrier>>('/operator/v1/carriers', { poll_ms: 10_000 })
  const totals = useTotals((of.data?.data ?? []).map(({ id }) => id))
  const [adding, setAdding] = useState(false)
  const create = (
    <Button kind="main-one" icon="plus" onClick={() => setAdding(true)}>
      Add a carrier
    </Button>
  )
  return (
    <>
      <PageHead
        title="Carriers"
        sub="Where calls of live projects leave and arrive; figures of the last 30 days."
        actions={create}
      />
      <Loaded of={of}>
        {({ data }) => (
          <Card flush>
            {data.length === 0 ? (
              <Empty title="No carrier yet" action={create} api="bin/strowger carriers add --help" />
            ) : (
              <CarrierTable rows={data} totals={totals} />
            )}
          </Card>
        )}
      </Loaded>
      {adding && <Create onClose={() => setAdding(false)} />}
    </>
  )
}

/** The totals of each carrier. They are read again when another carrier appears. */
function useTotals(ids: readonly string[]): ReadonlyMap<string, OperatorCarrierTotal> {
  const [totals, setTotals] = useState<ReadonlyMap<string, OperatorCarrierTotal>>(new Map())
  const key = ids.join(' ')
  useEffect(() => {
    const abort = new AbortController()
    const totalOf = async (id: string) => {
      const { total } = await read<OperatorCarrierMetrics>(metricsPath(id, DAYS), abort.signal)
      return [id, total] as const
    }
    // The table stands without the figures when they cannot be read.
    Promise.all(ids.map(totalOf)).then(
      found => setTotals(new Map(found)),
      () => undefined,
    )
    return () => abort.abort()
  }, [key])
  return totals
}

const CarrierTable = ({
  rows,
  totals,
}: {
  rows: readonly OperatorCarrier[]
  totals: ReadonlyMap<string, OperatorCarrierTotal>
}) => {
  const cell = (show: (total: OperatorCarrierTotal) => string) => (row: OperatorCarrier) => {
    const total = totals.get(row.id)
    return total ? show(total) : '–'
  }
  return (
    <Table
      label="Carriers"
      rows={rows}
      keyOf={row => row.id}
      hrefOf={row => hrefOf(`/operator/carriers/${row.id}`)}
      columns={[
        { title: 'Name', cell: row => row.name },
        { title: 'State', cell: row => <CarrierState of={row} /> },
        { title: 'Attempts', cell: cell(({ attempts }) => count(attempts)), right: true },
        { title: 'ASR', cell: cell(asrText), right: true },
        { title: 'ACD', cell: cell(({ acd_seconds }) => duration(acd_seconds)), right: true, wide: true },
        { title: 'PDD', cell: cell(pddText), right: true, wide: true },
        { title: 'Cost', cell: cell(({ cost_minor }) => money(cost_minor)), right: true, wide: true },
        { title: 'Margin', cell: cell(marginText), right: true },
      ]}
    />
  )
}

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
      const made = await ask<OperatorCarrier>('POST', '/operator/v1/carriers', { body: requestOf(draft), once: true })
      go(`/operator/carriers/${made.id}`)
    })
  return (
    <Dialog title="Add a carrier" onClose={onClose} wide>
      <CarrierForm draft={draft} set={setDraft} submit="Add the carrier" action={action} onSubmit={() => void add()} />
    </Dialog>
  )
}
