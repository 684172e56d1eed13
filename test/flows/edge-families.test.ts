import { once } from 'node:events'
import { WebSocket } from 'ws'
import { hangsUpOnCue } from '../support/b2bua-world.ts'
import t, { type Test } from '../support/harness/index.ts'
import { hearEachOther, openRtpPeer, type RtpPeer } from '../support/rtp-peer.ts'
import { callee, caller, MANY, receive, type SippPeer, sipp } from '../support/sipp.ts'
import { until } from '../support/wait.ts'
import { type World, world } from '../support/world.ts'

// One platform with an IPv4 and an IPv6 address. Each peer sees the address of its own family, in SIP and in SDP, and
// calls pass between the families. The WebSocket port accepts plain and secure connections.

const SIX = '::1'
const FOUR = '127.0.0.2'
const TARGET_4 = '127.0.0.3'
const WORLD = '+2348030004711'

const sdpOf = (rtp: RtpPeer): string => rtp.sdp({ address: rtp.address }).replaceAll('\r\n', '\n').trimEnd()

/** A peer that answers calls, and its audio. */
interface Target {
  readonly sip: SippPeer
  readonly rtp: RtpPeer
}

/**
 * Places a call to the network and hangs up once each side has heard the other's tone. The caller's tone is new to its
 * target.
 */
async function talk(
  t: Test,
  w: World,
  how: { from: string; rtp: RtpPeer; target: Target; hz: number },
): Promise<SippPeer> {
  const { rtp, target, hz } = how
  const peer = await sipp(t, {
    steps: [caller.invite({ sdp: sdpOf(rtp) }), ...hangsUpOnCue.slice(1)],
    to: { host: how.from.includes(':') ? `[${how.from}]` : w.sip.host, port: w.sip.port },
    service: WORLD,
    local_ip: how.from,
    keys: { from: w.numbers[1] ?? '' },
  })
  towards(rtp, await until('the answer', () => lastOf(peer, /SIP\/2\.0 200[\s\S]*m=audio/)))
  towards(target.rtp, lastOf(target.sip, INVITE) ?? '')
  await hearEachOther(rtp, target.rtp, { near: hz, far: 1300 })
  t.pass('each hears the other')
  await peer.cue()
  const { ok, errors } = await peer.done
  t.ok(ok, errors)
  return peer
}

/** A SIPp at an address, which answers every call. */
async function answering(t: Test, at: string): Promise<Target> {
  const rtp = await rtpAt(t, at)
  const plain = callee.respond(200, 'OK', { sdp: true })
  const answer = `${plain.slice(0, plain.indexOf('v=0'))}${sdpOf(rtp)}\n${plain.slice(plain.indexOf(']]>'))}`
  const steps = [
    receive.request('INVITE'),
    callee.respond(180, 'Ringing'),
    answer,
    receive.request('ACK'),
    receive.request('BYE'),
    callee.ok,
  ]
  return { sip: await sipp(t, { steps, local_ip: at, calls: MANY }), rtp }
}

const INVITE = /INVITE sip:[\s\S]*m=audio/

const messagesOf = (peer: SippPeer): string[] => peer.messages().split(/^-{5,}.*$/m)

const lastOf = (peer: SippPeer, wanted: RegExp): string | undefined =>
  messagesOf(peer).findLast(text => wanted.test(text))

const towards = (rtp: RtpPeer, message: string): void =>
  rtp.sendTo(Number(/m=audio (\d+)/.exec(message)?.[1]), /^c=IN IP[46] (\S+)/m.exec(message)?.[1])

/** Returns the messages that a peer received from the platform; SIPp's log has both directions. */
const heardBy = (peer: SippPeer): string =>
  messagesOf(peer)
    .filter(text => /message received/.test(text))
    .join('\n')

async function rtpAt(t: Test, address: string): Promise<RtpPeer> {
  const rtp = await openRtpPeer({ address })
  t.teardown(() => rtp.close())
  return rtp
}

