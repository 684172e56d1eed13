import { useState } from 'preact/hooks'
import { counted } from '../../../../core/domain/text/counted.ts'
import { ask } from '../../lib/api.ts'
import type { OperatorMachine, OperatorNode, OperatorRegistration, OperatorSettings } from '../../lib/api-types.ts'
import { useAction, useData } from '../../lib/data.ts'
import { bytes, count, words } from '../../lib/format.ts'
import { hrefOf } from '../../lib/router.ts'
import type { ListOf } from '../../lib/types.ts'
import {
  Badge,
  Button,
  Card,
  Empty,
  Facts,
  Loaded,
  Notice,
  PageHead,
  ProblemBox,
  Status,
  Time,
} from '../../ui/basics.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'

/** The processes of the installation, its registrations, and what it runs with. */
export const Nodes = () => (
  <>
    <PageHead title="Nodes" sub="The processes of the installation, and what it runs with." />
    <Machines />
    <NodeList />
    <Registrations />
    <Settings />
  </>
)

const TONES = { running: 'good', draining: 'warn', impaired: 'warn', cut_off: 'bad', down: 'bad' } as const

/** The machines that share the database. One alone needs no list. */
function Machines() {
  const of = useData<ListOf<OperatorMachine>>('/operator/v1/machines', { poll_ms: 4000 })
  return (
    <Loaded of={of}>
      {({ data }) =>
        data.length > 1 && (
          <Card title="Machines" flush>
            <Table
              label="Machines"
              rows={data}
              keyOf={row => row.id}
              columns={[
                { title: 'Machine', cell: row => <span class="mono">{row.id.slice(0, 12)}</span> },
                { title: 'State', cell: row => <Badge tone={TONES[row.state]}>{words(row.state)}</Badge> },
                { title: 'Roles', cell: row => (row.roles.length === 4 ? 'All' : row.roles.map(words).join(', ')) },
                { title: 'Address', cell: row => row.host, wide: true },
                { title: 'Version', cell: row => row.version, wide: true },
                { title: 'Calls', cell: row => count(row.live_calls), right: true },
                { title: 'Changes behind', cell: row => count(row.configuration_behind), right: true, wide: true },
                { title: 'Other settings', cell: row => row.other_settings.join(', ') || 'none', wide: true },
                { title: 'Last seen', cell: row => <Time at={row.seen_at} />, wide: true },
              ]}
            />
          </Card>
        )
      }
    </Loaded>
  )
}

function NodeList() {
  const of = useData<ListOf<OperatorNode>>('/operator/v1/nodes', { poll_ms: 4000 })
  const [drained, setDrained] = useState<OperatorNode | null>(null)
  const action = useAction()
  const turn = (node: OperatorNode, deed: 'drain' | 'take-calls') =>
    action.run(async () => {
      await ask('POST', `/operator/v1/nodes/${node.id}/${deed}`)
      of.reload()
      toast(deed === 'drain' ? 'The node takes no new calls' : 'The node takes calls again')
    })
  return (
    <Card title="Processes" flush>
      <ProblemBox problem={action.problem} />
      <Loaded of={of}>
        {({ data }) => <NodeTable rows={data} onDrain={setDrained} onTake={node => void turn(node, 'take-calls')} />}
      </Loaded>
      {drained && (
        <Dialog title={`Drain ${drained.id}`} onClose={() => setDrained(null)}>
          <Notice tone="warn">
            It takes no new calls. When its {counted(drained.live_calls, 'running call has', 'running calls have')}{' '}
            ended, its platform stops.
          </Notice>
          <div class="actions">
            <Button
              kind="danger"
              onClick={() => {
                setDrained(null)
                void turn(drained, 'drain')
              }}
            >
              Drain
            </Button>
            <Button onClick={() => setDrained(null)}>Cancel</Button>
          </div>
        </Dialog>
      )}
    </Card>
  )
}

