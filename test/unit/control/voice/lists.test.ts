import { iso } from '../../../../core/runtime/clock.ts'
import { addMember, ensureQueue, removeMember } from '../../../../core/state/calls/queues.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { standingClock } from '../../../support/clock.ts'
import { controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'

// A client that follows the pages of a list sees every row, although each page's rows go before it asks for the next.

const w = await controlPlane(t, { clock: standingClock() })
const { state, clock, demo } = w
const { db } = state
const { project_id } = demo
const now = iso(clock.now())
await db.updateTable('voice_account').set({ voice_api: 'extended' }).execute()
await putSandboxCarrier(state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now })

const participants: string[] = []
for (let at = 0; at < 5; at++) {
  const form = { From: demo.numbers[0] ?? '', To: `+234803000000${at}` }
  participants.push((await w.voice('POST', '/Conferences/hall/Participants.json', form)).body.call_sid)
}
const queue = await state.transaction(async trx => {
  const row = await ensureQueue(trx, { project_id, friendly_name: 'support', max_size: null }, clock.now())
  for (const sid of participants) await addMember(trx, row, sid, clock.now())
  return row
})
for (const name of ['b', 'a b', 'a', 'é', 'a', 'Z']) {
  const body = { name, voice_method: 'POST', voice_url: 'https://app.example.com/voice' }
  await w.ask('POST', '/v1/voice/applications', { body, headers: { 'Idempotency-Key': freshKey() } })
}
const conference = await db.selectFrom('conference').select('sid').executeTakeFirstOrThrow()

interface List {
  readonly path: string
  readonly key: string
  readonly id: string
  remove(id: string): Promise<unknown>
}

const left = (changes: object) => (call_sid: string) =>
  db.updateTable('conference_participant').set(changes).where('call_sid', '=', call_sid).execute()

const LISTS: Readonly<Record<string, List>> = {
  'callers who wait': {
    ...{ path: `/Queues/${queue.sid}/Members.json`, key: 'queue_members', id: 'call_sid' },
    remove: sid => removeMember(db, sid),
  },
  'participants that match a filter': {
    ...{ path: `/Conferences/${conference.sid}/Participants.json?Muted=false`, key: 'participants', id: 'call_sid' },
    remove: left({ muted: 1 }),
  },
  participants: {
    ...{ path: `/Conferences/${conference.sid}/Participants.json`, key: 'participants', id: 'call_sid' },
    remove: left({ left_at: now }),
  },
  applications: {
    ...{ path: '/Applications.json', key: 'applications', id: 'sid' },
    remove: id => db.updateTable('voice_application').set({ deleted_at: now }).where('id', '=', id).execute(),
  },
  numbers: {
    ...{ path: '/IncomingPhoneNumbers.json', key: 'incoming_phone_numbers', id: 'sid' },
    remove: id => db.updateTable('number').set({ status: 'quarantined' }).where('id', '=', id).execute(),
  },
}

for (const [name, { path, key, id, remove }] of Object.entries(LISTS))
  t.test(`the pages of ${name} together have every row, also when rows are deleted between them`, async t => {
    const join = path.includes('?') ? '&' : '?'
    const page = async (uri: string) => {
      const { body } = await w.voice('GET', uri)
      const ids: string[] = body[key].map((row: Readonly<Record<string, string>>) => row[id])
      return { ids, next: body.next_page_uri, previous: body.previous_page_uri }
    }
    const { ids: all } = await page(path)
    t.ok(all.length >= 5)
    const first = await page(`${path}${join}PageSize=2`)
    const second = await page(first.next)
    t.same([...first.ids, ...second.ids], all.slice(0, 4))
    t.same((await page(second.previous)).ids, first.ids)
    t.same((await page(`${path}${join}PageSize=2&Page=1`)).ids, second.ids, 'a page without a token')
    t.match(await w.voice('GET', `${path}${join}PageToken=PA!`), { status: 400, body: { code: 21481 } })

    const removed: string[] = []
    for (let uri = `${path}${join}PageSize=2`; uri; ) {
      const { ids, next } = await page(uri)
      for (const one of ids) await remove(one)
      removed.push(...ids)
      uri = next
    }
    t.same(removed, all)
    t.same((await page(path)).ids, [])
  })