t.test('a platform with an address of each family', async t => {
  const w = await world(t, { STROWGER_SANDBOX: 'off', STROWGER_HOST: `127.0.0.1,${SIX}` })

  const [four, six] = await Promise.all([answering(t, TARGET_4), answering(t, SIX)])
  const to = (target: Target, host: string) => ({
    targets: [{ sip_uri: `sip:${host}:${target.sip.port}`, transport: 'udp', priority: 1, weight: 1 }],
  })
  await w.addTrunk(SIX, { sources: [`${SIX}/128`], ...to(four, TARGET_4) })
  await w.addTrunk(FOUR, to(six, `[${SIX}]`))

  t.test('peers learn both addresses', async t => {
    const { body } = await w.manage('GET', '/platform/endpoints')
    t.match(body, {
      signaling_nodes: ['127.0.0.1', SIX],
      media_anchors: ['127.0.0.1', SIX],
      media_cidrs: ['127.0.0.1/32', `${SIX}/128`],
    })
  })

  t.test('an IPv6 peer calls an IPv4 peer', async t => {
    const peer = await talk(t, w, { from: SIX, rtp: await rtpAt(t, SIX), target: four, hz: 600 })
    const heard = heardBy(peer)
    t.match(heard, new RegExp(`^Contact: <sip:[^>]*\\[::1\\]:${w.sip.port}`, 'm'), 'our Contact is of its family')
    t.match(heard, /^c=IN IP6 ::1/m, 'and so is our address in SDP')
    t.notMatch(heard, /127\.0\.0\./, 'nothing of the other leg is seen')
    const invite = lastOf(four.sip, INVITE) ?? ''
    t.match(invite, new RegExp(`^Via: SIP/2\\.0/UDP 127\\.0\\.0\\.1:${w.sip.port}`, 'm'))
    t.match(invite, /^c=IN IP4 127\.0\.0\.1/m)
    t.notMatch(invite, /::1/)
  })

  t.test('an IPv4 peer calls an IPv6 peer', async t => {
    const peer = await talk(t, w, { from: FOUR, rtp: await rtpAt(t, FOUR), target: six, hz: 600 })
    t.notMatch(heardBy(peer), /::1/, 'nothing of the other leg is seen')
    const invite = lastOf(six.sip, INVITE) ?? ''
    t.match(invite, new RegExp(`^Via: SIP/2\\.0/UDP \\[::1\\]:${w.sip.port}`, 'm'))
    t.match(invite, new RegExp(`^Contact: <sip:[^>]*\\[::1\\]:${w.sip.port}`, 'm'))
    t.match(invite, /^c=IN IP6 ::1/m)
    t.notMatch(invite, /127\.0\.0\.[12]/)
  })

  t.test('a peer with IPv6 signaling and IPv4 media is heard', async t => {
    const peer = await talk(t, w, { from: SIX, rtp: await rtpAt(t, FOUR), target: four, hz: 800 })
    t.match(heardBy(peer), /^c=IN IP4 127\.0\.0\.1/m, 'our address in SDP is of the family of its own')
  })

  t.test('the WebSocket port accepts TLS with the SIPS certificate', async t => {
    for (const host of ['127.0.0.1', `[${SIX}]`]) {
      for (const scheme of ['ws', 'wss']) {
        const web = new WebSocket(`${scheme}://${host}:${w.sip.ws_port}`, 'sip', { rejectUnauthorized: false })
        t.teardown(() => web.terminate())
        await once(web, 'open')
        web.send(
          [
            `OPTIONS sip:${host} SIP/2.0`,
            `Via: SIP/2.0/${scheme.toUpperCase()} x.invalid;branch=z9hG4bK${scheme}${host.length}`,
            'From: <sip:a@x.invalid>;tag=1',
            `To: <sip:${host}>`,
            `Call-ID: ${scheme}-${host}`,
            'CSeq: 1 OPTIONS',
            'Max-Forwards: 70',
            'Content-Length: 0',
            '\r\n',
          ].join('\r\n'),
        )
        const [answer] = (await once(web, 'message')) as [Buffer]
        t.match(answer.toString(), /^SIP\/2\.0 \d{3} /, `${scheme} at ${host}`)
      }
    }
  })
})
