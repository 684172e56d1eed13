import { listCarriers } from '../../core/state/configuration/carriers.ts'
import type { Db } from '../../core/state/index.ts'
import { LOST_AFTER_MS, listNodes, type NodeRow, setDraining } from '../../core/state/nodes/nodes.ts'
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
        ...{ base_url, domain, host, sip_port, sips_port, ws_port },
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
