import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { CompoundPacket, SdesPacket, SenderReportPacket } from 'rtp.js/packets'
import { nodeBufferToDataView } from 'rtp.js/utils'
import { type Clock, systemClock } from '../../../core/runtime/clock.ts'
import { tone } from '../../support/audio.ts'
import t from '../../support/harness/index.ts'
import { POLICY, reasonOf, startTestWorker } from '../../support/media-worker.ts'
import { reportWithVoipMetrics } from '../../support/rtcp.ts'
import { until } from '../../support/wait.ts'

/** The system clock, except for the worker's 10 s statistics timer, which the test fires. */
const rows: (() => void)[] = []
const clock: Clock = {
  ...systemClock,
  every(period_ms, run) {
    if (period_ms !== 10_000) return systemClock.every(period_ms, run)
    rows.push(run)
    return { cancel: () => undefined }
  },
}
const w = await startTestWorker({ clock, reserved_ports: [5060] })
t.teardown(() => w.stop())
const { client } = w

t.test(
  'leg.stats holds loss, jitter, round trip and the peer’s rating from RTCP reports in both directions',
  async t => {
    const rtcp = createSocket('udp4')
    rtcp.bind(0, '127.0.0.1')
    await once(rtcp, 'listening')
    t.teardown(() => rtcp.close())
    const peer = await w.peer()
    const session_id = await w.session()
    await client.request('leg.open', {
      session_id,
      leg_id: 'rated',
      policy: { ...POLICY, codecs: ['PCMU'] },
    })
    const sdp = peer.sdp({ attributes: [`rtcp:${rtcp.address().port}`] })
    await client.request('leg.remote_offer', { leg_id: 'rated', sdp })
    const answer = await client.request('leg.local_answer', { leg_id: 'rated' })
    const port = Number(/m=audio (\d+)/.exec(answer.sdp)?.[1])
    peer.sendTo(port)
    const begun_ms = performance.now()
    await client.request('play.start', {
      leg_id: 'rated',
      play_id: 'p',
      sources: [{ kind: 'tone', hz: [500], on_ms: 1000, off_ms: 0, total_ms: null }],
      loop: 1,
    })
    const report = once(rtcp, 'message') as Promise<[Buffer, { port: number }]>
    await peer.sendImpaired(tone(1000, 2000), { loss: 0.1, jitter_ms: 0, seed: 3 })
    const [bytes, from] = await report
    t.equal(from.port, port + 1, 'RTCP is sent from the odd port')
    const parts = new CompoundPacket(nodeBufferToDataView(bytes)).getPackets()
    const sender = parts.find(part => part instanceof SenderReportPacket)
    t.ok(sender && sender.getPacketCount() > 0)
    t.equal(sender?.getSsrc(), peer.received[0]?.ssrc)
    t.ok(
      parts.some(part => part instanceof SdesPacket),
      'a report carries an SDES packet',
    )

    const ntp = sender?.getNtpSeconds() ?? 0
    const report_of_peer = reportWithVoipMetrics({
      ssrc: peer.ssrc,
      about: sender?.getSsrc() ?? 0,
      lost: 3,
      jitter: 80,
      last_sr: (((ntp & 0xffff) << 16) | ((sender?.getNtpFraction() ?? 0) >>> 16)) >>> 0,
      mos_lq: 39,
    })
    rtcp.send(report_of_peer, port + 1, '127.0.0.1')
    const stats = async () => client.request('leg.stats', { leg_id: 'rated' })
    while ((await stats()).remote_mos === null) await new Promise(resolve => setTimeout(resolve, 10))

    for (const row of rows) row()
    const told = await w.event('leg.stats', event => event.leg_id === 'rated')
    t.match(told, {
      session_id,
      stats: { remote_mos: 3.9, remote_packets_lost: 3, remote_jitter_ms: 10, codec: 'PCMU' },
    })
    // Both reports have crossed since.
    const most_ms = performance.now() - begun_ms
    const { rtt_ms } = told.stats
    t.ok(rtt_ms !== null && rtt_ms >= 0 && rtt_ms <= most_ms, `${rtt_ms} ms within ${most_ms.toFixed()} ms`)
    t.ok(told.stats.packets_lost >= 3 && told.stats.packets_lost <= 20, `${told.stats.packets_lost} of 100 were lost`)
    t.ok(told.stats.mos !== null && told.stats.mos < 4.2, 'loss lowers the MOS')
    const closed = await client.request('leg.close', { leg_id: 'rated' })
    t.ok(closed.packets_received >= told.stats.packets_received)
  },
)

