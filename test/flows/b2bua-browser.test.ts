import { SessionState } from 'sip.js'
import { makeClientCredential } from '../../core/runtime/client-token.ts'
import { strongestHz, tone } from '../support/audio.ts'
import { openSoftphone, reached } from '../support/browser.ts'
import { decidedCdrs } from '../support/busy.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'

// Browsers as peers: sip.js over a WebSocket, media by ICE and DTLS-SRTP.

const BROWSER = '127.0.0.2'

t.test('browser legs', async t => {
  const w = await sharedWorld(t)

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
    const call = await until('the call has ended', async () => (await decidedCdrs(w))[0])
    t.match(call, { status: 'completed', ended_by: 'caller' })
    t.match(JSON.parse(call.media ?? '{}'), {
      a: { secured: true, codec: 'PCMU' },
      b: { secured: false },
      mode: 'relay',
    })
  })

  t.test('a browser client calls a number whose script dials another client: each hears the other', async t => {
    const own = w.numbers[3] ?? ''
    const web = await webServer(t, {
      '/voice': '<Response><Dial><Client>bob</Client></Dial></Response>',
    })
    await w.routeToApplication(own, `${web.url}/voice`)
    const client = async (name: string) => {
      const made = makeClientCredential(
        {
          client: name,
          caller: w.numbers[1] ?? null,
          expires_at_seconds: Math.floor(Date.now() / 1000) + 600,
          allowed: ['in', 'out'],
        },
        { project_id: w.project_id, domain: 'localhost', auth_token: w.auth_token },
      )
      const { username: user, password, sip_uri: uri } = made
      return { made, phone: await openSoftphone(t, { ...w.sip, user, password, uri }) }
    }
    const [alice, bob] = [await client('alice'), await client('bob')]
    await bob.phone.register()
    const session = await alice.phone.call(`sip:${own}@${alice.made.domain}`)
    const invitation = await until('bob is called', () => bob.phone.invitations[0])
    await invitation.accept()
    await reached(session, SessionState.Established)
    const [near, far] = [alice.phone.media[0], bob.phone.media[0]]
    if (!near || !far) throw new Error('no media')
    await Promise.all([near.connected(), far.connected()])
    await until('each hears the other', async () => {
      const before = [near.packets, far.packets] as const
      await Promise.all([near.send(tone(500, 600)), far.send(tone(900, 600))])
      return (
        near.packets - before[0] > 20 &&
        far.packets - before[1] > 20 &&
        strongestHz(near.audio(before[0] + 10)) === 900 &&
        strongestHz(far.audio(before[1] + 10)) === 500
      )
    })
    await invitation.bye()
    await reached(session, SessionState.Terminated)
    const rows = await until('both calls have a CDR', async () => {
      const found = await decidedCdrs(w)
      return found.length >= 3 && found
    })
    t.same(rows.map(row => row.origin).sort(), ['client', 'dial', 'trunk'])
  })
})
