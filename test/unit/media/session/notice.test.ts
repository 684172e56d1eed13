import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { type Clock, systemClock } from '../../../../core/runtime/clock.ts'
import { Notice } from '../../../../media/session/notice.ts'
import t from '../../../support/harness/index.ts'
import { startTestWorker } from '../../../support/media-worker.ts'

/** The warning tone of those who listen. */
const TONE_HZ = 1400

t.test(
  'a sentence is spoken once to each party: at the beginning, when one comes, and when one was forgotten',
  async t => {
    const party = () => {
      const heard: Int16Array[] = []
      return { heard, announce: (samples: Int16Array) => void heard.push(samples) }
    }
    const [caller, called, later] = [party(), party(), party()]
    const parties = new Set([caller, called])
    const sentence = { kind: 'pcm', samples: new Int16Array(800), rate_hz: 8000 } as const
    const notice = new Notice([sentence], () => parties)
    notice.begin(systemClock)
    parties.add(later)
    notice.tellNewcomers()
    notice.tellNewcomers()
    t.same(
      [caller, called, later].map(({ heard }) => heard.length),
      [1, 1, 1],
    )
    notice.forget(called)
    notice.tellNewcomers()
    notice.end()
    t.same(
      [caller, called, later].map(({ heard }) => heard.length),
      [1, 2, 1],
      'who may have rung in early media is told again, and nobody else',
    )
    t.equal(later.heard[0], sentence.samples)
  },
)

t.test('a party that joins while somebody listens hears the notice, in a conference and by a bridge', async t => {
  const ears = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(ears, 'listening')
  t.teardown(() => ears.close())
  const { port } = ears.address() as AddressInfo
  // The tone is never repeated. A party that hears it heard it because it joined.
  const clock: Clock = {
    ...systemClock,
    every: (ms, work) => (ms === 15_000 ? systemClock.after(2 ** 30, () => undefined) : systemClock.every(ms, work)),
  }
  const w = await startTestWorker({ listeners_url: `ws://127.0.0.1:${port}`, clock })
  t.teardown(() => w.stop())
  const leg = async (session_id?: string) => {
    const peer = await w.peer()
    const { leg_id } = await w.answeredLeg(session_id ?? (await w.session()), peer)
    return { peer, leg_id }
  }
  const join = ({ leg_id }: { leg_id: string }) =>
    w.client.request('conference.join', { conference_id: 'CF-heard', leg_id, muted: false, deaf: false })
  const session_id = await w.session()
  const first = await leg(session_id)
  await join(first)
  const about = { listener_id: 'lsn_1', token: 'its token', account_sid: 'AC1', call_sid: 'CA1', spoken: null }
  await w.client.request('listen.start', { leg_id: first.leg_id, ...about })
  await first.peer.heard(TONE_HZ)
  const second = await leg()
  await join(second)
  await second.peer.heard(TONE_HZ)

  await w.client.request('conference.leave', { leg_id: first.leg_id })
  const third = await leg(session_id)
  await w.client.request('bridge', { a: first.leg_id, b: third.leg_id })
  await third.peer.heard(TONE_HZ)
})
