import { MediaStreamTrack, RTCPeerConnection, RtpHeader, RtpPacket, useOPUS, usePCMU } from 'werift'
import { type Clock, systemClock } from '../../../core/runtime/clock.ts'
import { type BrowserState, BrowserTransport } from '../../../media/webrtc/browser-transport.ts'
import { createBrowserTransports } from '../../../media/webrtc/browser-transports.ts'
import { IceLite } from '../../../media/webrtc/ice-lite.ts'
import { ManualClock } from '../../fuzz/edge/manual-clock.ts'
import { decodeG711, encodeG711, levelDbm0, sounding, strongestHz, tone, toneLevelDbm0 } from '../../support/audio.ts'
import { dtlsClient, takeRepeats } from '../../support/dtls-client.ts'
import t from '../../support/harness/index.ts'
import { POLICY, reasonOf, startTestWorker } from '../../support/media-worker.ts'
import { until } from '../../support/wait.ts'

const w = await startTestWorker()
t.teardown(() => w.stop())
const { client } = w

/** A browser simulated by werift, with its ICE, DTLS and SRTP. It uses PCMU so that its audio can be measured. */
function browser(t: { teardown(end: () => unknown): void }) {
  const connection = new RTCPeerConnection({
    iceServers: [],
    iceUseIpv6: false,
    iceAdditionalHostAddresses: ['127.0.0.1'],
    codecs: { audio: [usePCMU(), useOPUS()] },
  })
  t.teardown(() => connection.close())
  const track = new MediaStreamTrack({ kind: 'audio' })
  connection.addTransceiver(track, { direction: 'sendrecv' })
  const heard: Buffer[] = []
  // werift passes a track only packets whose SSRC the SDP announced. Browsers match by payload type (RFC 8843 §9.2).
  const listen = () => {
    takeRepeats(connection)
    connection.dtlsTransports[0]?.onRtp.subscribe(packet => heard.push(packet.payload))
  }
  let sequence = 1000
  return {
    connection,
    listen,
    audio: (from = 0) => decodeG711('PCMU', Buffer.concat(heard.slice(from))),
    heard,
    async send(samples: Int16Array) {
      const start_ms = performance.now()
      for (let at = 0; at + 160 <= samples.length; at += 160) {
        const wait_ms = start_ms + at / 8 - performance.now()
        if (wait_ms > 0) await new Promise(resolve => setTimeout(resolve, wait_ms))
        const header = new RtpHeader({ payloadType: 0, sequenceNumber: sequence, timestamp: sequence * 160, ssrc: 77 })
        sequence++
        track.writeRtp(new RtpPacket(header, encodeG711('PCMU', samples.subarray(at, at + 160))))
      }
    },
  }
}

const connected = (connection: RTCPeerConnection) =>
  new Promise<void>((resolve, reject) => {
    connection.connectionStateChange.subscribe(state => {
      if (state === 'connected') resolve()
      if (state === 'failed') reject(new Error('the connection failed'))
    })
  })

t.test('a calling browser is answered with ICE-lite and DTLS-SRTP and is bridged with a telephone', async t => {
  const session_id = await w.session()
  const phone = await w.peer()
  const { leg_id: plain } = await w.answeredLeg(session_id, phone)
  const user = browser(t)
  await client.request('leg.open', {
    session_id,
    leg_id: 'user',
    kind: 'webrtc',
    policy: { ...POLICY, codecs: ['PCMU', 'OPUS'] },
  })
  await user.connection.setLocalDescription(await user.connection.createOffer())
  const offer = user.connection.localDescription?.sdp ?? ''
  t.match(await client.request('leg.remote_offer', { leg_id: 'user', sdp: offer }), {
    codecs: ['PCMU', 'OPUS'],
    hold: false,
  })
  const answer = await client.request('leg.local_answer', { leg_id: 'user', prefer_leg: plain })
  t.match(answer, { codec: 'PCMU', direction: 'sendrecv' })
  for (const line of [
    /^a=ice-lite/m,
    /^a=setup:passive/m,
    /^a=rtcp-mux/m,
    /^a=fingerprint:sha-256 ([0-9A-F]{2}:){31}/m,
    /^a=group:BUNDLE 0/m,
    /^a=candidate:1 1 UDP \d+ 127\.0\.0\.1 \d+ typ host/m,
    /^m=audio \d+ UDP\/TLS\/RTP\/SAVPF 0/m,
  ])
    t.match(answer.sdp, line)
  t.match(await client.request('bridge', { a: plain, b: 'user' }), { mode: 'relay' })
  const up = connected(user.connection)
  await user.connection.setRemoteDescription({ type: 'answer', sdp: answer.sdp })
  user.listen()
  await up
  await Promise.all([user.send(tone(1000, 1000)), phone.send(tone(600, 1000))])
  t.equal(strongestHz(await phone.sound(600)), 1000)
  await until('the browser hears the telephone', () => sounding(user.audio()).length >= 600 * 8)
  const heard = sounding(user.audio())
  t.equal(strongestHz(heard), 600)
  t.ok(Math.abs(toneLevelDbm0(heard, 600) + 10) < 1)
  t.match(await client.request('leg.stats', { leg_id: 'user' }), { srtp_dropped: 0, codec: 'PCMU', secured: true })
  await client.request('session.close', { session_id })
})

