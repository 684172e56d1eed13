import { SessionState } from 'sip.js'
import t from 'tap'
import { strongestHz, tone } from '../support/audio.ts'
import { openSoftphone, reached } from '../support/browser.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// Browsers as peers: sip.js over a WebSocket, media by ICE and DTLS-SRTP.

const BROWSER = '127.0.0.2'

t.test('browser legs', async t => {
  const w = await world(t)

  t.test('a browser calls the sandbox, and hears itself back', async t => {
    await w.addTrunk(BROWSER)
    const phone = await openSoftphone(t, { ...w.sip, user: w.numbers[1] ?? '', local_ip: BROWSER })
    const session = await phone.call(`sip:+2348030000001@${w.sip.host}`)
    await reached(session, SessionState.Established)
    const [media] = phone.media
    if (!media) throw new Error('no media')
    await media.connected()
    await until('the announcement is over', async () => {
      const before = media.packets
      await media.send(tone(700, 600))
      return media.packets - before > 20 && strongestHz(media.audio(before + 10)) === 700
    })
    await session.bye()
    const call = await until('the call has ended', () => w.state.db.selectFrom('cdr').selectAll().executeTakeFirst())
    t.match(call, { status: 'completed', ended_by: 'caller' })
    t.match(JSON.parse(call.media ?? '{}'), {
      a: { secured: true, codec: 'PCMU' },
      b: { secured: false },
      mode: 'relay',
    })
  })
})
