import { systemClock } from '../../../../core/runtime/clock.ts'
import type { Event, JoinConference } from '../../../../markup/interpreter/types.ts'
import { MediaRefusal } from '../../../../media/protocol/client.ts'
import { Rooms } from '../../../../signaling/scripts/rooms.ts'
import type { Script } from '../../../../signaling/scripts/script.ts'
import type { ScriptServices } from '../../../../signaling/scripts/services.ts'
import t from '../../../support/harness/index.ts'

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

/** A script on a leg of one account. `refusal` is what the media worker says to its join. */
function script(n: number, refusal: Error | null = null): Script {
  const request = (method: string) =>
    refusal && method === 'conference.join' ? Promise.reject(refusal) : Promise.resolve({})
  const log = { warn: () => undefined, debug: () => undefined }
  const facts = { account_sid: 'AC1', status: 'in-progress' }
  const call = { sid: `CA${n}`, facts, request: {}, clock: systemClock, log, persist: () => Promise.resolve() }
  const leg = { id: `leg-${n}`, ended: false, session: { hub: { request } } }
  return { host: { call, leg }, waiting: { stop: () => undefined, hear: () => undefined } } as unknown as Script
}

const turn = () => new Promise(resolve => setImmediate(resolve))

t.test('a room holds 250; the next one is refused with its number and a sentence', async t => {
  const rooms = new Rooms({ node_id: 'node_1' } as ScriptServices)
  const told: Event[] = []
  for (let n = 1; n <= 251; n++) rooms.join(script(n), COMMAND, event => told.push(event))
  await turn()
  t.equal(told.filter(({ type }) => type === 'conference_joined').length, 250)
  const left = told.filter(({ type }) => type === 'conference_left')
  t.match(left, [{ number: 16020, detail: 'the conference is full with 250' }])
})

t.test('a participant whom the media worker refuses learns why', async t => {
  const rooms = new Rooms({ node_id: 'node_1' } as ScriptServices)
  const told: Event[] = []
  const full = new MediaRefusal('conference_full', 'the conference is full with 250')
  rooms.join(script(1), COMMAND, () => undefined)
  rooms.join(script(2, full), COMMAND, event => told.push(event))
  await turn()
  t.match(told.at(-1), { type: 'conference_left', number: 16020, detail: /full with 250/ })
  const lost: Event[] = []
  rooms.join(script(3, new MediaRefusal('media_unavailable', 'gone')), COMMAND, event => lost.push(event))
  await turn()
  t.match(lost.at(-1), { type: 'conference_left', number: null })
})
