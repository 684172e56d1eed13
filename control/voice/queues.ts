import { findQueue, listQueues, type QueueRow } from '../../core/state/calls/queues.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { isRefusal } from '../http/reply.ts'
import { resource, type Static, Type } from '../http/schema.ts'
import { createQueue, dequeue, type Member, membersOf, removeQueue, resizeQueue } from '../live/queues.ts'
import { changed } from './changed.ts'
import { forReason, isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { soundIn, wholeNumber } from './fields.ts'
import type { Form } from './form.ts'
import { pageByText, voicePageOf, voicePageSchema } from './listing.ts'
import { accountPath, dateText } from './present.ts'
import { voiceRoute } from './route.ts'

const Text = Type.String()

const Queue = resource('VoiceQueue', {
  sid: Text,
  account_sid: Text,
  friendly_name: Text,
  current_size: Type.Integer(),
  max_size: Type.Integer(),
  average_wait_time: Type.Integer(),
  date_created: Text,
  date_updated: Text,
  uri: Text,
  subresource_uris: resource('VoiceQueueSubresources', { members: Text }),
})

const QueueMember = resource('VoiceQueueMember', {
  call_sid: Text,
  queue_sid: Text,
  date_enqueued: Text,
  position: Type.Integer(),
  wait_time: Type.Integer(),
  uri: Text,
})

const unknownQueue = (sid: string): VoiceRefusal => forReason('not_found', { value: `The queue ${sid}` })

function present(row: QueueRow, members: readonly Member[], account_sid: string): Static<typeof Queue> {
  const path = `${accountPath(account_sid)}/Queues/${row.sid}`
  const waited = members.reduce((sum, { wait_seconds }) => sum + wait_seconds, 0)
  return {
    sid: row.sid,
    account_sid,
    friendly_name: row.friendly_name,
    current_size: members.length,
    max_size: row.max_size,
    average_wait_time: members.length === 0 ? 0 : Math.round(waited / members.length),
    date_created: dateText(row.created_at),
    date_updated: dateText(row.updated_at),
    uri: `${path}.json`,
    subresource_uris: { members: `${path}/Members.json` },
  }
}

const presentMember = ({ row, position, wait_seconds }: Member, account_sid: string): Static<typeof QueueMember> => ({
  call_sid: row.call_sid,
  queue_sid: row.queue_sid,
  date_enqueued: dateText(row.enqueued_at),
  position,
  wait_time: wait_seconds,
  uri: `${accountPath(account_sid)}/Queues/${row.queue_sid}/Members/${row.call_sid}.json`,
})

/** The place of a caller among those who wait. Texts of one length sort like their numbers. */
const BY_COMING = {
  textOf: ({ row }: Member) => String(row.position).padStart(15, '0'),
  read: (text: string) => (/^[0-9]{15}$/.test(text) ? text : undefined),
}

/** The shown queue, read within a transaction or without one. */
async function shown(db: Db | Trx, row: QueueRow, { account_sid, now_ms }: { account_sid: string; now_ms: number }) {
  return present(row, await membersOf({ db, now_ms }, row.sid), account_sid)
}

const sizeOf = (form: Form): number | null | VoiceRefusal => {
  const text = form.text('MaxSize')
  if (text === undefined) return null
  return wholeNumber(text) ?? numbered(20001, 'MaxSize is not a whole number.')
}

const MAX_NAME = 64
const ONE = '/Queues/{queue_sid}'
const MEMBERS = `${ONE}/Members` as const
const MEMBER = `${MEMBERS}/{member}` as const

export const queues = [
  voiceRoute({
    method: 'GET',
    path: '/Queues',
    suffix: '.json',
    extended: true,
    summary: 'List the queues of the account, most recent first',
    fields: { 'PageSize, Page': 'as in the list of calls' },
    replies: { 200: voicePageSchema('VoiceQueuePage', 'queues', Queue) },
    async run({ account, services, query, path, now_ms }) {
      const { db } = services.state
      const page = await voicePageOf({ query, path }, (window, limit) =>
        listQueues(db, account.project_id, window, limit),
      )
      if (isVoiceRefusal(page)) return page
      const { account_sid } = account
      const rows = await Promise.all(page.rows.map(row => shown(db, row, { account_sid, now_ms })))
      return { status: 200, body: { queues: rows, ...page.about } }
    },
  }),
  voiceRoute({
    method: 'POST',
    path: '/Queues',
    suffix: '.json',
    extended: true,
    summary: 'Create a queue; <Enqueue> makes one too',
    fields: { FriendlyName: `required, 1 to ${MAX_NAME} characters, unique`, MaxSize: '1 to 5000, default 100' },
    example: { FriendlyName: 'support', MaxSize: '20' },
    replies: { 201: Queue },
    async run(context) {
      const { form, account, now_ms } = context
      const friendly_name = form.text('FriendlyName')
      if (friendly_name === undefined || friendly_name.length > MAX_NAME)
        return numbered(20001, `FriendlyName is required and has at most ${MAX_NAME} characters.`)
      const max_size = sizeOf(form)
      if (isVoiceRefusal(max_size)) return max_size
      return changed(context, async asked => {
        const row = await createQueue(asked, { friendly_name, max_size })
        if (isRefusal(row)) return row
        return { status: 201 as const, body: await shown(asked.trx, row, { account_sid: account.account_sid, now_ms }) }
      })
    },
  }),
  voiceRoute({
    method: 'GET',
    path: ONE,
    suffix: '.json',
    extended: true,
    summary: 'Fetch a queue',
    replies: { 200: Queue },
    async run({ account: { project_id, account_sid }, services, params, now_ms }) {
      const { db } = services.state
      const row = await findQueue(db, project_id, params.queue_sid)
      if (!row) return unknownQueue(params.queue_sid)
      return { status: 200, body: await shown(db, row, { account_sid, now_ms }) }
    },
  }),
  voiceRoute({
    method: 'POST',
    path: ONE,
    suffix: '.json',
    extended: true,
    summary: 'Change how many callers a queue takes',
    fields: { MaxSize: 'required, 1 to 5000' },
    example: { MaxSize: '50' },
    replies: { 200: Queue },
    async run(context) {
      const { form, params, now_ms } = context
      const { project_id, account_sid } = context.account
      const max_size = sizeOf(form)
      if (isVoiceRefusal(max_size)) return max_size
      if (max_size === null) return numbered(20001, 'MaxSize is required.')
      return changed(context, async asked => {
        const row = await findQueue(asked.trx, project_id, params.queue_sid)
        if (!row) return unknownQueue(params.queue_sid)
        const saved = await resizeQueue(asked, row, max_size)
        if (isRefusal(saved)) return saved
        return { status: 200 as const, body: await shown(asked.trx, saved, { account_sid, now_ms }) }
      })
    },
  }),
  voiceRoute({
    method: 'DELETE',
    path: ONE,
    suffix: '.json',
    extended: true,
    summary: 'Delete a queue in which nobody waits',
    replies: { 204: null },
    async run(context) {
      const { account, params } = context
      return changed(context, async asked => {
        const row = await findQueue(asked.trx, account.project_id, params.queue_sid)
        if (!row) return unknownQueue(params.queue_sid)
        return (await removeQueue(asked, row)) ?? { status: 204 as const }
      })
    },
  }),
  voiceRoute({
    method: 'GET',
    path: MEMBERS,
    suffix: '.json',
    extended: true,
    summary: 'List the callers who wait in a queue, longest first',
    fields: { 'PageSize, Page': 'as in the list of calls' },
    replies: { 200: voicePageSchema('VoiceQueueMemberPage', 'queue_members', QueueMember) },
    async run({ account, services, params, query, path, now_ms }) {
      const { db } = services.state
      const row = await findQueue(db, account.project_id, params.queue_sid)
      if (!row) return unknownQueue(params.queue_sid)
      const page = await pageByText(BY_COMING, { query, path }, await membersOf({ db, now_ms }, row.sid))
      if (isVoiceRefusal(page)) return page
      const queue_members = page.rows.map(member => presentMember(member, account.account_sid))
      return { status: 200, body: { queue_members, ...page.about } }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: MEMBER,
    suffix: '.json',
    extended: true,
    summary: 'Fetch a caller who waits, by the sid of the call, or `Front`',
    replies: { 200: QueueMember },
    async run({ account, services, params, now_ms }) {
      const found = await findMember(services.state.db, account.project_id, params, now_ms)
      return isVoiceRefusal(found) ? found : { status: 200, body: presentMember(found, account.account_sid) }
    },
  }),
  voiceRoute({
    method: 'POST',
    path: MEMBER,
    suffix: '.json',
    extended: true,
    summary: 'Take a caller out of the queue; the call runs the document',
    fields: { Url: 'required, the document', Method: 'GET or POST' },
    example: { Url: 'https://app.example.com/next-agent' },
    replies: { 200: QueueMember },
    async run(context) {
      const { account, form, params, now_ms } = context
      const sound = soundIn(form, '')
      if (isVoiceRefusal(sound)) return sound
      if (sound === null) return numbered(21205, 'Url is required.')
      return changed(context, async asked => {
        const found = await findMember(asked.trx, account.project_id, params, now_ms)
        if (isVoiceRefusal(found)) return found
        await dequeue(asked, found, sound)
        return { status: 200 as const, body: presentMember(found, account.account_sid) }
      })
    },
  }),
]

async function findMember(
  db: Db | Trx,
  project_id: string,
  { queue_sid, member }: { readonly queue_sid: string; readonly member: string },
  now_ms: number,
): Promise<Member | VoiceRefusal> {
  const row = await findQueue(db, project_id, queue_sid)
  if (!row) return unknownQueue(queue_sid)
  const members = await membersOf({ db, now_ms }, queue_sid)
  const found = member === 'Front' ? members[0] : members.find(one => one.row.call_sid === member)
  return found ?? forReason('not_found', { value: `The member ${member} of the queue` })
}
