import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import * as werift from 'werift'
import { encodeG711, tone } from '../../support/audio.ts'
import { dtlsClient } from '../../support/dtls-client.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { POLICY, startTestWorker } from '../../support/media-worker.ts'
import { until } from '../../support/wait.ts'

// A browser on a host with several addresses, by its parts: ICE checks, DTLS and SRTP over sockets of its own.

const PACKETS = 50

async function socketAt(t: Test, address: string): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, address)
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  return socket
}

/** Sends an ICE check that nominates nothing. Resolves with its answer. */
async function check(socket: Socket, port: number, username: string, password: string): Promise<void> {
  const message = new werift.Message(werift.methods.BINDING, werift.classes.REQUEST)
  message.setAttribute('USERNAME', username)
  message.setAttribute('ICE-CONTROLLING', 1n as never)
  message.addMessageIntegrity(Buffer.from(password)).addFingerprint()
  const answered = once(socket, 'message')
  socket.send(message.bytes, port, '127.0.0.1')
  await answered
}

t.test('a browser that sends from another of its addresses before it nominates one loses no sound', async t => {
  const w = await startTestWorker()
  t.teardown(() => w.stop())
  const { client } = w
  const session_id = await w.session()
  const phone = await w.peer()
  const { leg_id: plain } = await w.answeredLeg(session_id, phone)
  await client.request('leg.open', {
    ...{ session_id, leg_id: 'user', kind: 'webrtc' },
    policy: { ...POLICY, codecs: ['PCMU'] },
  })
  const browser = await dtlsClient()
  const offer = [
    ...['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 't=0 0', 'm=audio 9 UDP/TLS/RTP/SAVPF 0', 'c=IN IP4 0.0.0.0'],
    ...['a=ice-ufrag:them', `a=ice-pwd:${'q'.repeat(24)}`, `a=fingerprint:sha-256 ${browser.fingerprint}`],
    ...['a=setup:active', 'a=mid:0', 'a=rtcp-mux', 'a=rtpmap:0 PCMU/8000', 'a=sendrecv', ''],
  ].join('\r\n')
  await client.request('leg.remote_offer', { leg_id: 'user', sdp: offer })
  const { sdp } = await client.request('leg.local_answer', { leg_id: 'user', prefer_leg: plain })
  await client.request('bridge', { a: plain, b: 'user' })
  const given = (line: RegExp): string => line.exec(sdp)?.[1] ?? ''
  const [ufrag, password] = [given(/^a=ice-ufrag:(\S+)/m), given(/^a=ice-pwd:(\S+)/m)]
  const port = Number(given(/^m=audio (\d+)/m))

  const [one, other] = [await socketAt(t, '127.0.0.1'), await socketAt(t, '127.0.0.2')]
  await check(one, port, `${ufrag}:them`, password)
  one.on('message', data => browser.receive(data))
  const srtp = await browser.connect(data => one.send(data, port, '127.0.0.1'))
  // The worker has the keys of DTLS from the moment on which it sends SRTP.
  const keyed = new Promise<void>(resolve => {
    one.on('message', data => {
      if (((data[0] ?? 0) & 0xc0) === 0x80) resolve()
    })
  })
  void phone.send(tone(500, 20_000), () => phone.closed)
  await keyed
  await check(other, port, `${ufrag}:them`, password)
  const samples = tone(1000, PACKETS * 20)
  for (let at = 0; at < PACKETS; at++) {
    const header = new werift.RtpHeader({
      ...{ payloadType: 0, sequenceNumber: 1000 + at, timestamp: at * 160, ssrc: 77, marker: at === 0 },
    })
    const packet = srtp.encrypt(encodeG711('PCMU', samples.subarray(at * 160, (at + 1) * 160)), header)
    other.send(packet, port, '127.0.0.1')
  }
  const { strangers_dropped } = await until('every packet is taken', async () => {
    const stats = await client.request('leg.stats', { leg_id: 'user' })
    return stats.packets_received === PACKETS && stats
  })
  t.equal(strangers_dropped, 0)
  await client.request('session.close', { session_id })
})
