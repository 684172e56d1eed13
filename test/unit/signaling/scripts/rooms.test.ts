import { systemClock } from '../../../../core/runtime/clock.ts'
import { placeCall } from '../../../../core/state/calls/calls.ts'
import { expectParticipant, findRunningConference, openConference } from '../../../../core/state/calls/conferences.ts'
import type { State } from '../../../../core/state/index.ts'
import { registerNode, removeNode } from '../../../../core/state/nodes/nodes.ts'
import type { Event, JoinConference } from '../../../../markup/interpreter/types.ts'
import { MediaRefusal } from '../../../../media/protocol/client.ts'
import type { ScriptContext } from '../../../../signaling/scripts/context.ts'
import { controlRoom } from '../../../../signaling/scripts/room-control.ts'
import { Rooms } from '../../../../signaling/scripts/rooms.ts'
import type { Script } from '../../../../signaling/scripts/script.ts'
import type { ScriptServices } from '../../../../signaling/scripts/services.ts'
import type { WaitDocument } from '../../../../signaling/scripts/wait-document.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { addCarrier } from '../../../support/carriers.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

// The rooms of a node against a media worker that answers at once, or refuses.

const COMMAND: JoinConference = {
  type: 'join_conference',
  id: 'conference-1',
  name: 'hall',
  muted: false,
  beep: 'false',
  start_on_enter: true,
  end_on_exit: false,
  label: null,
  wait: 'silence',
  max_participants: 250,
  record: false,
  trim: false,
  coach: null,
  status_callback: null,
  recording_callback: null,
}

/** A script on a leg of one account. `refusal` is what the media worker says to its join. `joins` gets each of them. */
function script(n: number, refusal: Error | null = null, joins: object[] = []): Script {
  const request = (method: string, params: object) => {
    if (method === 'conference.join') joins.push(params)
    return refusal && method === 'conference.join' ? Promise.reject(refusal) : Promise.resolve({})
  }
  const log = { warn: () => undefined, debug: () => undefined }
  const facts = { account_sid: 'AC1', status: 'in-progress' }
  const call = { sid: `CA${n}`, facts, request: {}, clock: systemClock, log, persist: () => Promise.resolve() }
  const leg = { id: `leg-${n}`, ended: false, session: { hub: { request } } }
  return { host: { call, leg }, waiting: { stop: () => undefined, hear: () => undefined } } as unknown as Script
}

const nowhere = (): void => undefined

const turn = () => new Promise(resolve => setImmediate(resolve))

/** A node alone, whose storage is away: callers meet all the same. */
const aloneServices = (): ScriptServices =>
  ({
    ...{ node_id: 'node_1', config: { database_url: null }, clock: systemClock },
    state: { transaction: () => Promise.reject(new Error('away')) },
  }) as unknown as ScriptServices

t.test('a room holds 250; the next one is refused with its number and a sentence', async t => {
  const rooms = new Rooms(aloneServices())
  const told: Event[] = []
  for (let n = 1; n <= 251; n++) rooms.join(script(n), COMMAND, event => told.push(event), nowhere)
  await turn()
  t.equal(told.filter(({ type }) => type === 'conference_joined').length, 250)
  const left = told.filter(({ type }) => type === 'conference_left')
  t.match(left, [{ number: 16020, detail: 'the conference is full with 250' }])
})

t.test('a participant whom the media worker refuses learns why', async t => {
  const rooms = new Rooms(aloneServices())
  const told: Event[] = []
  const full = new MediaRefusal('conference_full', 'the conference is full with 250')
  rooms.join(script(1), COMMAND, () => undefined, nowhere)
  rooms.join(script(2, full), COMMAND, event => told.push(event), nowhere)
  await turn()
  t.match(told.at(-1), { type: 'conference_left', number: 16020, detail: /full with 250/ })
  const lost: Event[] = []
  rooms.join(script(3, new MediaRefusal('media_unavailable', 'gone')), COMMAND, event => lost.push(event), nowhere)
  await turn()
  t.match(lost.at(-1), { type: 'conference_left', number: null })
})

t.test('the coached participant alone hears the coach, and without that participant nobody does', async t => {
  const rooms = new Rooms(aloneServices())
  const joins: object[] = []
  const [customer, agent, coach] = [script(1), script(2), script(3, null, joins)]
  const enter = (who: Script, command = COMMAND) => rooms.join(who, command, () => undefined, nowhere)
  for (const who of [customer, agent]) enter(who)
  await turn()
  enter(coach, { ...COMMAND, coach: 'CA2' })
  await turn()
  t.match(joins.at(-1), { muted: false, heard_by: 'leg-2' })
  rooms.leave(agent)
  const [sid = ''] = joins.map(params => ('conference_id' in params ? String(params.conference_id) : ''))
  const unmute = { act: 'change', conference_sid: sid, call_sid: 'CA3', muted: false } as const
  t.equal(controlRoom({ rooms } as unknown as ScriptContext, unmute), 'done')
  t.match(joins.at(-1), { muted: true }, 'the customer does not hear it')
  enter(agent)
  await turn()
  t.match(joins.at(-1), { muted: false, heard_by: 'leg-2' }, 'the agent has come back')
})

