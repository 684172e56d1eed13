import { listQueues, MAX_QUEUE_SIZE, type QueueRow } from '../../core/state/calls/queues.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { pageOf, pageQuery, positionOf } from '../http/paging.ts'
import { type Change, isRefusal, notFound } from '../http/reply.ts'
import {
  Count64,
  described,
  Instant,
  input,
  listOf,
  Name,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { createQueue, dequeue, type Member, membersOf, removeQueue, resizeQueue } from '../live/queues.ts'
import { HeardRequest, soundOf } from './conferences.ts'
import { route } from './route.ts'

const Text = Type.String()
const QueueName = Type.Unsafe<string>({ ...Name, maxLength: 64 })
const Size = Type.Integer({ minimum: 1, maximum: MAX_QUEUE_SIZE })

const Queue = resource('Queue', {
  id: described(Text, '`QU` and 32 hexadecimal digits; the `QueueSid` of callbacks.'),
  name: described(Text, 'What the documents call it.'),
  waiting: described(Count64, 'Callers who wait. Who talks with an agent does not wait.'),
  max_size: described(Count64, 'A caller who would be one more is turned away: `QueueResult=queue-full`.'),
  average_wait_seconds: described(Count64, 'Of those who wait now.'),
  created_at: Instant,
  updated_at: Instant,
  revision: Count64,
})

const QueueMember = resource('QueueMember', {
  call_id: Text,
  queue_id: Text,
  position: described(Type.Integer(), '1 is who waits longest.'),
  wait_seconds: Count64,
  enqueued_at: Instant,
})

async function present(db: Db | Trx, row: QueueRow, now_ms: number): Promise<Static<typeof Queue>> {
  const members = await membersOf({ db, now_ms }, row.sid)
  const waited = members.reduce((sum, { wait_seconds }) => sum + wait_seconds, 0)
  return {
    id: row.sid,
    name: row.friendly_name,
    waiting: members.length,
    max_size: row.max_size,
    average_wait_seconds: members.length === 0 ? 0 : Math.round(waited / members.length),
    created_at: row.created_at,
    updated_at: row.updated_at,
    revision: row.revision,
  }
}

const presentMember = ({ row, position, wait_seconds }: Member): Static<typeof QueueMember> => ({
  call_id: row.call_sid,
  queue_id: row.queue_sid,
  position,
  wait_seconds,
  enqueued_at: row.enqueued_at,
})

const changeOf = (row: QueueRow, summary: string, before: object | null, after: object | null): Change => ({
  resource: { type: 'queue', id: row.sid, name: row.friendly_name, href: `/v1/queues/${row.sid}` },
  summary,
  before,
  after,
  to_revision: row.revision,
})

const ONE = '/queues/{queue_id}'

export const queues = [
  route({
    method: 'get',
    path: '/queues',
    summary: 'Queues of the project, newest first',
    scope: 'live_calls:read',
    query: Type.Object(pageQuery(200), { additionalProperties: false }),
    replies: { 200: pageSchema(Queue) },
    async run({ db, project, query: { limit = 50, cursor }, services }) {
      const position = positionOf(cursor)
      if (isRefusal(position)) return position
      const window = position.before === undefined ? { offset: 0 } : { older_than: position.before }
      const rows = await listQueues(db, project.id, window, limit + 1)
      const { shown, more } = pageOf(rows, limit, row => [row.position])
      const data = await Promise.all(shown.map(row => present(db, row, services.clock.now())))
      return { status: 200, body: { data, ...more } }
    },
  }),

  route({
    method: 'post',
    path: '/queues',
    summary: 'Create a queue',
    description: '`<Enqueue>` makes one too, with room for 100 callers.',
    scope: 'service_configuration:write',
    idempotent: true,
    audit: { kind: 'trunks', action: 'queue.created' },
    body: input('CreateQueueRequest', {
      name: QueueName,
      max_size: optional(Size),
    }),
    replies: { 201: Queue },
    refusals: ['state_conflict', 'limit_reached'],
    example: { name: 'support', max_size: 20 },
    async run({ db, project, body, services }) {
      const now_ms = services.clock.now()
      const wanted = { friendly_name: body.name, max_size: body.max_size ?? null }
      const row = await createQueue({ trx: db, services, project_id: project.id, now_ms }, wanted)
      if (isRefusal(row)) return row
      const shown = await present(db, row, now_ms)
      const headers = { Location: `/v1/queues/${row.sid}` }
      const change = changeOf(row, `Made the queue ${row.friendly_name}`, null, shown)
      return { status: 201, revision: row.revision, headers, body: shown, change }
    },
  }),

  route({
    method: 'get',
    path: ONE,
    summary: 'Read a queue',
    scope: 'live_calls:read',
    replies: { 200: Queue },
    async run({ db, queue, services }) {
      return { status: 200, revision: queue.revision, body: await present(db, queue, services.clock.now()) }
    },
  }),

  route({
    method: 'patch',
    path: ONE,
    summary: 'Change how many callers a queue takes',
    scope: 'service_configuration:write',
    if_match: 'queue',
    audit: { kind: 'trunks', action: 'queue.updated' },
    body: input('UpdateQueueRequest', { max_size: Size }),
    replies: { 200: Queue },
    example: { max_size: 50 },
    async run({ db, project, queue, body, services }) {
      const now_ms = services.clock.now()
      const before = await present(db, queue, now_ms)
      const saved = await resizeQueue({ trx: db, services, project_id: project.id, now_ms }, queue, body.max_size)
      if (isRefusal(saved)) return saved
      const after = await present(db, saved, now_ms)
      const change = changeOf(saved, `Changed the queue ${saved.friendly_name}`, before, after)
      return { status: 200, revision: saved.revision, body: after, change }
    },
  }),

  route({
    method: 'delete',
    path: ONE,
    summary: 'Delete a queue in which nobody waits',
    scope: 'service_configuration:write',
    if_match: 'queue',
    audit: { kind: 'trunks', action: 'queue.deleted' },
    replies: { 204: null },
    refusals: ['state_conflict'],
    async run({ db, project, queue, services }) {
      const now_ms = services.clock.now()
      const before = await present(db, queue, now_ms)
      const refused = await removeQueue({ trx: db, services, project_id: project.id, now_ms }, queue)
      if (refused) return refused
      return { status: 204, change: changeOf(queue, `Deleted the queue ${queue.friendly_name}`, before, null) }
    },
  }),

  route({
    method: 'get',
    path: `${ONE}/members`,
    summary: 'List the callers who wait in a queue, longest first',
    scope: 'live_calls:read',
    replies: { 200: listOf(QueueMember) },
    async run({ db, queue, services }) {
      const members = await membersOf({ db, now_ms: services.clock.now() }, queue.sid)
      return { status: 200, body: { data: members.map(presentMember) } }
    },
  }),

  route({
    method: 'post',
    path: `${ONE}/members/{waiting_call_id}/dequeue`,
    summary: 'Take a caller out of a queue, by the id of its call; the call then runs the document',
    scope: 'service_configuration:write',
    audit: { kind: 'trunks', action: 'queue.dequeued' },
    body: HeardRequest,
    replies: { 200: QueueMember },
    example: { url: 'https://app.example.com/next-agent' },
    async run({ db, project, queue, params, body, services }) {
      const sound = soundOf(body)
      if (isRefusal(sound)) return sound
      const now_ms = services.clock.now()
      const members = await membersOf({ db, now_ms }, queue.sid)
      const member = members.find(({ row }) => row.call_sid === params.waiting_call_id)
      if (!member) return notFound(`member ${params.waiting_call_id.slice(0, 60)}`)
      await dequeue({ trx: db, services, project_id: project.id, now_ms }, member, sound)
      const change = changeOf(
        queue,
        `Took ${params.waiting_call_id} out of the queue ${queue.friendly_name}`,
        null,
        null,
      )
      return { status: 200, body: presentMember(member), change, wake: ['commands'] as const }
    },
  }),
]
