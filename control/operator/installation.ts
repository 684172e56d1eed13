import { processesOf, ROLES, rolesInRow } from '../../core/domain/machines/roles.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { listCarriers } from '../../core/state/configuration/carriers.ts'
import type { Db } from '../../core/state/index.ts'
import {
  aliveKinds,
  configurationOfNodes,
  differingSettings,
  listMachines,
  type MachineRow,
} from '../../core/state/nodes/machines.ts'
import { LOST_AFTER_MS, listNodes, type NodeRow, setDraining } from '../../core/state/nodes/nodes.ts'
import { machinesWithControl } from '../../core/state/nodes/task-lease-rows.ts'
import { type Change, refuse } from '../http/reply.ts'
import { Count64, Flag, Instant, list, listOf, nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { presentCarrier, Registration } from './carrier-fields.ts'
import { route } from './route.ts'

/** The installation itself: its nodes, its settings, and its registrations with carriers. */

const Node = resource('OperatorNode', {
  id: Type.String(),
  kind: oneOf('signaling', 'media', 'edge', 'control'),
  machine_id: Type.String(),
  alive: Flag,
  live_calls: Count64,
  started_at: Instant,
  heartbeat_at: Instant,
  draining_at: nullable(Instant, { description: 'When it stopped taking new calls; null while it takes them.' }),
})

const Machine = resource('OperatorMachine', {
  id: Type.String(),
  host: Type.String(),
  base_url: Type.String(),
  sip_port: Count64,
  roles: list(oneOf(...ROLES)),
  version: Type.String(),
  state: oneOf('running', 'draining', 'impaired', 'cut_off', 'down'),
  here: Flag,
  processes: list(Type.String()),
  live_calls: Count64,
  configuration_behind: Count64,
  other_settings: list(Type.String()),
  started_at: Instant,
  seen_at: Instant,
})

/** What is the same for all machines of an answer. */
interface Seen {
  readonly nodes: readonly NodeRow[]
  readonly calls: ReadonlyMap<string, number>
  /** The machines whose control process runs. */
  readonly with_control: ReadonlySet<string>
  readonly configuration: Awaited<ReturnType<typeof configurationOfNodes>>
  /** The machine that answers; undefined when it was never started. */
  readonly own: MachineRow | undefined
  readonly now_ms: number
}

function presentMachine(row: MachineRow, seen: Seen): Static<typeof Machine> {
  const roles = rolesInRow(row)
  const nodes = seen.nodes.filter(({ machine_id }) => machine_id === row.id)
  const since_ms = seen.now_ms - LOST_AFTER_MS
  // Each machine has a control process, for its files at least.
  const processes = [...(seen.with_control.has(row.id) ? CONTROL : []), ...aliveKinds(nodes, row.id, since_ms)].sort()
  const signaling = processes.includes('signaling') ? nodes.filter(isInService) : []
  const applied = signaling.map(({ id }) => seen.configuration.of.get(id) ?? 0)
  const last = [row.seen_at, ...nodes.map(({ heartbeat_at }) => heartbeat_at)].sort().at(-1) ?? row.seen_at
  return {
    id: row.id,
    host: row.host,
    base_url: row.base_url,
    sip_port: row.sip_port,
    roles: ROLES.filter(role => roles.has(role)),
    version: row.version,
    state: stateOf(processes, [...CONTROL, ...processesOf(roles)], nodes, since_ms),
    here: row.id === seen.own?.id,
    processes,
    live_calls: nodes.reduce((sum, { id }) => sum + (seen.calls.get(id) ?? 0), 0),
    configuration_behind: applied.length === 0 ? 0 : Math.max(0, seen.configuration.saved - Math.min(...applied)),
    other_settings: seen.own ? differingSettings(seen.own.settings, row.settings) : [],
    started_at: row.started_at,
    seen_at: last,
  }
}

const CONTROL = ['control'] as const

/** How a machine stands whose processes have given a sign of life since `since_ms`. */
function stateOf(
  processes: readonly NodeRow['kind'][],
  needed: readonly NodeRow['kind'][],
  nodes: readonly NodeRow[],
  since_ms: number,
): Static<typeof Machine>['state'] {
  if (processes.length === 0) {
    const heard = nodes.some(({ attested_at }) => attested_at !== null && Date.parse(attested_at) >= since_ms)
    return heard ? 'cut_off' : 'down'
  }
  if (nodes.filter(isInService).some(({ draining_at }) => draining_at !== null)) return 'draining'
  return needed.every(kind => processes.includes(kind)) ? 'running' : 'impaired'
}

const isInService = ({ kind, lost_at }: NodeRow): boolean => kind === 'signaling' && lost_at === null

async function liveCallsByNode(db: Db): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('call')
    .select(eb => ['node_id', eb.fn.countAll<number>().as('count')])
    .where('ended_at', 'is', null)
    .groupBy('node_id')
    .execute()
  return new Map(rows.map(({ node_id, count }) => [node_id ?? '', Number(count)]))
}