t.test('a beep ends neither the music of who is on hold nor an announcement', async t => {
  const rooms = new Rooms(aloneServices())
  const beeped: unknown[] = []
  const heard: WaitDocument[] = []
  let sid = ''
  const enter = async (n: number, beep: JoinConference['beep'] = 'false'): Promise<Script> => {
    const who = script(n)
    const request = (method: string, params: { leg_id: string }) => {
      if (method === 'play.start') beeped.push(params.leg_id)
      return Promise.resolve({})
    }
    Object.assign(who.host.leg.session.hub, { request })
    Object.assign(who.host.call, { parameters: () => ({}) })
    Object.assign(who.waiting, { run: (document: WaitDocument) => heard.push(document) })
    const told = (event: Event) => {
      if (event.type === 'conference_joined') sid = event.conference_sid
    }
    rooms.join(who, { ...COMMAND, beep }, told, nowhere)
    await turn()
    return who
  }
  const reply = { ok: true, status: 200, redirects: 0, headers: { 'content-type': 'audio/wav' }, body: Buffer.of() }
  const ctx = {
    ...{
      rooms,
      authToken: () => 'token',
      sounds: { isOwn: () => false },
      config: { base_url: 'https://ours.example' },
    },
    voice: { send: () => Promise.resolve(reply) },
  } as unknown as ScriptContext
  const sound = { url: 'https://app.example/notice.wav', method: 'GET' } as const
  const control = async (command: { act: 'change'; hold: boolean } | { act: 'announce' }, call_sid: string) => {
    const about = { conference_sid: sid, call_sid }
    const whole = command.act === 'change' ? { ...about, ...command } : { ...about, ...command, sound }
    t.equal(controlRoom(ctx, whole), 'done')
    await turn()
  }
  for (const n of [1, 2, 3]) await enter(n)
  await control({ act: 'change', hold: true }, 'CA1')
  await control({ act: 'announce' }, 'CA2')
  t.equal(heard.length, 1, 'the announcement is played')
  const late = await enter(4, 'true')
  t.same(beeped.splice(0), ['leg-3'], 'to who hears the others')
  heard[0]?.done('finished')
  await control({ act: 'change', hold: false }, 'CA1')
  rooms.leave(late)
  t.same(beeped.splice(0), ['leg-1', 'leg-2', 'leg-3'], 'afterwards to all')
  await control({ act: 'announce' }, 'CA2')
  heard[1]?.replaced?.()
  await enter(5, 'onEnter')
  t.same(beeped, ['leg-1', 'leg-2', 'leg-3'], 'and when something else has replaced the announcement')
})

t.test(
  'machines that share a state have each conference once, and who comes to the other machine is sent to it',
  async t => {
    const w = await admissionWorld()
    t.teardown(() => w.close())
    const { state } = w
    const node = async (id: string, ahead_ms = 0) => {
      const known = { id, kind: 'signaling', machine_id: `mac_${id}`, boot_id: 'boot', pid: 1 } as const
      await registerNode(state.db, known, systemClock.now())
      const clock = { ...systemClock, now: () => systemClock.now() + ahead_ms }
      const rooms = new Rooms({
        node_id: id,
        state,
        clock,
        bus: { ring: () => undefined },
        config: { database_url: 'shared' },
      } as unknown as ScriptServices)
      return {
        rooms,
        /** Resolves with what the caller hears of its conference first. */
        join: (who: Script, name = 'hall') =>
          new Promise<Event | { readonly type: 'sent'; readonly machine_id: string }>(resolve =>
            rooms.join(who, { ...COMMAND, name }, resolve, machine_id => resolve({ type: 'sent', machine_id })),
          ),
      }
    }
    let serial = 0
    const caller = (project_id = w.project_id): Script => {
      const made = script(++serial)
      const persist = (work: Parameters<State['transaction']>[0]) => state.transaction(work)
      Object.assign(made.host.call, { project_id, persist })
      Object.assign(made.host.call.facts, { account_sid: `AC ${project_id}` })
      return made
    }
    const [a, b] = [await node('node_a'), await node('node_b')]
    const first = caller()
    t.match(await a.join(first), { type: 'conference_joined' })
    t.match(await b.join(caller()), { type: 'sent', machine_id: 'mac_node_a' })
    t.match(await a.join(caller()), { type: 'conference_joined' }, 'more callers of its machine join')
    t.match(await b.join(caller(), 'garden'), { type: 'conference_joined' }, 'another name')
    t.match(await b.join(caller('prj_other')), { type: 'conference_joined' }, 'the same name of another customer')

    const both = await Promise.all([a.join(caller(), 'race'), b.join(caller(), 'race')])
    t.same(both.map(({ type }) => type).sort(), ['conference_joined', 'sent'], 'at both at once')
    const together = await Promise.all([a.join(caller(), 'pair'), a.join(caller(), 'pair')])
    t.equal(new Set(together.map(event => 'conference_sid' in event && event.conference_sid)).size, 1, 'one room')

    const hasty = caller()
    const gone = a.join(hasty, 'brief')
    a.rooms.leave(hasty)
    t.match(await gone, { type: 'conference_left', number: null }, 'who hangs up at once')
    await until('the name is free', async () => (await b.join(caller(), 'brief')).type === 'conference_joined')

    const target = { sip_uri: 'sip:192.0.2.9', transport: 'udp', priority: 1, weight: 1 } as const
    const routes = [{ prefix: '', priority: 1, cost_minor: 0 }]
    const carrier = { name: 'Telco', codecs: ['PCMU' as const], sources: [], targets: [target], routes }
    await addCarrier(state, carrier, '2026-01-01T00:00:00.000Z')
    const { sid } = await state.db
      .selectFrom('conference')
      .select('sid')
      .where('friendly_name', '=', 'hall')
      .where('node_id', '=', 'node_a')
      .executeTakeFirstOrThrow()
    const queued = async () => {
      const call_sid = `CA-for-${++serial}`
      const placed = await placeCall(state.db, {
        ...{ sid: call_sid, project_id: w.project_id, account_sid: 'AC', from_number: '+2342010000001' },
        ...{ to_number: '+2348031234567', caller_id: null, number_id: 'num_1', application_id: null },
        ...{ now_ms: systemClock.now(), request: '{}', conference_sid: sid },
      })
      return 'row' in placed ? placed.row.node_id : placed
    }
    t.equal(await queued(), 'node_a', 'a call that the API makes for a conference belongs to its node')
    await state.transaction(trx => removeNode(trx, 'node_a'))
    t.equal(await queued(), null, 'and to any, when that node is gone')
    t.match(await b.join(caller()), { type: 'conference_joined' }, 'the name is free then')
  },
)

