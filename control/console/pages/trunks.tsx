import { useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { useData } from '../lib/data.ts'
import { count, words } from '../lib/format.ts'
import { hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { noTargetAnswers } from '../lib/targets.ts'
import type { ListOf, TrunkSummary } from '../lib/types.ts'
import { Badge, Card, Empty, LinkButton, Loaded, PageHead, Status } from '../ui/basics.tsx'
import { TextField } from '../ui/form.tsx'
import { type Column, LongTable } from '../ui/table.tsx'

const COLUMNS: readonly Column<TrunkSummary>[] = [
  { title: 'Name', cell: trunk => trunk.name, width: '26%' },
  {
    title: 'Status',
    cell: trunk =>
      noTargetAnswers(trunk) ? <Badge tone="bad">No target answers</Badge> : <Status of={trunk.status} />,
    width: '190px',
  },
  { title: 'Direction', cell: trunk => words(trunk.direction), wide: true },
  {
    title: 'Calls now',
    cell: trunk => `${count(trunk.concurrency_used)} of ${count(trunk.concurrency_limit)}`,
    right: true,
  },
  { title: 'Most calls per second', cell: trunk => trunk.cps ?? 'no ceiling', right: true, wide: true },
  { title: 'Numbers', cell: trunk => count(trunk.numbers), right: true, wide: true },
  { title: 'Subaccount', cell: trunk => trunk.subaccount_name ?? '–', wide: true },
]

const CREATE = `curl -X POST "$STROWGER_URL/v1/trunks" \\
  -H "Authorization: Bearer $STROWGER_API_KEY" -H "Idempotency-Key: $(uuidgen)" \\
  -H "Content-Type: application/json" -d '{
    "name": "Head office", "auth_mode": "digest", "direction": "both",
    "codecs": ["PCMA", "PCMU"], "media_security": "rtp", "require_tls": false,
    "source_validation": "relaxed", "sources": [], "targets": [] }'`

export function Trunks() {
  const trunks = useData<ListOf<TrunkSummary>>('/v1/trunks', { poll_ms: 10_000 })
  const [filter, setFilter] = useState('')
  const create = may('service_configuration:write') && (
    <LinkButton href={hrefOf('/trunks/new')} kind="main-one" icon="plus">
      Create a trunk
    </LinkButton>
  )
  return (
    <>
      <PageHead
        title="Trunks"
        sub="A trunk carries calls between a PBX or a carrier of yours and the platform: inbound, outbound or both."
        actions={create}
      />
      <Loaded of={trunks}>
        {({ data }) => {
          const rows = data.filter(trunk => trunk.name.toLowerCase().includes(filter.toLowerCase()))
          if (data.length === 0)
            return (
              <Card flush>
                <Empty title="No trunk yet" action={create} api={CREATE}>
                  Create one for each PBX. It takes a name and how the PBX proves who it is; then paste the ready-made
                  configuration into the PBX and run a test call.
                </Empty>
              </Card>
            )
          return (
            <>
              {data.length > 8 && (
                <div class="filters">
                  <TextField label="Name" type="search" value={filter} onInput={setFilter} />
                </div>
              )}
              <Card flush>
                <LongTable
                  label="Trunks"
                  columns={COLUMNS}
                  rows={rows}
                  keyOf={trunk => trunk.id}
                  hrefOf={trunk => hrefOf(`/trunks/${trunk.id}`)}
                  more={false}
                  onNearEnd={() => undefined}
                />
                <div class="table-foot">{counted(rows.length, 'trunk')}</div>
              </Card>
            </>
          )
        }}
      </Loaded>
    </>
  )
}
