import { useMemo } from 'preact/hooks'
import type { Alert } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { firing } from '../lib/firing.ts'
import { count, money, percent, words } from '../lib/format.ts'
import { type LiveCall, useLiveCalls } from '../lib/live-calls.ts'
import { hrefOf, query, setQuery } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { Badge, Card, Empty, LinkButton, Loaded, Meter, PageHead, Stat, Stats, Status, Time } from '../ui/basics.tsx'
import { Chart } from '../ui/chart.tsx'
import { SelectField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { LiveTable } from './live-calls.tsx'
import { WINDOWS } from './trunk-quality.tsx'

interface ProjectMetrics {
  readonly as_of: string
  readonly window_hours: number
  readonly step_seconds: number
  readonly attempts: number
  readonly answered: number
  readonly series: readonly {
    readonly at: string
    readonly attempts: number
    readonly answered: number
    readonly concurrent_calls_max: number
    readonly concurrent_calls_mean: number
  }[]
  readonly now: {
    readonly live_calls: number
    readonly calls_last_minute: number
    readonly spend_today_minor: number
    readonly spend_caps: readonly {
      readonly name: string
      readonly kind: string
      readonly used_minor: number
      readonly cap_minor: number
    }[]
  }
  readonly nodes: readonly {
    readonly id: string
    readonly kind: string
    readonly state: 'up' | 'draining' | 'lost'
    readonly heartbeat_at: string
  }[]
}

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
          <Empty title="Live figures are not for your role" action={<a href={hrefOf('/billing')}>To billing</a>}>
            Your role sees billing and the call history.
          </Empty>
        </Card>
      )}
    </>
  )
}

function Figures() {
  const window = query.value.get('window') ?? '24h'
  const metrics = useData<ProjectMetrics>(`/v1/metrics?window=${window}`, { poll_ms: 5000 })
  const { calls } = useLiveCalls()
  const running = calls.filter(call => !call.over).length
  return (
    <>
      <Loaded of={metrics}>
        {data => (
          <>
            <Now data={data} live_calls={running >= LISTED ? data.now.live_calls : running} />
            <div class="filters">
              <SelectField
                label="Charts of the"
                value={window}
                onInput={value => setQuery({ window: value })}
                options={WINDOWS}
              />
            </div>
            <Charts data={data} />
          </>
        )}
      </Loaded>
      <LiveNow calls={calls} />
      <div class="columns">
        {may('service_configuration:read') && <FiringAlerts />}
        {metrics.data && <Caps data={metrics.data} />}
        {metrics.data && <Nodes nodes={metrics.data.nodes} />}
      </div>
    </>
  )
}

const Now = ({ data, live_calls }: { data: ProjectMetrics; live_calls: number }) => (
  <Stats>
    <Stat name="Calls now" value={<span data-live-calls>{count(live_calls)}</span>} />
    <Stat name="Calls per second" value={(data.now.calls_last_minute / 60).toFixed(2)} hint="over the last minute" />
    <Stat
      name="Answered (ASR)"
      value={data.attempts === 0 ? '–' : percent(data.answered / data.attempts)}
      hint={`${count(data.answered)} of ${count(data.attempts)} calls`}
    />
    <Stat name="Spend today" value={money(data.now.spend_today_minor)} hint="settled and reserved" />
    <Stat
      name="Alerts"
      value={count(firing.value)}
      hint={firing.value === 0 ? 'nothing to look at' : <a href={hrefOf('/alerts')}>Look at them</a>}
    />
  </Stats>
)

function Charts({ data }: { data: ProjectMetrics }) {
  const { times, calls, load } = useMemo(
    () => ({
      times: data.series.map(step => Date.parse(step.at) / 1000),
      calls: [
        { name: 'Calls', values: data.series.map(step => step.attempts), color: '--accent', fill: true },
        { name: 'Answered', values: data.series.map(step => step.answered), color: '--good' },
      ],
      load: [
        {
          name: 'Most calls at once',
          values: data.series.map(step => step.concurrent_calls_max),
          color: '--lane-2',
          fill: true,
        },
        {
          name: 'Mean',
          values: data.series.map(step => step.concurrent_calls_mean),
          color: '--accent',
        },
      ],
    }),
    [data],
  )
  return (
    <div class="columns">
      <Card title="Calls" hint={`By ${data.step_seconds === 60 ? 'minute' : 'hour'} in which they ended`}>
        <Chart label="Calls" times={times} series={calls} />
      </Card>
      <Card title="Load" hint={`Calls at once, by ${data.step_seconds === 60 ? 'minute' : 'hour'}`}>
        <Chart label="Load" times={times} series={load} />
      </Card>
    </div>
  )
}

const LiveNow = ({ calls }: { calls: readonly LiveCall[] }) => (
  <Card title="Live calls" actions={<a href={hrefOf('/calls/live')}>All</a>} flush>
    <LiveTable calls={calls.slice(0, 8)} />
  </Card>
)

function FiringAlerts() {
  const of = useData<{ alerts: readonly Alert[] }>('/v1/alerts?range=7d', { poll_ms: 15_000 })
  const rows = (of.data?.alerts ?? []).filter(alert => alert.state !== 'resolved').slice(0, 6)
  return (
    <Card title="Alerts" actions={<a href={hrefOf('/alerts')}>All</a>} flush>
      {rows.length === 0 ? (
        <Empty title="Nothing to look at" />
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