for (const database_url of [null, 'shared'])
  t.test(`a conference that the API has begun is the one that callers join, ${database_url ?? 'alone'}`, async t => {
    const w = await admissionWorld()
    t.teardown(() => w.close())
    const { state, project_id } = w
    await registerNode(
      state.db,
      { id: 'node_a', kind: 'signaling', machine_id: 'mac_a', boot_id: 'boot', pid: 1 },
      systemClock.now(),
    )
    const rooms = new Rooms({
      ...{ node_id: 'node_a', state, clock: systemClock, bus: { ring: () => undefined }, config: { database_url } },
    } as unknown as ScriptServices)
    let written: Promise<unknown> = Promise.resolve()
    const join = (n: number, name: string): Promise<Event> => {
      const made = script(n)
      const persist = (work: Parameters<State['transaction']>[0]) => {
        written = state.transaction(work)
        return written
      }
      Object.assign(made.host.call, { project_id, persist })
      return new Promise(resolve => rooms.join(made, { ...COMMAND, name }, resolve, nowhere))
    }
    const target = { sip_uri: 'sip:192.0.2.9', transport: 'udp', priority: 1, weight: 1 } as const
    const routes = [{ prefix: '', priority: 1, cost_minor: 0 }]
    await addCarrier(
      state,
      { name: 'Telco', codecs: ['PCMU' as const], sources: [], targets: [target], routes },
      '2026-01-01T00:00:00.000Z',
    )
    const told = `CF${'5'.repeat(32)}`
    await state.transaction(async trx => {
      const placed = await placeCall(trx, {
        ...{ sid: 'CA-guest', project_id, account_sid: 'AC1', from_number: '+2342010000001' },
        ...{ to_number: '+2348031234567', caller_id: null, number_id: 'num_1', application_id: null },
        ...{ now_ms: systemClock.now(), request: '{}', conference_sid: told },
      })
      if (!('row' in placed)) throw new Error(JSON.stringify(placed))
      const about = { sid: told, project_id, account_sid: 'AC1', friendly_name: 'hall', node_id: null }
      await openConference(trx, about, systemClock.now())
      const coming = { conference_sid: told, call_sid: 'CA-guest', project_id, label: null, coached_call_sid: null }
      const how = { muted: 0, start_on_enter: 1, end_on_exit: 0, joined_at: null } as const
      await expectParticipant(trx, { ...coming, ...how }, systemClock.now())
    })
    t.match(await join(1, 'hall'), { type: 'conference_joined', conference_sid: told }, 'a caller by name')
    t.match(await join(2, 'garden'), { type: 'conference_joined', conference_sid: /^CF/ })
    await written
    const find = (name: string) => findRunningConference(state.db, project_id, name, systemClock.now())
    t.match(await find('hall'), { sid: told, node_id: 'node_a' })
    const garden = await join(3, 'garden')
    t.match(await find('garden'), { sid: 'conference_sid' in garden ? garden.conference_sid : null })
  })