t.test('a called browser answers our offer and hears what is played', async t => {
  const session_id = await w.session()
  const user = browser(t)
  await client.request('leg.open', {
    session_id,
    leg_id: 'called',
    kind: 'webrtc',
    policy: { ...POLICY, codecs: ['PCMU'] },
  })
  const { sdp } = await client.request('leg.local_offer', { leg_id: 'called' })
  t.match(sdp, /^a=setup:actpass/m)
  await user.connection.setRemoteDescription({ type: 'offer', sdp })
  await user.connection.setLocalDescription(await user.connection.createAnswer())
  const up = connected(user.connection)
  const answered = await client.request('leg.remote_answer', {
    leg_id: 'called',
    sdp: user.connection.localDescription?.sdp ?? '',
  })
  t.match(answered, { codec: 'PCMU', direction: 'sendrecv' })
  user.listen()
  await up
  await until('silence while nothing plays', () => user.heard.length >= 50)
  t.ok(levelDbm0(user.audio()) < -60)
  await client.request('play.start', {
    leg_id: 'called',
    play_id: 'hello',
    loop: 1,
    sources: [{ kind: 'tone', hz: [800], on_ms: 600, off_ms: 0, total_ms: 600 }],
  })
  await w.event('play.ended', ({ play_id }) => play_id === 'hello')
  await until('the browser hears what is played', () => sounding(user.audio()).length >= 500 * 8)
  t.equal(strongestHz(sounding(user.audio())), 800)
  await client.request('session.close', { session_id })
})

t.test(
  'a browser leg refuses an offer without ICE, DTLS or rtcp-mux, and a certificate with the wrong fingerprint',
  async t => {
    const session_id = await w.session()
    await client.request('leg.open', { session_id, leg_id: 'picky', kind: 'webrtc', policy: POLICY })
    const phone = await w.peer()
    const offer = (sdp: string) => reasonOf(client.request('leg.remote_offer', { leg_id: 'picky', sdp }))
    t.equal(await offer(phone.sdp()), 'srtp_required')
    const user = browser(t)
    await user.connection.setLocalDescription(await user.connection.createOffer())
    const sdp = user.connection.localDescription?.sdp ?? ''
    t.equal(await offer(sdp.replace(/a=rtcp-mux\r\n/g, '')), 'srtp_required')
    t.equal(await offer(sdp.replace(/a=ice-pwd:.*\r\n/g, '')), 'srtp_required')
    t.equal(await offer(sdp.replaceAll('a=setup:actpass', 'a=setup:passive')), 'srtp_required')
    const forged = sdp
      .replace(/(a=fingerprint:sha-256 )..:/g, '$100:')
      .replace(/(a=fingerprint:sha-256 00:)00/g, '$101')
    t.equal(await offer(forged), 'not refused')
    const answer = await client.request('leg.local_answer', { leg_id: 'picky' })
    await user.connection.setRemoteDescription({ type: 'answer', sdp: answer.sdp })
    user.listen()
    await w.event('leg.srtp_failed', ({ leg_id }) => leg_id === 'picky')
    await client.request('session.close', { session_id })
  },
)

t.test('until it nominates a pair, a browser may use any that a check proved, and is answered there', async t => {
  const { parseMessage, Message, classes, methods } = await import('werift')
  const credentials = { local_ufrag: 'us', local_pwd: 'p'.repeat(22) }
  const paths: string[] = []
  const told: string[] = []
  const ice = new IceLite({
    ...{ credentials, stun: { parseMessage, Message, classes, methods }, now_ms: () => 0 },
    send: () => told.push('answered'),
    onPath: ({ address }) => paths.push(address),
    onProved: proved => told.push(proved.map(({ address }) => address).join(' ')),
  })
  ice.setRemote('them')
  const at = (address: string) => ({ address, port: 4000 })
  const check = (address: string, nominates = false): void => {
    const message = new Message(methods.BINDING, classes.REQUEST)
    message.setAttribute('USERNAME', 'us:them')
    message.setAttribute('ICE-CONTROLLING', 1n as never)
    if (nominates) message.setAttribute('USE-CANDIDATE', true as never)
    message.addMessageIntegrity(Buffer.from(credentials.local_pwd)).addFingerprint()
    ice.receive(message.bytes, at(address))
  }
  t.notOk(ice.uses(at('192.0.2.1')), 'nothing is proved yet')
  check('192.0.2.1')
  check('192.0.2.2')
  t.same(paths, ['192.0.2.1'], 'a second check moves nothing')
  t.ok(ice.uses(at('192.0.2.2')))
  t.notOk(ice.uses(at('192.0.2.3')), 'a source without a check')
  t.same(paths, ['192.0.2.1', '192.0.2.2'], 'the path follows what the browser uses')
  check('192.0.2.1', true)
  t.same(paths, ['192.0.2.1', '192.0.2.2', '192.0.2.1'])
  t.same(
    told,
    ['', '192.0.2.1', 'answered', '192.0.2.1 192.0.2.2', 'answered', '', 'answered'],
    'the stream knows each pair before the browser has its answer, and none besides a nominated one',
  )
  t.notOk(ice.uses(at('192.0.2.2')), 'after the nomination the other pairs do not count')
  t.ok(ice.uses(at('192.0.2.1')))
})

