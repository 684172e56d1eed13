import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Srf from 'drachtio-srf'
import { createEdge, type Edge } from '../../../signaling/edge/index.ts'
import { UserAgent } from '../../../signaling/edge/useragent/user-agent.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { sippPorts, untilListens } from '../../support/sipp.ts'
import { until } from '../../support/wait.ts'
import { testClock } from './test-clock.ts'

// Runs the unmodified client library against the edge, with SIPp and a user agent as peers, to test what applications
// see.

const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'
const LISTENERS = [
  { protocol: 'udp', host: '127.0.0.1', port: 0 },
  { protocol: 'tcp', host: '127.0.0.1', port: 0, same_port: true },
] as const

async function connected(t: Test): Promise<{ edge: Edge; srf: Srf; port: number }> {
  const control = { host: '127.0.0.1', port: 0, secret: 'cymru' }
  const edge = await createEdge({ listeners: LISTENERS, control, clock: testClock() })
  const srf = new Srf()
  srf.on('error', () => undefined)
  void srf.connect({ host: '127.0.0.1', port: edge.control.port, secret: 'cymru' })
  await once(srf as unknown as NodeJS.EventEmitter, 'connect')
  t.teardown(() => {
    srf.disconnect()
    edge.close()
  })
  return { edge, srf, port: edge.listeners[0]?.port ?? 0 }
}

/** Starts SIPp with a built-in scenario. A `uas` listens when this resolves. */
async function sipp(
  t: Test,
  kind: 'uas' | 'uac',
  args: readonly string[],
): Promise<{ port: number; exit: Promise<number | null> }> {
  const { port, args: ports } = await sippPorts()
  const folder = mkdtempSync(join(tmpdir(), 'strowger-edge-sipp-'))
  const child = spawn('sipp', ['-sn', kind, ...args, '-i', '127.0.0.1', ...ports, '-nostdin'], {
    cwd: folder,
    stdio: 'ignore',
  })
  const exit = new Promise<number | null>(resolve => child.once('exit', code => resolve(code)))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
    rmSync(folder, { recursive: true, force: true })
  })
  if (kind === 'uas') await untilListens(child, args.includes('t1') ? 'tcp' : 'udp', port)
  return { port, exit }
}

for (const transport of ['udp', 'tcp'] as const) {
  t.test(`createB2BUA carries SIPp calls over ${transport}`, async t => {
    const { edge, srf, port } = await connected(t)
    const { port: target } = await sipp(t, 'uas', ['-t', transport === 'tcp' ? 't1' : 'u1'])
    let ended = 0
    srf.invite((req, res) => {
      srf
        .createB2BUA(req, res, `sip:b@127.0.0.1:${target};transport=${transport}`, { localSdpB: req.body })
        .then(({ uas, uac }) => {
          const end = (): void => {
            ended++
            uac.destroy()
          }
          // A BYE that arrives in the same read as the ACK ends the call before this listener exists. (The library's
          // declarations lack `connected`.)
          if ((uas as unknown as { connected: boolean }).connected) uas.on('destroy', end)
          else end()
        })
        .catch(error => t.fail(String(error)))
    })
    const how = transport === 'tcp' ? ['-t', 't1'] : []
    const calls = [`127.0.0.1:${port}`, '-m', '20', '-r', '20', '-timeout', '90s', ...how]
    const { exit } = await sipp(t, 'uac', calls)
    t.equal(await exit, 0, 'all calls succeeded')
    await until('both legs of every call have ended', () => ended === 20)
    while (edge.stats().dialogs > 0 || edge.stats().pending > 0) await new Promise(resolve => setTimeout(resolve, 5))
  })
}

t.test('a challenged call is retried with credentials at the address that sent the challenge', async t => {
  const { srf } = await connected(t)
  const authorizations: (string | undefined)[] = []
  const peer = await UserAgent.open({
    listeners: LISTENERS,
    incoming: call => {
      const authorization = call.invite?.get('proxy-authorization')
      authorizations.push(authorization)
      if (authorization) call.answer({ body: SDP })
      else
        call.reject(407, {
          headers: { 'Proxy-Authenticate': 'Digest realm="x", nonce="n", qop="auth", algorithm=MD5' },
        })
    },
  })
  t.teardown(() => peer.close())
  const dialog = await srf.createUAC(`sip:b@127.0.0.1:${peer.port('udp')}`, {
    localSdp: SDP,
    auth: { username: 'u', password: 'p' },
  })
  t.match(authorizations, [undefined, /username="u"/])
  t.equal(peer.calls.length, 1)
  await dialog.destroy()
  while (peer.calls.length > 0) await new Promise(resolve => setTimeout(resolve, 5))
})

t.test('callers reach an application that answers, refuses or rings, and can cancel and re-INVITE', async t => {
  const { edge, srf, port } = await connected(t)
  srf.invite((req, res) => {
    if (req.uri.includes('busy')) res.send(486)
    else if (req.uri.includes('ring')) res.send(180)
    else {
      srf.createUAS(req, res, { localSdp: SDP }).then(
        dialog => {
          dialog.on('info', (_req: unknown, answer: { send(status: number): void }) => answer.send(200))
          dialog.on('destroy', () => undefined)
        },
        () => undefined,
      )
    }
  })
  const agent = await UserAgent.open({ listeners: LISTENERS })
  t.teardown(() => agent.close())
  const result = (uri: string, hang_up_at: 'progress' | 'answered'): Promise<string> =>
    new Promise(resolve => {
      const call = agent.call(uri, {
        body: SDP,
        events: {
          progress: () => hang_up_at === 'progress' && call.hangUp(),
          answered: () => {
            call
              .send('INFO', { body: 'x', content_type: 'text/plain' })
              .then(async info => {
                const again = await call.send('INVITE', { body: SDP })
                resolve(`answered ${info?.status} ${again?.status}`)
                call.hangUp()
              })
              .catch(resolve)
          },
          failed: response => resolve(`failed ${response?.status}`),
          ended: why => resolve(why),
        },
      })
    })
  for (const suffix of ['', ';transport=tcp']) {
    t.equal(await result(`sip:ok@127.0.0.1:${port}${suffix}`, 'answered'), 'answered 200 200')
    t.equal(await result(`sip:busy@127.0.0.1:${port}${suffix}`, 'answered'), 'failed 486')
    t.equal(await result(`sip:ring@127.0.0.1:${port}${suffix}`, 'progress'), 'cancelled')
  }
  while (edge.stats().dialogs > 0) await new Promise(resolve => setTimeout(resolve, 5))
})
