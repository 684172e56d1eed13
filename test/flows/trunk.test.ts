import { createSocket } from 'node:dgram'
import { title } from '../../core/domain/ladder/render.ts'
import { ladderOf } from '../../core/state/calls/ladder.ts'
import { strongestHz, tone, wavBytes } from '../support/audio.ts'
import { hangsUpOnCue, lastCall, mediaPort } from '../support/b2bua-world.ts'
import { onEmbedded } from '../support/edges.ts'
import t from '../support/harness/index.ts'
import { hearEachOther, openRtpPeer } from '../support/rtp-peer.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { callee, caller, provisionals, receive, sipp } from '../support/sipp.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import type { World } from '../support/world.ts'

// A SIP peer sends calls through a trunk. The peer is at 127.0.0.2, the trunk's target at 127.0.0.3, strangers at
// 127.0.0.9, and the platform at 127.0.0.1, so that each SDP shows whose address it contains.

const PEER = '127.0.0.2'
const TARGET = '127.0.0.3'
const STRANGER = '127.0.0.9'
const WORLD = '+2348030004711'

const cdrOf = (w: World, call_sid: string) =>
  until('the CDR', () => w.state.db.selectFrom('cdr').selectAll().where('call_sid', '=', call_sid).executeTakeFirst())

t.test('calls through a trunk', async t => {
  const w = await sharedWorld(t)
  const own = w.numbers[1] ?? ''
  const trunk_id = await w.addTrunk(PEER)

  t.test('a peer calls a number: its application answers, and the tone that it plays is heard', async t => {
    const web = await webServer(t, {
      '/voice': '<Response><Play>/tone.wav</Play><Hangup/></Response>',
      '/tone.wav': { type: 'audio/wav', body: wavBytes(8000, tone(1000, 4000)) },
    })
    await w.routeToApplication(own, `${web.url}/voice`)
    const rtp = await openRtpPeer({ address: PEER })
    t.teardown(() => rtp.close())
    const peer = await sipp(t, {
      steps: [
        caller.invite(),
        ...provisionals,
        receive.response(200, { dialog: true }),
        caller.ack,
        receive.request('BYE'),
        callee.ok,
      ],
      to: w.sip,
      service: own,
      local_ip: PEER,
      keys: { rtp_port: rtp.port, from: '+2348030009999' },
    })
    await rtp.hears(1000)
    const { ok, errors } = await peer.done
    t.ok(ok, errors)
    const heard = rtp.audio()
    t.equal(strongestHz(heard), 1000)
    t.ok(heard.length / 8 >= 1400, `${heard.length / 8} ms were heard`)
    const call = await lastCall(w)
    t.match(call, { direction: 'inbound', origin: 'trunk', to_number: own, trunk_id })
    t.match(await cdrOf(w, call.sid), { status: 'completed', ended_by: 'platform' })
    t.match(Object.fromEntries((await web.seen('/voice')).fields), { To: own, Direction: 'inbound' })
  })

  t.test('a peer calls the world: the sandbox carrier answers through our ports', async t => {
    const rtp = await openRtpPeer({ address: PEER })
    t.teardown(() => rtp.close())
    const peer = await sipp(t, {
      steps: hangsUpOnCue,
      to: w.sip,
      service: WORLD,
      local_ip: PEER,
      keys: { rtp_port: rtp.port, from: own },
    })
    rtp.sendTo(await mediaPort(peer))
    await Promise.all([rtp.send(tone(600, 1000)), rtp.hears(440)])
    await peer.cue()
    const { ok, errors } = await peer.done
    t.ok(ok, errors)
    const call = await lastCall(w)
    t.match(await cdrOf(w, call.sid), { status: 'completed', ended_by: 'caller', origin: 'trunk', trunk_id })
  })

  t.test('refuses an unknown source, and stores nothing', async t => {
    const before = await lastCall(w)
    const peer = await sipp(t, {
      steps: [caller.invite(), receive.response(100, { optional: true }), receive.response(403), caller.ackOfFailure],
      to: w.sip,
      service: WORLD,
      local_ip: STRANGER,
      keys: { from: own },
    })
    const { ok, errors } = await peer.done
    t.ok(ok, errors)
    t.equal((await lastCall(w)).sid, before.sid)
  })

  t.test('a refusal names the check and the value', async t => {
    const peer = await sipp(t, {
      steps: [caller.invite(), ...provisionals, receive.response(403), caller.ackOfFailure],
      to: w.sip,
      service: WORLD,
      local_ip: PEER,
      keys: { from: '+2348039999999' },
    })
    const { ok, messages, errors } = await peer.done
    t.ok(ok, errors)
    t.match(messages, /Reason: X-Strowger;cause=403;text="caller_not_owned"/)
    t.match(messages, /Warning: 399 strowger ".*2348039999999/)
  })

  t.test('an unreadable offer, or one without a common codec, gets 488, and the edge continues', async t => {
    for (const sdp of [
      'this is no SDP',
      'v=0\no=- 1 1 IN IP4 127.0.0.2\ns=-\nc=IN IP4 127.0.0.2\nt=0 0\nm=audio 4000 RTP/AVP 3',
    ]) {
      const peer = await sipp(t, {
        steps: [caller.invite({ sdp }), ...provisionals, receive.response(488), caller.ackOfFailure],
        to: w.sip,
        service: WORLD,
        local_ip: PEER,
        keys: { from: own },
      })
      const { ok, errors } = await peer.done
      t.ok(ok, errors)
    }
  })

  t.test('bytes that are not SIP have no effect', async t => {
    const socket = createSocket('udp4')
    await new Promise<void>(resolve => socket.bind(0, PEER, resolve))
    const send = (text: string) =>
      new Promise<void>(resolve => socket.send(text, w.sip.port, w.sip.host, () => resolve()))
    await send('\0\0\0\0')
    await send('INVITE\r\n\r\n')
    await send('INVITE sip:x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.2;branch=z9hG4bKx\r\nCSeq: abc\r\n\r\n')
    const answer = new Promise<string>(resolve => socket.once('message', message => resolve(message.toString())))
    const { port } = socket.address()
    await send(
      [
        `OPTIONS sip:${w.sip.host}:${w.sip.port} SIP/2.0`,
        `Via: SIP/2.0/UDP ${PEER}:${port};branch=z9hG4bKalive;rport`,
        `From: <sip:x@${PEER}>;tag=1`,
        `To: <sip:${w.sip.host}>`,
        'Call-ID: alive',
        'CSeq: 1 OPTIONS',
        'Max-Forwards: 70',
        'Content-Length: 0',
        '',
        '',
      ].join('\r\n'),
    )
    t.match(await answer, /^SIP\/2\.0 \d{3} /)
    socket.close()
  })

  t.test('the far end’s final responses reach the peer unchanged', async t => {
    const endings: [string, number, string][] = [
      ['+2348030000002', 486, 'busy'],
      ['+2348030000005', 404, 'failed'],
    ]
    for (const [service, code, status] of endings) {
      const peer = await sipp(t, {
        steps: [caller.invite(), ...provisionals, receive.response(code), caller.ackOfFailure],
        to: w.sip,
        service,
        local_ip: PEER,
        keys: { from: own },
      })
      const { ok, errors } = await peer.done
      t.ok(ok, `${service}: ${errors}`)
      t.match(await cdrOf(w, (await lastCall(w)).sid), { status, sip_code: code })
    }
  })

  t.test('a peer that cancels before the answer gets 487, and the far end stops ringing', async t => {
    const peer = await sipp(t, {
      steps: [
        caller.invite(),
        receive.response(100, { optional: true }),
        receive.response(180),
        caller.cancel,
        receive.response(200),
        receive.response(487),
        caller.ackOfFailure,
      ],
      to: w.sip,
      service: '+2348030000003',
      local_ip: PEER,
      keys: { from: own },
    })
    const { ok, errors } = await peer.done
    t.ok(ok, errors)
    t.match(await cdrOf(w, (await lastCall(w)).sid), { status: 'canceled', ended_by: 'caller' })
    await w.untilNone('sandbox_calls')
  })
})

t.test('calls from peer to peer are bridged', async t => {
  const w = await sharedWorld(t)
  const own = w.numbers[2] ?? ''
  const rtp = { peer: await openRtpPeer({ address: PEER }), target: await openRtpPeer({ address: TARGET }) }
  t.teardown(() => {
    rtp.peer.close()
    rtp.target.close()
  })
  const target = await sipp(t, {
    steps: [
      receive.request('INVITE'),
      callee.respond(180, 'Ringing'),
      callee.respond(200, 'OK', { sdp: true }),
      receive.request('ACK'),
      receive.request('BYE'),
      callee.ok,
    ],
    local_ip: TARGET,
    keys: { rtp_port: rtp.target.port },
  })
  const trunk_id = await w.addTrunk(PEER, {
    targets: [{ sip_uri: `sip:${TARGET}:${target.port}`, transport: 'udp', priority: 1, weight: 1 }],
  })
  await until('the target has answered OPTIONS', async () => {
    const { body } = await w.manage('GET', `/trunks/${trunk_id}`)
    return body.endpoint_evidence[0]?.state === 'healthy'
  })
  const peer = await sipp(t, {
    steps: hangsUpOnCue,
    to: w.sip,
    service: WORLD,
    local_ip: PEER,
    keys: { rtp_port: rtp.peer.port, from: own },
  })
  rtp.peer.sendTo(await mediaPort(peer))
  const offered = await until('the INVITE at the target', () => /m=audio (\d+)/.exec(target.messages())?.[1])
  rtp.target.sendTo(Number(offered))
  await hearEachOther(rtp.peer, rtp.target, { near: 500, far: 900 })
  await peer.cue()
  const [a, b] = await Promise.all([peer.done, target.done])
  t.ok(a.ok, a.errors)
  t.ok(b.ok, b.errors)

  t.equal(strongestHz(rtp.target.audio()), 500, 'the target hears the peer')
  t.equal(strongestHz(rtp.peer.audio()), 900, 'the peer hears the target')
  t.notMatch(received(a.messages), new RegExp(TARGET.replaceAll('.', '\\.')), 'nothing at the peer shows the target')
  t.notMatch(received(b.messages), new RegExp(PEER.replaceAll('.', '\\.')), 'nothing at the target shows the peer')
  for (const { messages } of [a, b]) {
    const ports = [...received(messages).matchAll(/m=audio (\d+)/g)].map(match => Number(match[1]))
    t.ok(ports.length > 0 && ports.every(port => port >= w.rtp_ports.first && port <= w.rtp_ports.last))
  }
  const call = await lastCall(w)
  t.match(await cdrOf(w, call.sid), { status: 'completed', ended_by: 'caller', trunk_id })
})

t.test(...onEmbedded('the ladder of a call shows every message of both legs'), async t => {
  const w = await sharedWorld(t)
  await w.addTrunk(PEER)
  const peer = await sipp(t, {
    steps: [caller.invite(), ...provisionals, receive.response(486), caller.ackOfFailure],
    to: w.sip,
    service: '+2348030000002',
    local_ip: PEER,
    keys: { from: w.numbers[0] ?? '' },
  })
  await peer.done
  const { sid } = await lastCall(w)
  const messages = await until('both ACKs are kept', async () => {
    const kept = (await ladderOf(w.state.db, sid, 'operator')) ?? []
    const acks = kept.filter(({ text, retransmission }) => title(text) === 'ACK' && !retransmission)
    return acks.length === 2 && kept
  })
  // A busy machine sends some of them again.
  const arrows = messages
    .filter(({ retransmission }) => !retransmission)
    .map(message => `${message.direction} ${title(message.text)}`)
  t.same(
    arrows.filter(arrow => !/ ACK$| 100 /.test(arrow)),
    ['in INVITE', 'out INVITE', 'in 486 INVITE', 'out 486 INVITE'],
  )
  t.equal(new Set(messages.map(message => message.sip_call_id)).size, 2, 'each leg has a Call-ID of its own')
})

/** Returns the messages that SIPp received, without those that it sent and without lines of its log. */
const received = (messages: string): string =>
  messages
    .split(/^-{5,}.*$/m)
    .filter(part => /message received/.test(part))
    .map(part => part.replace(/^.*message received.*$/m, ''))
    .join('\n')