t.test('an ICE check with a wrong password and a DTLS handshake before any check get no answer', async t => {
  const { parseMessage, Message, classes, methods } = await import('werift')
  const prepared = await createBrowserTransports(systemClock).prepare()
  const sent: Buffer[] = []
  const proved: unknown[] = []
  const transport = prepared.open({
    send: packet => sent.push(packet),
    onChange: () => t.fail('no path was proved'),
    onProved: paths => proved.push(...paths),
    onSilent: () => t.fail('nobody was silent'),
    onFailed: () => t.fail('no handshake began'),
  })
  t.ok(transport instanceof BrowserTransport)
  transport.setRemote({ algorithm: 'sha-256', fingerprint: '00', setup: 'active', ice_ufrag: 'them', ice_pwd: 'x' })
  const from = { address: '192.0.2.1', port: 4000 }
  const check = (username: string, password: string, controlled = false) => {
    const message = new Message(methods.BINDING, classes.REQUEST)
    message.setAttribute('USERNAME', username)
    message.setAttribute(controlled ? 'ICE-CONTROLLED' : 'ICE-CONTROLLING', 1n as never)
    message.addMessageIntegrity(Buffer.from(password)).addFingerprint()
    return message.bytes
  }
  const { ice_ufrag, ice_pwd } = prepared.side
  transport.receive(check(`${ice_ufrag}:them`, 'wrong'), from)
  transport.receive(check(`${ice_ufrag}:other`, ice_pwd), from)
  transport.receive(Buffer.from('16fefd000000000000000000', 'hex'), from)
  transport.receive(Buffer.alloc(20), from)
  t.equal(sent.length, 0)
  t.same(proved, [])
  transport.receive(check(`${ice_ufrag}:them`, ice_pwd, true), from)
  t.equal(sent.length, 1)
  const conflict = parseMessage(sent[0] ?? Buffer.alloc(0), Buffer.from(ice_pwd))
  t.equal(conflict?.messageClass, classes.ERROR, 'two controlled peers conflict: 487')
  transport.receive(check(`${ice_ufrag}:them`, ice_pwd), from)
  t.equal(parseMessage(sent[1] ?? Buffer.alloc(0), Buffer.from(ice_pwd))?.messageClass, classes.RESPONSE)
  transport.close()
})

/** An ICE check of a browser whose user name is `them`. */
async function checkOf({ ice_ufrag, ice_pwd }: { readonly ice_ufrag: string; readonly ice_pwd: string }) {
  const { Message, classes, methods } = await import('werift')
  const message = new Message(methods.BINDING, classes.REQUEST)
  message.setAttribute('USERNAME', `${ice_ufrag}:them`)
  message.setAttribute('ICE-CONTROLLING', 1n as never)
  return message.addMessageIntegrity(Buffer.from(ice_pwd)).addFingerprint().bytes
}

t.test('a browser that sends no checks is silent: from its SDP or last check on, until the next one', async t => {
  const clock = new ManualClock()
  const prepared = await createBrowserTransports(clock).prepare()
  const silences: number[] = []
  const transport = prepared.open({
    ...{ send: () => undefined, onChange: () => undefined, onProved: () => undefined },
    onSilent: for_ms => silences.push(for_ms),
    onFailed: detail => t.fail(detail),
  })
  const packet = await checkOf(prepared.side)
  const check = () => transport.receive(packet, { address: '192.0.2.1', port: 4000 })
  clock.advance(100_000)
  t.same(silences, [], 'it is still called')
  transport.setRemote({ algorithm: 'sha-256', fingerprint: '00', setup: 'active', ice_ufrag: 'them', ice_pwd: 'x' })
  clock.advance(25_000)
  t.same(silences, [])
  clock.advance(10_000)
  t.same(silences, [30_000, 35_000], 'it was never there')
  check()
  silences.length = 0
  for (let checks = 0; checks < 30; checks++) {
    clock.advance(5000)
    check()
  }
  t.same(silences.splice(0), [0], 'it is there, which is told once')
  clock.advance(70_000)
  t.same(silences, [30_000, 35_000, 40_000, 45_000, 50_000, 55_000, 60_000, 65_000, 70_000])
  check()
  clock.advance(25_000)
  t.same(silences.splice(0).slice(9), [0], 'it is there again')
  transport.close()
  clock.advance(100_000)
  t.same(silences, [])
  t.equal(clock.pending, 0)
})

