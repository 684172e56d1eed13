import { statSync } from 'node:fs'
import { join } from 'node:path'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import type { ProcessName } from '../support/world.ts'

// Any of the four processes may be killed at any moment: the others continue, it restarts, and nothing stays half-done.

/** A far end that answers and plays a tone. */
const TONE = '+2348030004711'
const TALKS = '+2348030000008'
const MARKUP = '<Response><Pause length="600"/></Response>'

t.test('kill -9 of a process during a call', async t => {
  const w = await sharedWorld(t)
  const create = async (InlineMarkup: string, form: Record<string, string> = {}): Promise<string> => {
    const From = w.numbers[0] ?? ''
    const { status, body } = await w.voice('POST', '/Calls.json', { From, To: TALKS, InlineMarkup, ...form })
    if (status !== 201) throw new Error(`create: ${status} ${JSON.stringify(body)}`)
    return body.sid
  }
  const ready = () =>
    until('the platform is ready', async () => (await fetch(`${w.base_url}/readyz`).catch(() => null))?.ok)
  const status = async (sid: string): Promise<string> => (await w.voice('GET', `/Calls/${sid}.json`)).body.status
  const cdr = (sid: string) => w.state.db.selectFrom('cdr').selectAll().where('call_sid', '=', sid).executeTakeFirst()

  const victims: ProcessName[] = ['media', 'edge', 'signaling']
  for (const victim of victims) {
    t.test(`${victim}: the call ends with a CDR, and a new call works`, async t => {
      await ready()
      const others = [...victims, 'control' as const].filter(name => name !== victim).map(name => [name, w.pid(name)])
      const sid = await create(MARKUP)
      await until('the call talks', async () => (await status(sid)) === 'in-progress')
      const killed_at = performance.now()
      await w.kill(victim)
      t.comment(`started again after ${Math.round(performance.now() - killed_at)} ms`)
      const record = await until('the CDR', () => cdr(sid))
      t.match(record, { status: 'completed', reason: 'node_lost' })
      for (const [name, pid] of others) t.equal(w.pid(name as ProcessName), pid, `${name} lives on`)
      await ready()
      const next = await create('<Response><Pause length="1"/></Response>')
      t.equal((await w.ended(next)).status, 'completed')
    })
  }

  t.test('media: the next worker finishes an interrupted recording and sends its callback', async t => {
    await ready()
    const web = await webServer(t, { '/recorded': { status: 204 } })
    const sid = await create(`<Response><Record recordingStatusCallback="${web.url}/recorded"/></Response>`, {
      To: TONE,
    })
    const row = () => w.state.db.selectFrom('recording').selectAll().where('call_sid', '=', sid).executeTakeFirst()
    const written = async (): Promise<boolean> => {
      const file = (await row())?.file
      return file !== undefined && (statSync(join(w.data_dir, file), { throwIfNoEntry: false })?.size ?? 0) > 40_000
    }
    await until('some seconds are written', written)
    await w.kill('media')
    const finished = await until('it is finished', async () => {
      const now = await row()
      return now?.status === 'completed' && now
    })
    t.ok((finished.duration_ms ?? 0) > 1000)
    const { fields } = await web.seen('/recorded')
    t.match(fields.get('RecordingStatus'), 'completed')
    t.equal((await w.voice('GET', `/Recordings/${finished.sid}.wav`)).status, 200)
  })

  t.test('control: the call continues, the API returns, and an interrupted callback is delivered again', async t => {
    await ready()
    let alive = false
    // The first request gets no response. The process is killed while it waits.
    const web = await webServer(t, { '/status': () => (alive ? { status: 204 } : new Promise(() => undefined)) })
    const sid = await create(MARKUP, { StatusCallback: `${web.url}/status#rt=15000`, StatusCallbackEvent: 'answered' })
    await until('the call talks', async () => (await status(sid)) === 'in-progress')
    const first = await web.seen('/status')
    // The next process may ask before we know that it runs.
    alive = true
    await w.kill('control')
    await ready()
    const again = await until('it is delivered again', () => web.requests[1])
    t.same(again.fields, first.fields)
    t.equal(again.headers['i-twilio-idempotency-token'], first.headers['i-twilio-idempotency-token'])
    const row = () => w.state.db.selectFrom('outbox').selectAll().where('call_sid', '=', sid).executeTakeFirst()
    const settled = await until('it is settled', async () => {
      const now = await row()
      return now?.delivered === 1 && now
    })
    t.match(settled, { attempts: 1 })
    t.equal(await status(sid), 'in-progress')
    t.equal((await w.voice('POST', `/Calls/${sid}.json`, { Status: 'completed' })).status, 200)
    t.match(await w.ended(sid), { status: 'completed' })
    t.match(await cdr(sid), { reason: null, ended_by: 'api' })
  })

  t.test('no call, dialog or port remains', async t => {
    // There is no listener, because nothing waits for a killed worker.
    await w.untilNone('edge_dialogs', 'media_listeners')
    const open = await w.state.db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
    t.same(open, [])
  })
})