t.test('an SDP that sends media to our own servers is refused', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(session_id, peer)
  const sdp = peer.sdp({ version: 2 }).replace(/m=audio \d+/, 'm=audio 5060')
  t.equal(await reasonOf(client.request('leg.remote_offer', { leg_id, sdp })), 'sdp_malformed')
  await client.request('leg.rollback', { leg_id })
  await client.request('leg.local_offer', { leg_id })
  t.equal(await reasonOf(client.request('leg.remote_answer', { leg_id, sdp })), 'sdp_malformed')
})

t.test('an SDP that sends RTCP to our own servers is refused', async t => {
  const session_id = await w.session()
  const peer = await w.peer()
  const { leg_id } = await w.answeredLeg(session_id, peer)
  const named = peer.sdp({ version: 2, attributes: ['rtcp:5060'] })
  t.equal(await reasonOf(client.request('leg.remote_offer', { leg_id, sdp: named })), 'sdp_malformed')
  const implied = peer.sdp({ version: 2 }).replace(/m=audio \d+/, 'm=audio 5059')
  t.equal(await reasonOf(client.request('leg.remote_offer', { leg_id, sdp: implied })), 'sdp_malformed')
})

t.test(
  'no media is sent to link-local, multicast or broadcast addresses, nor to loopback unless we run on it',
  async t => {
    const outside = await startTestWorker({ host: '192.0.2.7' })
    t.teardown(() => outside.stop())
    for (const [worker, address, allowed] of [
      [w, '127.0.0.1', true],
      [w, '169.254.10.1', false],
      [w, '224.0.1.75', false],
      [w, '255.255.255.255', false],
      [w, '0.0.0.1', false],
      [outside, '127.0.0.1', false],
    ] as const) {
      const session_id = await worker.session()
      const leg_id = `to ${address}`
      await worker.client.request('leg.open', { session_id, leg_id, policy: POLICY })
      const peer = await worker.peer()
      await worker.client.request('leg.remote_offer', { leg_id, sdp: peer.sdp({ address }) })
      await worker.client.request('leg.local_answer', { leg_id })
      await worker.client.request('play.start', {
        leg_id,
        play_id: 'p',
        sources: [{ kind: 'tone', hz: [500], on_ms: 200, off_ms: 0, total_ms: 200 }],
        loop: 1,
      })
      await worker.event('play.ended', event => event.leg_id === leg_id)
      const sent = async () => (await worker.client.request('leg.stats', { leg_id })).packets_sent > 0
      // A packet is counted after it has left.
      if (allowed) await until(`a packet to ${address} is counted`, sent)
      t.equal(await sent(), allowed, address)
    }
  },
)

t.test('a silent peer is reported after 10 s, a peer with wrong SRTP keys after 5 s', async t => {
  const session_id = await w.session()
  const [mute, stranger] = [await w.peer(), await w.peer()]
  const { leg_id } = await w.answeredLeg(session_id, mute)
  await mute.send(tone(1000, 100))
  const policy = { ...POLICY, security: 'sdes_srtp_required' } as const
  await client.request('leg.open', { session_id, leg_id: 'secret', policy })
  const sdp = stranger
    .sdp({ attributes: [`crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${Buffer.alloc(30, 1).toString('base64')}`] })
    .replace('RTP/AVP', 'RTP/SAVP')
  await client.request('leg.remote_offer', { leg_id: 'secret', sdp })
  const answer = await client.request('leg.local_answer', { leg_id: 'secret' })
  stranger.sendTo(Number(/m=audio (\d+)/.exec(answer.sdp)?.[1]))
  const talking = stranger.send(tone(1000, 7000))
  await w.event('leg.srtp_failed', event => event.leg_id === 'secret')
  const silent = await w.event('leg.silent', event => event.leg_id === leg_id)
  t.ok(silent.for_ms >= 10_000, `silent for ${silent.for_ms} ms`)
  await talking
  t.match(await client.request('leg.stats', { leg_id: 'secret' }), { packets_received: 0 })
  await client.request('session.close', { session_id })
})