t.test('a browser whose handshake failed is silent', async t => {
  const clock = new ManualClock()
  const prepared = await createBrowserTransports(clock).prepare()
  const browser = await dtlsClient()
  const silences: number[] = []
  const faults: string[] = []
  const transport = prepared.open({
    send: packet => browser.receive(packet),
    onChange: () => t.fail('there are keys'),
    onProved: () => undefined,
    onSilent: for_ms => silences.push(for_ms),
    onFailed: detail => faults.push(detail),
  })
  t.teardown(() => transport.close())
  transport.setRemote({ algorithm: 'sha-256', fingerprint: '00', setup: 'active', ice_ufrag: 'them', ice_pwd: 'x' })
  const from = { address: '192.0.2.1', port: 4000 }
  transport.receive(await checkOf(prepared.side), from)
  browser.connect(data => setImmediate(() => transport.receive(data, from))).catch(() => undefined)
  await until('the handshake has failed', () => faults.length > 0)
  for (let checks = 0; checks < 8; checks++) {
    clock.advance(5000)
    transport.receive(await checkOf(prepared.side), from)
  }
  t.same(silences, [30_000, 35_000, 40_000])
  transport.close()
  t.equal(clock.pending, 0)
})

t.test('the worker tells how long a browser has been silent', async t => {
  const looks: (() => void)[] = []
  let ahead_ms = 0
  const clock: Clock = {
    ...systemClock,
    monotonic_ms: () => systemClock.monotonic_ms() + ahead_ms,
    every(period_ms, run) {
      if (period_ms === 5000) looks.push(run)
      return systemClock.every(period_ms, run)
    },
  }
  const worker = await startTestWorker({ clock })
  t.teardown(() => worker.stop())
  const session_id = await worker.session()
  const user = browser(t)
  await user.connection.setLocalDescription(await user.connection.createOffer())
  const sdp = user.connection.localDescription?.sdp ?? ''
  for (const leg_id of ['rings', 'gone']) {
    await worker.client.request('leg.open', { session_id, leg_id, kind: 'webrtc', policy: POLICY })
    await worker.client.request('leg.remote_offer', { leg_id, sdp })
  }
  await worker.client.request('leg.local_answer', { leg_id: 'gone' })
  ahead_ms = 70_000
  for (const look of looks) look()
  const { for_ms } = await worker.event('leg.silent', ({ leg_id }) => leg_id === 'gone')
  t.ok(for_ms >= 70_000, `${for_ms} ms`)
  t.notOk(worker.events('leg.silent').some(({ leg_id }) => leg_id === 'rings'))
})

t.test('a browser that repeats its flights, because our answer is late, is connected all the same', async t => {
  const prepared = await createBrowserTransports(systemClock).prepare()
  const browser = await dtlsClient()
  const states: (BrowserState | null)[] = []
  const transport = prepared.open({
    send: packet => browser.receive(packet),
    onChange: state => states.push(state),
    onProved: () => undefined,
    onSilent: () => undefined,
    onFailed: detail => t.fail(detail),
  })
  t.teardown(() => transport.close())
  const { fingerprint } = browser
  transport.setRemote({ algorithm: 'sha-256', fingerprint, setup: 'active', ice_ufrag: 'them', ice_pwd: 'x' })
  const from = { address: '192.0.2.1', port: 4000 }
  transport.receive(await checkOf(prepared.side), from)

  // What the browser sends comes late, each flight twice, and its first datagram once more after all the others.
  let flight: Buffer[] = []
  let hello: Buffer | undefined
  const session = await browser.connect(data => {
    hello ??= data
    flight.push(data)
    if (flight.length > 1) return
    setImmediate(() => {
      const sent = [...flight, ...flight, ...(flight[0] === hello ? [] : [hello as Buffer])]
      flight = []
      for (const datagram of sent) transport.receive(datagram, from)
    })
  })
  await until('both have keys', () => states.at(-1)?.srtp)
  const keys = session.config.keys
  const { receive_key } = states.at(-1)?.srtp ?? {}
  t.same(receive_key, Buffer.concat([keys.localMasterKey, keys.localMasterSalt]), 'both have the same keys')
})
