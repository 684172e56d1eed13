import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { addParticipant, callsOnTheirWay, openConference } from '../../../../core/state/calls/conferences.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { checkDocument } from '../../../../markup/check.ts'
import { standingClock } from '../../../support/clock.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'

// The API adds a call to a conference by name while a node begins a conference of that name.

const w = await controlPlane(t, { clock: standingClock() })
const { state, clock, demo } = w
const { project_id, account_sid } = demo
await state.db.updateTable('voice_account').set({ voice_api: 'extended' }).execute()
await putSandboxCarrier(state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(clock.now()) })

const FORM = { From: demo.numbers[0] ?? '', To: '+2348030000001' }
const add = (name: string, more: object = {}) =>
  w.voice('POST', `/Conferences/${name}/Participants.json`, { ...FORM, ...more })

/** A node begins a conference. */
async function begin(friendly_name: string): Promise<string> {
  const sid = newId.conference()
  const about = { sid, project_id, account_sid, friendly_name, node_id: 'node_1' }
  await state.transaction(trx => openConference(trx, about, clock.now()))
  return sid
}

t.test('a call that joins another conference the moment it is placed is not on its way any more', async t => {
  const room = await begin('board')
  let joined = 0
  /** The node, which sees a call when it is committed, and whose call joins at once. */
  const joinPlaced = async (): Promise<void> => {
    const calls = await state.db.selectFrom('call').select('sid').execute()
    const here = await state.db
      .selectFrom('conference_participant')
      .select('call_sid')
      .where('joined_at', 'is not', null)
      .execute()
    for (const { sid: call_sid } of calls) {
      if (here.some(one => one.call_sid === call_sid)) continue
      joined++
      const about = { conference_sid: room, call_sid, project_id, label: null, coached_call_sid: null }
      const how = { muted: 0, start_on_enter: 1, end_on_exit: 0, joined_at: iso(clock.now()) } as const
      await transaction(trx => addParticipant(trx, { ...about, ...how }, clock.now()))
    }
  }
  const { transaction } = state
  const between: typeof transaction = async work => {
    await joinPlaced()
    return transaction(work)
  }
  Object.assign(state, { transaction: between })
  t.teardown(() => Object.assign(state, { transaction }))
  const { status } = await add('elsewhere')
  t.equal(status, 201)
  await joinPlaced()
  t.equal(joined, 1)
  t.same(await callsOnTheirWay(state.db as never, project_id, 'elsewhere'), [])
})

t.test('the answer names the conference that a node has just begun, before anybody is in it', async t => {
  const sid = await begin('hall')
  t.match(await add('hall'), { status: 201, body: { conference_sid: sid } })
  const [first, second] = await Promise.all([add('new'), add('new')])
  t.match(first, { status: 201, body: { conference_sid: /^CF/ } })
  t.equal(second.body.conference_sid, first.body.conference_sid, 'two at once begin one conference')
})

t.test('a refused call begins no conference', async t => {
  t.match(await add('void', { To: 'nobody' }), { status: 400, body: { code: 21211 } })
  t.match(await add('void', { Label: 'a/b' }), { status: 400, body: { code: 16024 } })
  for (const field of [
    'WaitUrl',
    'ConferenceStatusCallback',
    'ConferenceRecordingStatusCallback',
    'AmdStatusCallback',
  ]) {
    const about = { code: 21205, message: new RegExp(`^${field} is not an absolute`) }
    t.match(await add('void', { [field]: 'example.com/x' }), { status: 400, body: about })
  }
  t.same(await state.db.selectFrom('conference').select('sid').where('friendly_name', '=', 'void').execute(), [])
})

t.test(
  'a repeated request gets the answer of its first one, although its label is in use and its room has ended',
  async t => {
    const headers = { 'Idempotency-Key': newId.uuid() }
    const form = { ...FORM, Label: 'guest' }
    const post = (more = {}) => w.voice('POST', '/Conferences/twice/Participants.json', { ...form, ...more }, headers)
    const placed = () => state.db.selectFrom('call').select('sid').execute()
    const first = await post()
    t.match(first, { status: 201 })
    const calls = await placed()
    t.same((await post()).body, first.body)
    await state.db
      .updateTable('conference')
      .set({ ended_at: iso(clock.now()) })
      .execute()
    t.same((await post()).body, first.body)
    t.same(await placed(), calls, 'it places no second call')
    const rooms = await state.db.selectFrom('conference').select('sid').where('friendly_name', '=', 'twice').execute()
    t.same(rooms, [{ sid: first.body.conference_sid }], 'and begins no second room')
    t.match(
      await post({ Label: 'other' }),
      { status: 400, body: { message: /Idempotency-Key/ } },
      'another request under this key is refused',
    )
  },
)

t.test('values that the conference would not take are refused, and those that it takes reach its document', async t => {
  const rooms = () => state.db.selectFrom('conference').select('sid').execute()
  const before = await rooms()
  const odd = {
    ...{ EndConferenceOnExit: 'yes', StartConferenceOnEnter: '?', Muted: 'on', Coaching: 'x', ConferenceTrim: 'x' },
    ...{ ConferenceRecord: 'stereo', Beep: 'loud', MaxParticipants: '1', Record: 'yes' },
  }
  for (const [name, value] of Object.entries(odd)) {
    const refused = { code: 20001, message: new RegExp(`^${name} `) }
    t.match(await add('odd', { [name]: value }), { status: 400, body: refused }, name)
  }
  t.same(await rooms(), before)
  const { status, body } = await add('even', {
    ...{ EndConferenceOnExit: 'False', Muted: '1', ConferenceTrim: 'Do-Not-Trim', ConferenceRecord: 'true' },
    ...{ Beep: 'onenter', MaxParticipants: '250' },
  })
  t.match({ status, body }, { status: 201, body: { end_conference_on_exit: false, muted: true } })
  const { request } = await state.db
    .selectFrom('call')
    .select('request')
    .where('sid', '=', body.call_sid)
    .executeTakeFirstOrThrow()
  const { markup } = JSON.parse(request ?? '')
  t.match(markup, / trim="do-not-trim"/)
  t.same(checkDocument(markup).advice, [])

  const member = `/Conferences/${body.conference_sid}/Participants`
  for (const name of ['Muted', 'Hold', 'Coaching', 'EndConferenceOnExit', 'BeepOnExit'])
    t.match(await w.voice('POST', `${member}/${body.call_sid}.json`, { [name]: 'on' }), { body: { code: 20001 } }, name)
  for (const name of ['Muted', 'Hold', 'Coaching'])
    t.match(await w.voice('GET', `${member}.json?${name}=on`), { body: { code: 20001 } }, name)
})