const presentNode = (row: NodeRow, live_calls: number, now_ms: number): Static<typeof Node> => ({
  id: row.id,
  kind: row.kind,
  machine_id: row.machine_id,
  alive: now_ms - Date.parse(row.heartbeat_at) <= LOST_AFTER_MS,
  live_calls,
  started_at: row.started_at,
  heartbeat_at: row.heartbeat_at,
  draining_at: row.draining_at,
})

const drained = (action: 'drain' | 'take-calls') =>
  route({
    method: 'post',
    path: `/nodes/{node_id}/${action}`,
    summary:
      action === 'drain'
        ? 'Give a signaling node no new calls; when its last has ended, its platform stops'
        : 'Give a draining signaling node calls again',
    scope: 'operator:network',
    context: 'organization',
    audit: { kind: 'trunks', action: action === 'drain' ? 'node.drained' : 'node.takes_calls' },
    replies: { 200: Node },
    refusals: ['state_conflict'],
    async run({ db, node, now, services }) {
      if (node.kind !== 'signaling') return refuse('state_conflict', { name: node.id, value: `a node of ${node.kind}` })
      const draining_at = action === 'drain' ? (node.draining_at ?? now) : null
      await setDraining(db, node.id, draining_at)
      const now_ms = services.clock.now()
      const before = presentNode(node, 0, now_ms)
      const after = presentNode({ ...node, draining_at }, (await liveCallsByNode(db)).get(node.id) ?? 0, now_ms)
      const change: Change = {
        resource: { type: 'node', id: node.id, name: node.id, href: null },
        summary: action === 'drain' ? `Node ${node.id} takes no new calls` : `Node ${node.id} takes calls again`,
        before: { draining_at: before.draining_at },
        after: { draining_at },
      }
      return { status: 200, body: after, change, wake: ['nodes'] as const }
    },
  })

const Settings = resource('OperatorSettings', {
  base_url: Type.String(),
  domain: Type.String(),
  host: Type.String(),
  sip_port: Count64,
  sips_port: Count64,
  ws_port: Count64,
  rtp_ports: resource('OperatorPortRange', { first: Count64, last: Count64 }),
  edge: oneOf('embedded', 'drachtio'),
  operator_sources: list(Type.String()),
  allow_private_webhooks: list(Type.String()),
  recordings_quota_bytes: nullable(Count64),
  recordings: oneOf('data_folder', 'object_store'),
  email: Flag,
  sms: Flag,
})

const OfCarrier = resource('OperatorRegistration', {
  carrier_id: Type.String(),
  carrier_name: Type.String(),
  ...Registration.properties,
})

export const installation = [
  route({
    method: 'get',
    path: '/nodes',
    summary: 'List the processes of the installation with their load',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: listOf(Node) },
    async run({ db, services }) {
      const calls = await liveCallsByNode(db)
      const now_ms = services.clock.now()
      const data = (await listNodes(db)).map(row => presentNode(row, calls.get(row.id) ?? 0, now_ms))
      return { status: 200, body: { data } }
    },
  }),

  route({
    method: 'get',
    path: '/machines',
    summary: 'List the machines that share the database, with their load and state',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: listOf(Machine) },
    async run({ db, services: { clock, settings } }) {
      const rows = await listMachines(db)
      const { machine_id } = machineOf(settings.data_dir)
      const seen: Seen = {
        nodes: await listNodes(db),
        calls: await liveCallsByNode(db),
        with_control: await machinesWithControl(db, clock.now()),
        configuration: await configurationOfNodes(db),
        own: rows.find(({ id }) => id === machine_id),
        now_ms: clock.now(),
      }
      return { status: 200, body: { data: rows.map(row => presentMachine(row, seen)) } }
    },
  }),

  drained('drain'),
  drained('take-calls'),

  route({
    method: 'get',
    path: '/registrations',
    summary: 'List the registrations with carriers and their states',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: listOf(OfCarrier) },
    async run({ db }) {
      const data = (await listCarriers(db))
        .map(presentCarrier)
        .flatMap(({ id, name, registration }) =>
          registration ? [{ carrier_id: id, carrier_name: name, ...registration }] : [],
        )
      return { status: 200, body: { data } }
    },
  }),

  route({
    method: 'get',
    path: '/settings',
    summary: 'Read what the installation runs with; its environment sets it',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: Settings },
    async run({ services: { settings, objects } }) {
      const { base_url, domain, host, sip_port, sips_port, ws_port, rtp_ports } = settings
      const body: Static<typeof Settings> = {
        base_url,
        domain,
        host,
        sip_port,
        sips_port,
        ws_port,
        rtp_ports: { first: rtp_ports.first, last: rtp_ports.last },
        edge: settings.drachtio === null ? 'embedded' : 'drachtio',
        operator_sources: [...settings.operator_sources],
        allow_private_webhooks: [...settings.allow_private_webhooks],
        recordings_quota_bytes: settings.recordings_quota_bytes,
        recordings: objects === null ? 'data_folder' : 'object_store',
        email: settings.smtp_url !== null,
        sms: settings.sms_url !== null,
      }
      return { status: 200, body }
    },
  }),
]
