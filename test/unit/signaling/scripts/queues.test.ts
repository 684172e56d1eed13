import type { Event } from '../../../../markup/interpreter/types.ts'
import { Queues } from '../../../../signaling/scripts/queues.ts'
import type { SharedScript } from '../../../../signaling/scripts/shared-script.ts'
import type { WaitDocument } from '../../../../signaling/scripts/wait-document.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import t from '../../../support/harness/index.ts'

// The queues of a node whose storage is away: callers meet all the same.

const WHISPER = { url: 'https://app.example.test/whisper', method: 'POST' } as const
const ENQUEUE = { type: 'enqueue', id: 'queue-1', name: 'help', max_size: null, wait: null } as const
const DEQUEUE = { type: 'dequeue', id: 'dequeue-1', name: 'help', whisper: WHISPER } as const

const nowhere = (): void => undefined
const turn = () => new Promise(resolve => setImmediate(resolve))

/** Queues with a caller who hears the whisper of an agent. `told` has their events, and the media worker's requests. */
async function whispered() {
  const told: string[] = []
  const queues = new Queues({ config: { database_url: null }, state: {}, node_id: 'node_1' } as never)
  const clock = new ManualClock()
  let whisper: WaitDocument | null = null
  const script = (sid: string): SharedScript => {
    const request = async (method: string) => void told.push(`${sid} ${method}`)
    const leg = { id: `leg-${sid}`, ended: false, session: { hub: { request } } }
    const log = { debug: nowhere, warn: nowhere }
    const end = () => queues.leave(made, 'hangup')
    const call = { sid, project_id: 'prj_1', facts: { account_sid: 'AC1' }, clock, log, persist: async () => {}, end }
    const waiting = {
      ...{ hear: nowhere, stop: nowhere },
      run: (document: WaitDocument) => {
        whisper = document
      },
    }
    const made = { host: { call, leg }, waiting } as unknown as SharedScript
    return made
  }
  const emit = (sid: string) => (event: Event) => {
    told.push(`${sid} ${event.type}${'result' in event ? ` ${String(event.result)}` : ''}`)
  }
  queues.enqueue(script('caller'), ENQUEUE, emit('caller'), nowhere)
  await turn()
  queues.dequeue(script('agent'), DEQUEUE, emit('agent'), nowhere)
  await turn()
  t.same(told.splice(0), ['caller queue_joined', 'agent dequeue_found'])
  const heard = whisper as WaitDocument | null
  return { told, over: async (outcome: Parameters<WaitDocument['done']>[0]) => heard?.done(outcome), queues }
}

t.test('when a whisper hangs up, the call of the caller ends and the agent talks with no caller', async t => {
  const { told, over, queues } = await whispered()
  await over('hangup')
  await turn()
  t.notOk(told.includes('caller conference.join'))
  t.same(
    told.filter(one => !one.endsWith('conference.leave')),
    ['caller queue_left hangup', 'agent dequeue_ended queue-empty'],
  )
  t.equal(queues.waiting, 0)
})

t.test(
  'when a whisper cannot be fetched, the caller keeps its place and the Dial of the agent reports an error',
  async t => {
    const { told, over, queues } = await whispered()
    await over('failed')
    await turn()
    t.notOk(told.some(one => one.endsWith('conference.join')))
    t.same(
      told.filter(one => !one.endsWith('conference.leave')),
      ['agent dequeue_ended error'],
    )
    t.equal(queues.waiting, 1, 'the caller waits in its place')
  },
)

t.test('the end of a whisper joins the caller and the agent', async t => {
  const { told, over } = await whispered()
  await over('finished')
  await turn()
  t.same(told, ['caller conference.join', 'agent conference.join', 'caller queue_bridged', 'agent dequeue_bridged'])
})
