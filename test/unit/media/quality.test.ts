import { CompoundPacket, SenderReportPacket, VmExtendedReport, XrPacket } from 'rtp.js/packets'
import { dataViewToNodeBuffer } from 'rtp.js/utils'
import type { Settled } from '../../../core/domain/codecs/negotiate.ts'
import { mosOfR, rFactor } from '../../../media/quality/emodel.ts'
import { legStats } from '../../../media/quality/leg-stats.ts'
import { readVoipMetrics } from '../../../media/quality/xr.ts'
import type { StreamStats } from '../../../native/index.ts'
import t from '../../support/harness/index.ts'
import { fc } from '../../support/properties.ts'

t.test('the E-model matches the known values of G.107 and G.113', async t => {
  const clean = { loss: 0, burst_ratio: 1, delay_ms: 0 } as const
  t.equal(rFactor({ codec: 'PCMU', ...clean }), 93.2)
  t.equal(mosOfR(93.2).toFixed(2), '4.41', 'G.107 annex B')
  t.equal(mosOfR(50).toFixed(2), '2.58')
  t.equal(mosOfR(0), 1)
  t.equal(mosOfR(100), 4.5)
  t.equal(rFactor({ codec: 'G729', ...clean }).toFixed(1), '82.2', 'Ie of G.729A is 11')
  // 1 % random loss on G.711 with concealment: 95 · 1 / (1 + 25.1) = 3.64.
  t.equal(rFactor({ codec: 'PCMA', ...clean, loss: 0.01 }).toFixed(2), '89.56')
  t.ok(
    rFactor({ codec: 'PCMA', ...clean, loss: 0.05, burst_ratio: 3 }) < rFactor({ codec: 'PCMA', ...clean, loss: 0.05 }),
  )
  t.equal(rFactor({ codec: 'PCMU', ...clean, delay_ms: 150 }).toFixed(1), '89.6')
})

t.test('property: more loss or delay never raises the rating, and the MOS stays between 1 and 4.5', async t => {
  const anything = fc.record({
    codec: fc.constantFrom('PCMU' as const, 'G729' as const, 'OPUS' as const),
    loss: fc.double({ min: 0, max: 1, noNaN: true }),
    burst_ratio: fc.double({ min: 1, max: 10, noNaN: true }),
    delay_ms: fc.double({ min: 0, max: 2000, noNaN: true }),
  })
  fc.assert(
    fc.property(anything, fc.double({ min: 0, max: 0.5, noNaN: true }), (call, more) => {
      const r = rFactor(call)
      const worse = rFactor({ ...call, loss: Math.min(1, call.loss + more), delay_ms: call.delay_ms + more * 100 })
      const mos = mosOfR(r)
      return worse <= r + 1e-9 && mos >= 1 && mos <= 4.5
    }),
  )
  t.pass('held')
})

t.test('VoIP metrics of RTCP XR are read; absent or damaged ones are ignored', async t => {
  const metrics = new VmExtendedReport()
  metrics.setSsrc(7)
  metrics.setMosLQ(41)
  metrics.setMosCQ(127)
  metrics.setRFactor(90)
  metrics.setLossRate(64)
  metrics.setRoundTripDelay(120)
  const xr = new XrPacket()
  xr.setSsrc(7)
  xr.addReport(metrics)
  const report = new SenderReportPacket()
  report.setSsrc(7)
  const compound = new CompoundPacket()
  compound.addPacket(report)
  compound.addPacket(xr)
  compound.serialize()
  const bytes = dataViewToNodeBuffer(compound.getView())
  t.strictSame(readVoipMetrics(bytes), {
    mos_listening: 4.1,
    mos_conversational: null,
    r_factor: 90,
    loss: 0.25,
    discard: 0,
    round_trip_ms: 120,
  })
  t.equal(readVoipMetrics(bytes.subarray(0, 28)), null)
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 6 }),
      fc.nat(bytes.length),
      (changes, length) => {
        const damaged = Buffer.from(bytes.subarray(0, length))
        for (const [at, value] of changes) if (at < length) damaged[at] = value
        const read = readVoipMetrics(damaged)
        return read === null || (read.loss >= 0 && read.loss < 1)
      },
    ),
  )
  t.pass('no damaged packet throws')
})

t.test('a leg is rated by what it received, and has no rating before the first packet', async t => {
  const counters = {
    packets_received: 950,
    bytes_received: 152_000,
    packets_sent: 1000,
    bytes_sent: 160_000,
    packets_lost: 50,
    packets_duplicate: 0,
    packets_reordered: 0,
    loss_bursts: 50,
    longest_burst: 1,
    jitter_ms: 3.1512,
    jitter_max_ms: 9,
    jitter_mean_ms: 4,
    without_media_ms: 0,
    rtt_ms: 40,
    remote_fraction_lost: 0,
    remote_packets_lost: 2,
    remote_jitter_ms: 1.005,
    first_packet_at: Date.UTC(2026, 0, 2, 3, 4, 5),
    last_packet_at: Date.UTC(2026, 0, 2, 3, 4, 25),
    strangers_dropped: 4,
    malformed_dropped: 1,
    policed_dropped: 0,
    unexpected_dropped: 0,
    srtp_auth_failed: 2,
    srtp_replayed: 1,
    ssrc_changes: 0,
    keys_received: 0,
    send_failed: 0,
    rtcp_received: 1,
    rtcp_sent: 1,
    concealed_frames: 0,
    late_frames: 0,
    jitter_buffer_ms: 0,
    receive_codec: 'PCMU',
    send_codec: 'PCMU',
    latched: true,
  } satisfies StreamStats
  const settled: Settled = {
    codec: 'PCMU',
    send: { codec: 'PCMU', payload_type: 0 },
    receive: [{ codec: 'PCMU', payload_type: 0 }],
    ptime_ms: 20,
    maxptime_ms: null,
    encoder: {},
    telephone_event: null,
    comfort_noise: null,
    also_receive: { events: [], comfort_noise: [] },
    silence_frames: false,
    direction: 'sendrecv',
    hold: false,
    remote: { address: '10.0.0.9', rtp_port: 4000, rtcp_port: 4001, rtcp_mux: false },
    srtp: null,
    dtls: null,
  }
  const latched = { address: '198.51.100.4', port: 61_000 }
  const stats = legStats(counters, { settled, codecs: [], latched, voip_metrics: null, browser: null })
  t.match(stats, {
    codec: 'PCMU',
    secured: false,
    jitter_ms: 3.15,
    first_packet_at: '2026-01-02T03:04:05.000Z',
    srtp_dropped: 3,
    packets_discarded: 8,
    jitter_mean_ms: 4,
    remote_address: '198.51.100.4',
    remote_port: 61_000,
    signalled_address: '10.0.0.9',
    remote_mos: null,
  })
  // 5 % random loss: Ie,eff = 95 · 5 / 30.1 = 15.8; 60 ms one way: Id = 1.4; R = 76.
  t.equal(stats.r_factor, 76)
  t.ok(stats.mos !== null && stats.mos > 3.8 && stats.mos < 3.95)
  t.match(legStats(null, { settled: null, codecs: [], latched: null, voip_metrics: null, browser: null }), {
    mos: null,
    codec: null,
    packets_sent: 0,
  })
  t.equal(
    legStats(
      { ...counters, packets_received: 0 },
      { settled, codecs: [], latched: null, voip_metrics: null, browser: null },
    ).mos,
    null,
  )
})
