import { LISTENER_TOKEN } from '../../core/runtime/listener-token.ts'
import {
  acceptRecordingConsent,
  findRecordingConsent,
  TERMS_VERSION,
} from '../../core/state/calls/recording-consent.ts'
import { levelDbm0, sounding, tone, toneLevelDbm0, wavBytes } from '../support/audio.ts'
import t from '../support/harness/index.ts'
import { openEar, statusOf } from '../support/listener.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { addTenant } from '../support/tenants.ts'
import { voiceTown } from '../support/voice-town.ts'
import { until } from '../support/wait.ts'

/** The length of the sound in which none of these tones is above all else. */
function spokenMs(samples: Int16Array, tones: readonly number[]): number {
  const all = sounding(samples)
  let ms = 0
  for (let at = 0; at + WINDOW <= all.length; at += WINDOW) {
    const window = all.subarray(at, at + WINDOW)
    if (tones.every(hz => toneLevelDbm0(window, hz) < levelDbm0(window) - 3)) ms += WINDOW / 8
  }
  return ms
}
const WINDOW = 800

// REST redirects, ends and cancels live calls during other events. Each case has one outcome and leaves nothing behind.

t.test('live call control', async t => {
  const town = await voiceTown(t, { world: () => sharedWorld(t), addresses: ['127.0.0.73', '127.0.0.74'] })
  const { w, pages, web, told, all, callIn, callOut, far, trunk_number } = town
  const url = web.url
  for (const hz of [700, 900]) pages[`/${hz}.wav`] = { type: 'audio/wav', body: wavBytes(8000, tone(hz, 600)) }
  const doc = (inside: string): string => `<Response>${inside}</Response>`
  const loop = (hz: number): string => `<Play loop="0">${url}/${hz}.wav</Play>`
  const update = (sid: string, form: Record<string, string>) => w.voice('POST', `/Calls/${sid}.json`, form)
  const remove = (sid: string) => w.voice('DELETE', `/Calls/${sid}.json`)
  /** Creates a call whose far end is chosen by its number. */
  const place = async (markup: string, form: Record<string, string> = {}) => {
    const To = town.someone()
    const made = await w.voice('POST', '/Calls.json', { To, From: trunk_number, InlineMarkup: markup, ...form })
    return { sid: String(made.body.sid), line: await far.incoming(To) }
  }

  await t.test('cancels a ringing call, which runs no document', async t => {
    const { sid, line } = await place(doc(loop(900)))
    line.ring()
    await until('it rings', async () => (await w.voice('GET', `/Calls/${sid}.json`)).body.status === 'ringing')
    t.match(await update(sid, { InlineMarkup: doc('') }), { status: 400, body: { code: 21220 } })
    t.equal((await update(sid, { Status: 'canceled' })).status, 200)
    t.equal(await line.over(), 'cancelled')
    t.equal((await w.ended(sid)).status, 'canceled')
    for (const Status of ['canceled', 'completed'])
      t.match(await update(sid, { Status }), { status: 400, body: { code: 21220 } }, `${Status} after the end`)
    t.equal((await remove(sid)).status, 204, 'there is nothing left to do')
  })

  await t.test('a cancel that crosses the answer ends the call, in either order', async t => {
    for (let round = 0; round < 6; round++) {
      const { sid, line } = await place(doc(loop(900)), { StatusCallback: `${url}/met-${round}` })
      line.ring()
      // Either may be first.
      const cancel = update(sid, { Status: 'canceled' })
      if (round % 2 === 0) await new Promise(resolve => setImmediate(resolve))
      if (round % 3 === 0) await cancel
      void line.answer()
      const { status } = await cancel
      if (status !== 200) {
        t.equal(status, 400, 'it talks already')
        t.equal((await update(sid, { Status: 'completed' })).status, 200)
      }
      await line.over()
      const ended = (await w.ended(sid)).status
      t.ok(['canceled', 'completed'].includes(ended), `${status}: ${ended}`)
      t.match(await told(`/met-${round}`), { CallStatus: ended })
    }
  })

  await t.test('an update during a fetch runs the new document, and ignores the late response', async t => {
    let release: (markup: string) => void = () => undefined
    pages['/slow'] = () => new Promise<string>(resolve => (release = resolve))
    const { sid, line } = await callOut(
      doc(`${`<Play>${url}/900.wav</Play>`}<Redirect>${url}/slow#rt=15000</Redirect>`),
    )
    await told('/slow')
    t.equal((await update(sid, { InlineMarkup: doc(loop(700)) })).status, 200)
    await line.hears(700)
    release(doc('<Hangup/>'))
    await line.say(500, 300)
    await line.hears(700)
    t.equal(line.ended, null, 'the answer that came late is not run')
    t.equal((await remove(sid)).status, 204)
    t.equal((await remove(sid)).status, 204, 'DELETE twice')
    t.equal(await line.over(), 'peer')
    t.equal((await w.ended(sid)).status, 'completed')
  })

  await t.test(
    'a parent redirected inside Dial ends the child, notifies the action, and runs the new document',
    async t => {
      const to = town.someone()
      pages['/after-dial'] = doc('<Hangup/>')
      const caller = await callOut(
        doc(`<Dial callerId="${trunk_number}" action="${url}/after-dial"><Number>${to}</Number></Dial>`),
      )
      const child = await far.incoming(to)
      await child.answer()
      const stop = child.hum(500)
      await caller.line.hears(500)
      t.equal((await update(caller.sid, { InlineMarkup: doc(loop(700)) })).status, 200)
      t.equal(await child.over(), 'peer')
      await stop()
      t.match(await told('/after-dial'), { DialCallStatus: 'completed', CallSid: caller.sid })
      await caller.line.hears(700)
      t.equal(caller.line.ended, null, 'the reply of the action is not run')
      caller.line.hangUp()
      await w.ended(caller.sid)
    },
  )

  await t.test('a redirected child leaves the bridge, and the parent continues with its action', async t => {
    const to = town.someone()
    pages['/child-gone'] = doc(loop(900))
    const caller = await callOut(
      doc(`<Dial callerId="${trunk_number}" action="${url}/child-gone"><Number>${to}</Number></Dial>`),
    )
    const child = await far.incoming(to)
    await child.answer()
    const stop = child.hum(500)
    await caller.line.hears(500)
    await stop()
    const { body } = await w.voice('GET', `/Calls.json?ParentCallSid=${caller.sid}`)
    t.equal((await update(body.calls[0].sid, { InlineMarkup: doc(loop(700)) })).status, 200)
    await child.hears(700)
    await caller.line.hears(900)
    t.match(await told('/child-gone'), { DialCallStatus: 'completed' })
    t.ok(child.level(900) < -40, 'they are apart')
    for (const line of [child, caller.line]) line.hangUp()
    await Promise.all([w.ended(caller.sid), w.ended(body.calls[0].sid)])
  })

  await t.test('concurrent updates, and one that crosses the end, leave one result', async t => {
    const { sid, line } = await callOut(doc(loop(900)))
    await line.hears(900)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_value, at) =>
        update(sid, { InlineMarkup: doc(at === 9 ? loop(700) : `<Pause length="${20 + at}"/>`) }),
      ),
    )
    t.ok(answers.every(({ status }) => status === 200))
    // The last update ran last. It can be replaced like any other.
    t.equal((await update(sid, { InlineMarkup: doc(loop(700)) })).status, 200)
    await line.hears(700)
    const late = update(sid, { InlineMarkup: doc(loop(900)) })
    line.hangUp()
    t.ok([200, 400].includes((await late).status))
    t.equal((await w.ended(sid)).status, 'completed')
    t.match(await update(sid, { InlineMarkup: doc('') }), { status: 400, body: { code: 21220 } })
  })

  await t.test('redirects an unanswered inbound call to a document that ends it', async t => {
    pages['/never'] = () => new Promise<string>(() => undefined)
    const line = await callIn(doc(`<Redirect>${url}/never</Redirect>`))
    const sid = await town.sidOf(line)
    await told('/never')
    t.equal((await update(sid, { Status: 'completed' })).status, 200)
    t.equal(await line.over(), 'refused')
    t.ok(line.final !== null && line.final >= 400, `refused with ${line.final}`)
    t.match((await w.ended(sid)).status, /canceled|completed|failed/)
  })

  await t.test(
    'a member listens to a call: both sides are heard, the parties are told, and the trail has it',
    async t => {
      const to = town.someone()
      const caller = await callOut(doc(`<Dial callerId="${trunk_number}"><Number>${to}</Number></Dial>`))
      const callee = await far.incoming(to)
      await callee.answer()
      const quiet = [caller.line.hum(500), callee.hum(900)]
      await Promise.all([caller.line.hears(900), callee.hears(500)])
      const path = `/live-calls/${caller.sid}/listen`
      const authorization = `Bearer ${w.api_key}`

      const rival = await addTenant(w.state, w.master_key, [])
      const neighbour = { 'X-Project-ID': rival.project_id, authorization: `Bearer ${rival.api_key}` }
      const asked = await fetch(`${w.base_url}/v1${path}`, { method: 'POST', headers: neighbour })
      t.equal(asked.status, 404, 'a call of a neighbour is not there')
      const consent = await findRecordingConsent(w.state.db, w.project_id)
      await w.state.db.deleteFrom('recording_consent').where('project_id', '=', w.project_id).execute()
      t.match(await w.manage('POST', path), { status: 409, body: { code: 'recording_consent_required' } })
      const accepted = { project_id: w.project_id, accepted_by: 'test', accepted_at: new Date().toISOString() }
      await w.state.transaction(trx =>
        acceptRecordingConsent(trx, consent ?? { ...accepted, terms_version: TERMS_VERSION }),
      )

      // The beep sounds once in 15 s. The parties listen for it from the beginning.
      const told = [caller.line.hears(1400), callee.hears(1400)]
      const made = await w.manage('POST', path)
      t.match(made, { status: 201, body: { call_id: caller.sid, notice: 'tone' } })
      const socket_url = `${w.base_url.replace(/^http/, 'ws')}${made.body.websocket_path}`
      t.equal(await statusOf(socket_url, neighbour), 404, 'nor is its listener')
      const source_url = socket_url.replace('/v1/', '/')
      t.equal(await statusOf(source_url, { [LISTENER_TOKEN]: 'guessed' }), 404, 'a stranger is no source')
      const ear = await openEar(w.base_url, made.body.websocket_path, authorization)
      await Promise.all([ear.hears('inbound', 500), ear.hears('outbound', 900), ...told])
      t.pass('the listener hears both, and both hear the tone')

      ear.speak(1900)
      // What is said after the listener has spoken arrives after it, or the listener was not heard.
      await Promise.all(quiet.map(stop => stop()))
      const hums = [caller.line.hum(600), callee.hum(1000)]
      await Promise.all([caller.line.hears(1000), callee.hears(600)])
      for (const { rtp } of [caller.line, callee])
        t.ok(toneLevelDbm0(sounding(rtp.audio()), 1900) < -45, 'nobody hears the listener')

      const spoken = await w.manage('PUT', '/organization/listening-notice', { listening_notice: 'spoken' })
      t.match(spoken, { status: 200, body: { listening_notice: 'spoken' } })
      await Promise.all(hums.map(stop => stop()))
      const before = caller.line.rtp.received.length
      const second = await w.manage('POST', path)
      t.match(second, { status: 201, body: { notice: 'spoken' } })
      const other = await openEar(w.base_url, second.body.websocket_path, authorization)
      await caller.line.rtp.until(() => spokenMs(caller.line.rtp.audio(before), [600, 1000, 1400]) >= 1000)
      t.pass('the sentence is spoken to the parties')
      other.close()

      const { body: trail } = await w.manage('GET', '/audit?range=24h')
      const kept = trail.data.filter((event: { action: string }) => event.action === 'call.listened')
      t.equal(kept.length, 2)
      t.match(kept[0], { resource: { id: caller.sid }, actor: { type: 'api_key' } })
      caller.line.hangUp()
      t.equal((await w.ended(caller.sid)).status, 'completed')
      t.equal(await ear.over(), 'the call has ended')
      t.match(await w.manage('POST', path), { status: 409, body: { code: 'call_not_live' } })
      await w.manage('PUT', '/organization/listening-notice', { listening_notice: 'tone' })
    },
  )

  await t.test('nothing is left', async t => {
    await w.untilNone('live_calls', 'media_legs')
    t.same(
      all('/after-dial').map(({ DialCallStatus }) => DialCallStatus),
      ['completed'],
      'the action was asked once',
    )
  })
})
