import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { rolldown } from 'rolldown'
import { makeClientCredential } from '../../../core/runtime/client-token.ts'
import { openBrowser } from '../../support/console.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'
import { webServer } from '../../support/web.ts'
import { type World, world } from '../../support/world.ts'

// JsSIP in Debian's Chromium, over ws, with the browser's own ICE, DTLS and SRTP. sip.js in Chromium is the console's
// telephone, which `npm test` runs (test/flows/console.test.ts).

/** JsSIP as one file for pages, from the package that `npm run interop -- --install` puts into build/interop. */
async function library(): Promise<string> {
  const bundle = await rolldown({
    input: resolve('build/interop/node_modules/jssip/lib/JsSIP.js'),
    ...{ platform: 'browser', logLevel: 'silent' },
  })
  const { output } = await bundle.generate({ format: 'iife', name: 'JsSIP' })
  return output[0].code
}

t.test('JsSIP in Chromium', async t => {
  const w = await world(t)
  await t.test('one registers and is called by another: each hears the other, until one hangs up', t => talk(t, w))
})

async function talk(t: Test, w: World): Promise<void> {
  const own = w.numbers[3] ?? ''
  const web = await webServer(t, {
    '/voice': '<Response><Dial><Client>bob</Client></Dial></Response>',
  })
  await w.routeToApplication(own, `${web.url}/voice`)
  const page_url = await blankPage(t)
  const browser = await openBrowser(t)
  const [alice, { page: bob }] = [await openPhone(t, w, 'alice'), await openPhone(t, w, 'bob')]
  await until('both are registered', async () => (await registered(alice.page)) && (await registered(bob)))
  await alice.page.evaluate(target => {
    const { phone } = globalThis as never as PhonePage
    phone.call(target)
  }, `sip:${own}@${alice.domain}`)
  await until('both hear something', async () => (await hears(alice.page)) && (await hears(bob)))
  await bob.evaluate(() => (globalThis as never as PhonePage).phone.hangUp())
  await until('the other knows', () => alice.page.evaluate(() => (globalThis as never as PhonePage).phone.ended))
  const records = await until('both calls have ended', async () => {
    const rows = await w.state.db.selectFrom('cdr').selectAll().where('project_id', '=', w.project_id).execute()
    return rows.length === 2 ? rows : undefined
  })
  for (const { status, media } of records) {
    t.equal(status, 'completed')
    t.match(media, /"secured":true/)
  }

  async function openPhone(t: Test, w: World, client: string): Promise<{ page: Page; domain: string }> {
    const facts = { client, caller: w.numbers[1] ?? null, expires_at_seconds: Math.floor(Date.now() / 1000) + 600 }
    const { username, password, sip_uri, domain } = makeClientCredential(
      { ...facts, allowed: ['in', 'out'] },
      { project_id: w.project_id, domain: 'localhost', auth_token: w.auth_token },
    )
    const context = await browser.newContext({ permissions: ['microphone'] })
    t.teardown(() => context.close())
    const page = await context.newPage()
    await page.goto(page_url)
    await page.addScriptTag({ content: await library() })
    await page.evaluate(startPhone, { username, password, sip_uri, socket: `ws://${w.sip.host}:${w.sip.ws_port}` })
    return { page, domain }
  }
}

/** Serves an empty page, whose origin may use the microphone. Resolves with its address. */
async function blankPage(t: Test): Promise<string> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><html><head><title>JsSIP</title></head><body></body></html>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

interface PhonePage {
  readonly phone: {
    readonly registered: boolean
    readonly ended: boolean
    /** Why the call came to nothing; '' while it did not. */
    readonly failed: string
    call(target: string): void
    hangUp(): void
    /** The energy of the sound that came. */
    energy(): Promise<number>
  }
}

const registered = (page: Page): Promise<boolean> =>
  page.evaluate(() => (globalThis as never as PhonePage).phone.registered)

/** @throws when the call has failed */
async function hears(page: Page): Promise<boolean> {
  const failed = await page.evaluate(() => (globalThis as never as PhonePage).phone.failed)
  if (failed !== '') throw new Error(`the call has failed: ${failed}`)
  return (await page.evaluate(() => (globalThis as never as PhonePage).phone.energy())) > 0
}

/** Runs in the page: a telephone that answers every call. */
function startPhone(facts: { username: string; password: string; sip_uri: string; socket: string }): void {
  // biome-ignore lint/suspicious/noExplicitAny: the library is a script of the page, without types.
  const { JsSIP } = globalThis as any
  const agent = new JsSIP.UA({
    sockets: [new JsSIP.WebSocketInterface(facts.socket)],
    uri: facts.sip_uri,
    authorization_user: facts.username,
    password: facts.password,
  })
  const media = { mediaConstraints: { audio: true, video: false }, pcConfig: { iceServers: [] } }
  const phone = {
    registered: false,
    ended: false,
    failed: '',
    // biome-ignore lint/suspicious/noExplicitAny: a session of the library.
    session: null as any,
    call: (target: string): void => agent.call(target, media),
    hangUp: (): void => phone.session.terminate(),
    async energy(): Promise<number> {
      const { connection } = phone.session ?? {}
      let energy = 0
      for (const one of [...((await connection?.getStats())?.values() ?? [])])
        if (one.type === 'inbound-rtp' && one.kind === 'audio') energy += one.totalAudioEnergy ?? 0
      return energy
    },
  }
  agent.on('registered', () => {
    phone.registered = true
  })
  // biome-ignore lint/suspicious/noExplicitAny: an event of the library.
  agent.on('newRTCSession', ({ session, originator }: any) => {
    phone.session = session
    // Chromium measures the energy of what it plays.
    const plays = (connection: { ontrack: unknown }): void => {
      // biome-ignore lint/suspicious/noExplicitAny: an event and an element of the page.
      connection.ontrack = ({ streams }: any) => {
        // biome-ignore lint/suspicious/noExplicitAny: see above.
        const audio = new (globalThis as any).Audio()
        audio.srcObject = streams[0]
        audio.play()
      }
    }
    // biome-ignore lint/suspicious/noExplicitAny: an event of the library.
    session.on('peerconnection', ({ peerconnection }: any) => plays(peerconnection))
    if (session.connection) plays(session.connection)
    session.on('ended', () => {
      phone.ended = true
    })
    session.on('failed', (failure: { cause: string }) => {
      phone.failed = failure.cause
    })
    if (originator === 'remote') session.answer(media)
  })
  agent.start()
  Object.assign(globalThis, { phone })
}
