import { Guests } from '../../../../../signaling/scripts/away/guests.ts'
import { type KeeperNote, PRESENT_MS, readNote, type VisitorNote } from '../../../../../signaling/scripts/away/notes.ts'
import { Visits } from '../../../../../signaling/scripts/away/visits.ts'
import { Queues } from '../../../../../signaling/scripts/queues.ts'
import type { RunningScript } from '../../../../../signaling/scripts/running-script.ts'
import type { WaitDocument } from '../../../../../signaling/scripts/wait-document.ts'
import { ManualClock } from '../../../../fuzz/edge/manual-clock.ts'
import t from '../../../../support/harness/index.ts'

// Calls of one node in a queue that the node of another machine keeps.

const nowhere = (): void => undefined
const turn = () => new Promise(resolve => setImmediate(resolve))
const log = { debug: nowhere, info: nowhere, warn: nowhere, error: nowhere, child: (): unknown => log }
const STAY = { type: 'enqueue', id: 'queue-1', name: 'help', max_size: null } as const

/** Two nodes with a link. `call` makes a call of the visiting one, with what it hears. */
function nodes() {
  const clock = new ManualClock()
  const hub = { request: async () => ({ sdp: 'v=0' }) }
  const session = { hub, openLeg: async () => undefined, closeLeg: async () => null, release: async () => undefined }
  const rows: Record<string, object> = {
    call: {
      ...{ project_id: 'prj_1', account_sid: 'AC1', request: '{}', ended_at: null, node_id: 'node_v' },
      ...{ from_number: 'sip:alice@example.test', to_number: 'sip:help@example.test' },
    },
    node: { machine_id: 'visitor' },
  }
  const found = (table: string) => ({ where: () => ({ executeTakeFirst: async () => rows[table] }) })
  const db = { selectFrom: (table: string) => ({ selectAll: () => found(table) }) }
  const state = { db, transaction: async () => undefined }
  const media = { onDown: nowhere, open: async () => session, request: async () => ({ sdp: 'v=0' }) }
  const queues = new Queues({ config: { database_url: null }, state, node_id: 'node_k' } as never)
  const to = (hear: (note: VisitorNote | KeeperNote) => void) => ({
    send: (_machine_id: string, text: string) => {
      const note = readNote(text)
      if (note) hear(note)
    },
  })
  const away = { enqueue: (...of: [unknown, unknown, unknown, (keeper: string) => void]) => of[3]('keeper') }
  const visits: Visits = new Visits(
    { clock, log, rooms: {}, queues: away, linked: true } as never,
    to(note => guests.hear('visitor', note)) as never,
  )
  const guests = new Guests(
    { clock, log, state, media, bus: { ring: nowhere } } as never,
    { rooms: { leave: nowhere }, queues, recordings: new Map(), control: () => '' } as never,
    to(note => visits.hear('keeper', note)) as never,
  )
  t.teardown(() => {
    visits.stop()
    guests.stop()
  })
  const call = (sid: string) => {
    const documents: WaitDocument[] = []
    const facts = { status: 'in-progress' }
    const host = { call: { sid, log, facts }, leg: { id: sid, codec: 'PCMU', ended: false, session } }
    const waiting = { hear: nowhere, stop: nowhere, run: (document: WaitDocument) => void documents.push(document) }
    return { script: { host, waiting } as unknown as RunningScript, documents }
  }
  return { clock, visits, call }
}

t.test("the wait document of a call learns its place in another machine's queue while it runs", async t => {
  const { clock, visits, call } = nodes()
  const wait = { url: 'https://app.example.test/wait', method: 'POST' } as const
  const [first, second] = [call('CA1'), call('CA2')]
  for (const { script, documents } of [first, second]) {
    visits.enter(script, { ...STAY, wait }, nowhere)
    while (documents.length === 0) await turn()
  }
  const [document] = second.documents
  t.match(document?.parameters(), { QueuePosition: '2', QueueTime: '0', CurrentQueueSize: '2' })
  visits.leave(first.script, 'hangup')
  clock.advance(PRESENT_MS)
  t.match(document?.parameters(), { QueuePosition: '1', QueueTime: '2', CurrentQueueSize: '1', AvgQueueTime: '2' })
  t.equal(second.documents.length, 1, 'the same document')
})
