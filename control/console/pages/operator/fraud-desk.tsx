import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type {
  OperatorAlert,
  OperatorContainment,
  OperatorLimitedSource,
  OperatorReleaseRequest,
} from '../../lib/api-types.ts'
import { type Pages, useAction, usePages } from '../../lib/data.ts'
import { count, words } from '../../lib/format.ts'
import { hrefOf } from '../../lib/router.ts'
import { Badge, Button, Card, Empty, Facts, PageHead, ProblemBox, Time } from '../../ui/basics.tsx'
import { Listed, More, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { AlertCard } from '../alert-card.tsx'
import { Contain } from '../containments.tsx'

const PAGING = { poll_ms: 8000, key: ({ id }: { readonly id: string }) => id } as const

/** What looks like fraud, of all customers: what they ask, what is closed, what fires, and sources in question. */
export function FraudDesk() {
  const containments = usePages<OperatorContainment>('/operator/v1/containments?open=true', PAGING)
  const requests = usePages<OperatorReleaseRequest>('/operator/v1/release-requests?state=pending', PAGING)
  const alerts = usePages<OperatorAlert>('/operator/v1/alerts?state=firing', PAGING)
  const [closing, setClosing] = useState(false)
  const changed = () => {
    containments.reload()
    requests.reload()
    alerts.reload()
  }
  return (
    <>
      <PageHead
        title="Fraud desk"
        sub="Requests, closed prefixes and firing alerts of all customers."
        actions={<Button onClick={() => setClosing(true)}>Close a prefix</Button>}
      />
      <Requests of={requests} onChanged={changed} />
      <Closed of={containments} onChanged={changed} />
      <Firing of={alerts} onChanged={changed} />
      <Sources />
      {closing && <Contain onClose={() => setClosing(false)} onDone={changed} anyProject />}
    </>
  )
}

function Requests({ of, onChanged }: { of: Pages<OperatorReleaseRequest>; onChanged: () => void }) {
  const action = useAction()
  const decide = (request: OperatorReleaseRequest, decision: 'approved' | 'rejected') =>
    action.run(async () => {
      await ask('POST', `/operator/v1/release-requests/${request.id}/decide`, { body: { decision } })
      toast(decision === 'approved' ? 'The prefix is open' : 'The request is refused')
      onChanged()
    })
  return (
    <Card title="Requests to open a prefix" flush>
      <ProblemBox problem={action.problem ?? of.problem} />
      <Listed of={of} more="More requests" none={<Empty title="No open request" />}>
        <Table
          label="Release requests"
          rows={of.rows}
          keyOf={PAGING.key}
          columns={[
            { title: 'Prefix', cell: row => <span class="mono">{row.containment?.prefix ?? '–'}</span> },
            { title: 'Customer', cell: row => row.containment?.project_name ?? '–' },
            { title: 'They say', cell: row => row.note },
            { title: 'Closed because', cell: row => row.containment?.reason_detail ?? '–', wide: true },
            { title: 'Refused calls', cell: row => count(row.containment?.rejection_count), right: true, wide: true },
            { title: 'Asked', cell: row => <Time at={row.requested_at} />, wide: true },
            {
              title: '',
              right: true,
              cell: row => (
                <span class="row">
                  <Button
                    small
                    kind="main-one"
                    label={`Open ${row.containment?.prefix ?? 'it'}`}
                    onClick={() => void decide(row, 'approved')}
                  >
                    Open
                  </Button>
                  <Button small label="Refuse the request" onClick={() => void decide(row, 'rejected')}>
                    Refuse
                  </Button>
                </span>
              ),
            },
          ]}
        />
      </Listed>
    </Card>
  )
}

function Closed({ of, onChanged }: { of: Pages<OperatorContainment>; onChanged: () => void }) {
  const action = useAction()
  const open = (row: OperatorContainment) =>
    action.run(async () => {
      const body = { reason: 'Opened at the fraud desk' }
      await ask('POST', `/operator/v1/containments/${row.id}/release`, { body })
      toast(`${row.prefix} is open`)
      onChanged()
    })
  return (
    <Card title="Closed prefixes" flush>
      <ProblemBox problem={action.problem ?? of.problem} />
      <Listed of={of} more="More prefixes" none={<Empty title="No prefix is closed" />}>
        <Table
          label="Closed prefixes"
          rows={of.rows}
          keyOf={PAGING.key}
          columns={[
            { title: 'Prefix', cell: row => <span class="mono">{row.prefix}</span> },
            { title: 'Why', cell: row => `${words(row.reason_category)}: ${row.reason_detail}` },
            {
              title: 'Where',
              cell: row => (
                <a href={hrefOf(`/operator/projects/${row.project_id}`)}>
                  {row.project_name}, {row.trunk_name === null ? 'the whole project' : `trunk ${row.trunk_name}`}
                </a>
              ),
            },
            { title: 'Refused calls', cell: row => count(row.rejection_count), right: true },
            { title: 'Case', cell: row => row.case_ref, wide: true },
            { title: 'Ends', cell: row => <Time at={row.expires_at} />, wide: true },
            {
              title: '',
              right: true,
              cell: row => (
                <Button small label={`Open ${row.prefix}`} onClick={() => void open(row)}>
                  Open
                </Button>
              ),
            },
          ]}
        />
      </Listed>
    </Card>
  )
}

function Firing({ of, onChanged }: { of: Pages<OperatorAlert>; onChanged: () => void }) {
  const action = useAction()
  const acknowledge = (id: string) =>
    action.run(async () => {
      await ask('POST', `/operator/v1/alerts/${id}/acknowledge`)
      onChanged()
    })
  return (
    <>
      <ProblemBox problem={action.problem ?? of.problem} />
      {of.rows.map(alert => (
        <AlertCard
          key={alert.id}
          alert={alert}
          project={<a href={hrefOf(`/operator/projects/${alert.project_id}`)}>{alert.project_name}</a>}
          actions={
            <Button small onClick={() => void acknowledge(alert.id)}>
              Acknowledge
            </Button>
          }
        />
      ))}
      <More of={of}>More alerts</More>
    </>
  )
}

/** Sources of trunks that wait for an approval, overlap another tenant's, or are overruled by a carrier. */
function Sources() {
  const of = usePages<OperatorLimitedSource>('/operator/v1/source-approvals', { key: PAGING.key })
  const action = useAction()
  const decide = (row: OperatorLimitedSource, deed: 'approve' | 'refuse') =>
    action.run(async () => {
      await ask('POST', `/operator/v1/source-approvals/${row.id}/${deed}`)
      of.reload()
    })
  return (
    <Card
      title="Sources in question"
      hint="Addresses of customers’ trunks that wait for your approval, that count only with the trunk’s own name, or that a carrier’s address overrules."
      flush
    >
      <ProblemBox problem={action.problem ?? of.problem} />
      <Listed of={of} more="More sources" none={<Empty title="No source is in question" />}>
        <SourceTable rows={of.rows} decide={(row, deed) => void decide(row, deed)} />
      </Listed>
    </Card>
  )
}

const SourceTable = ({
  rows,
  decide,
}: {
  rows: readonly OperatorLimitedSource[]
  decide: (row: OperatorLimitedSource, deed: 'approve' | 'refuse') => void
}) => (
  <Table
    label="Sources in question"
    rows={rows}
    keyOf={PAGING.key}
    columns={[
      { title: 'Source', cell: row => <span class="mono">{row.cidr}</span> },
      { title: 'Trunk', cell: row => row.trunk_name },
      {
        title: 'Why',
        cell: row => (
          <Facts
            rows={[
              ['Standing', <Badge key="s">{words(row.standing)}</Badge>],
              row.carrier ? ['Carrier', `${row.carrier.name} has ${row.carrier.cidr}`] : null,
              ...row.overlaps.map(other => ['Overlaps', `${other.trunk_name}, ${other.cidr}`] as const),
            ]}
          />
        ),
      },
      {
        title: '',
        right: true,
        cell: row =>
          row.standing === 'pending_approval' && (
            <span class="row">
              <Button small label={`Approve ${row.cidr}`} onClick={() => decide(row, 'approve')}>
                Approve
              </Button>
              <Button small label={`Refuse ${row.cidr}`} onClick={() => decide(row, 'refuse')}>
                Refuse
              </Button>
            </span>
          ),
      },
    ]}
  />
)