const stateOf = (node: OperatorNode) => {
  if (!node.alive) return <Badge tone="bad">Silent</Badge>
  return node.draining_at === null ? <Badge tone="good">Running</Badge> : <Badge tone="warn">Draining</Badge>
}

const NodeTable = ({
  rows,
  onDrain,
  onTake,
}: {
  rows: readonly OperatorNode[]
  onDrain: (node: OperatorNode) => void
  onTake: (node: OperatorNode) => void
}) => (
  <Table
    label="Nodes"
    rows={rows}
    keyOf={row => row.id}
    columns={[
      { title: 'Process', cell: row => <span class="mono">{row.id}</span> },
      { title: 'State', cell: stateOf },
      { title: 'Kind', cell: row => words(row.kind), wide: true },
      { title: 'Machine', cell: row => <span class="mono">{row.machine_id.slice(0, 12)}</span>, wide: true },
      // Calls are those of a signaling process.
      { title: 'Calls', cell: row => (row.kind === 'signaling' ? count(row.live_calls) : '–'), right: true },
      { title: 'Last seen', cell: row => <Time at={row.heartbeat_at} />, wide: true },
      { title: 'Started', cell: row => <Time at={row.started_at} />, wide: true },
      {
        title: '',
        right: true,
        cell: row =>
          row.kind === 'signaling' &&
          // A silent process hears no drain, and one that returns after it was declared lost takes calls.
          (row.alive || row.draining_at !== null) &&
          (row.draining_at === null ? (
            <Button small label={`Drain ${row.id}`} onClick={() => onDrain(row)}>
              Drain
            </Button>
          ) : (
            <Button small label={`Take calls on ${row.id}`} onClick={() => onTake(row)}>
              Take calls
            </Button>
          )),
      },
    ]}
  />
)

function Registrations() {
  const of = useData<ListOf<OperatorRegistration>>('/operator/v1/registrations', { poll_ms: 8000 })
  return (
    <Card title="Registrations with carriers" flush>
      <Loaded of={of}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No registration with a carrier" />
          ) : (
            <Table
              label="Registrations"
              rows={data}
              keyOf={row => row.carrier_id}
              hrefOf={row => hrefOf(`/operator/carriers/${row.carrier_id}`)}
              columns={[
                { title: 'Carrier', cell: row => row.carrier_name },
                { title: 'State', cell: row => <Status of={row.state} /> },
                { title: 'Registrar', cell: row => row.registrar, wide: true },
                { title: 'Answer', cell: row => row.detail ?? '–', wide: true },
                { title: 'Ends', cell: row => <Time at={row.expires_at} /> },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  )
}

function Settings() {
  const of = useData<OperatorSettings>('/operator/v1/settings')
  return (
    <Card title="Settings" hint="From the environment or the file .env. A change takes effect at the next start.">
      <Loaded of={of}>
        {settings => (
          <Facts
            rows={[
              ['Address', settings.base_url],
              ['SIP domain', settings.domain],
              ['Host', settings.host],
              ['Ports', `SIP ${settings.sip_port}, TLS ${settings.sips_port}, WebSocket ${settings.ws_port}`],
              ['Media ports', `${settings.rtp_ports.first}–${settings.rtp_ports.last}`],
              ['SIP edge', words(settings.edge)],
              ['Operators come from', settings.operator_sources.join(', ')],
              ['Private webhooks', settings.allow_private_webhooks.join(', ') || 'none'],
              [
                'Recordings',
                `${words(settings.recordings)}${settings.recordings_quota_bytes === null ? '' : `, at most ${bytes(settings.recordings_quota_bytes)}`}`,
              ],
              [
                'Alerts go out by',
                [settings.email ? 'email' : '', settings.sms ? 'SMS' : ''].filter(Boolean).join(', ') ||
                  'webhooks alone',
              ],
            ]}
          />
        )}
      </Loaded>
    </Card>
  )
}
