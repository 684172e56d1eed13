import { tone, wavBytes } from '../support/audio.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { voiceTown } from '../support/voice-town.ts'
import { until } from '../support/wait.ts'

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

  await t.test('nothing is left', async t => {
    await w.untilNone('live_calls', 'media_legs')
    t.same(
      all('/after-dial').map(({ DialCallStatus }) => DialCallStatus),
      ['completed'],
      'the action was asked once',
    )
  })
})
