import type { AlertOverview, ProjectMetrics } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { firing } from '../lib/firing.ts'
import { LIVE_CALLS, METRICS } from '../lib/first-reads.ts'
import { count, money, words } from '../lib/format.ts'
import { useLiveCalls } from '../lib/live-calls.ts'
import { hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { Badge, Card, Empty, LinkButton, Meter, NoRows, PageHead, Stat, Status, Time } from '../ui/basics.tsx'
import { Later } from '../ui/later.tsx'
import { Table } from '../ui/table.tsx'
import { Board, boardPath } from './board.tsx'
import { LiveTable } from './live-calls.tsx'

/** The list of live calls ends here. Then the metrics have the number. */
const LISTED = 1000

export function Overview() {
  const reads = may('live_calls:read')
  return (
    <>
      <PageHead
        title="Overview"
        sub="The project at this moment."
        actions={
          may('service_configuration:write') && <LinkButton href={hrefOf('/welcome')}>Make a first call</LinkButton>
        }
      />
      {reads ? (
        <Figures />
      ) : (
        <Card flush>
          <Empty title="Your role may not see live figures" action={<a href={hrefOf('/billing')}>To billing</a>}>
            Your role sees billing and the call history.
          </Empty>
        </Card>
      )}
    </>
  )
}

Overview.ahead = () => (may('live_calls:read') ? [boardPath({}), METRICS, LIVE_CALLS] : [])

function Figures() {
  const metrics = useData<ProjectMetrics>(METRICS, { poll_ms: 5000 })
  const live = useLiveCalls()
  const { calls } = live
  const running = calls.filter(call => !call.over).length
  const live_calls = running >= LISTED || !live.known ? metrics.data?.now.live_calls : running
  return (
    <>
      <Board of={{}} {...(live_calls === undefined ? {} : { live_calls })} more={<Firing />} />
      <Later>
        <LiveNow of={live} />
        <div class="columns">
          {may('service_configuration:read') && <FiringAlerts />}
          {metrics.data && <Caps data={metrics.data} />}
          {metrics.data && <Nodes nodes={metrics.data.nodes} />}
        </div>
      </Later>
    </>
  )
}

const Firing = () => (
  <Stat
    name="Alerts"
    value={count(firing.value)}
    hint={firing.value === 0 ? 'nothing to look at' : firing.value && <a href={hrefOf('/alerts')}>Look at them</a>}
  />
)

const LiveNow = ({ of }: { of: ReturnType<typeof useLiveCalls> }) => (
  <Card title="Live calls" actions={<a href={hrefOf('/calls/live')}>All</a>} flush>
    {of.known ? <LiveTable calls={of.calls.slice(0, 8)} /> : <NoRows of={of}>{null}</NoRows>}
  </Card>
)

function FiringAlerts() {
  const of = useData<AlertOverview>('/v1/alerts?range=7d', { poll_ms: 15_000 })
  const rows = (of.data?.alerts ?? []).filter(alert => alert.state !== 'resolved').slice(0, 6)
  return (
    <Card title="Alerts" actions={<a href={hrefOf('/alerts')}>All</a>} flush>
      {rows.length === 0 ? (
        <NoRows of={of}>
          <Empty title="Nothing to look at" />
        </NoRows>
      ) : (
        <Table
          label="Alerts"
          rows={rows}
          keyOf={alert => alert.id}
          hrefOf={() => hrefOf('/alerts')}
          columns={[
            { title: 'What', cell: alert => `${words(alert.kind)}: ${alert.subject.name}` },
            { title: 'Severity', cell: alert => <Status of={alert.severity} /> },
            { title: 'Since', cell: alert => <Time at={alert.fired_at} />, wide: true },
          ]}
        />
      )}
    </Card>
  )
}

const Caps = ({ data }: { data: ProjectMetrics }) => (
  <Card title="Spend against caps" hint="Settled and reserved, since midnight in the organization's time zone.">
    {data.now.spend_caps.length === 0 ? (
      <Empty title="No daily cap is set">Set one in an outbound policy.</Empty>
    ) : (
      data.now.spend_caps.map(cap => (
        <Meter key={cap.kind + cap.name} name={cap.name} used={cap.used_minor} limit={cap.cap_minor} show={money} />
      ))
    )}
  </Card>
)

const NODE_TONES = { up: 'good', draining: 'warn', lost: 'bad' } as const

const Nodes = ({ nodes }: { nodes: ProjectMetrics['nodes'] }) => (
  <Card title="Nodes" flush>
    <Table
      label="Nodes"
      rows={nodes}
      keyOf={node => node.id}
      columns={[
        { title: 'Kind', cell: node => words(node.kind) },
        {
          title: 'State',
          cell: node => <Badge tone={NODE_TONES[node.state]}>{words(node.state)}</Badge>,
        },
        { title: 'Heard', cell: node => <Time at={node.heartbeat_at} /> },
        { title: 'Node', cell: node => <span class="mono">{node.id}</span>, wide: true },
      ]}
    />
  </Card>
)
