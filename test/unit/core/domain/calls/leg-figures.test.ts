import { legFigures, type MeasuredLeg, sumOfLegs } from '../../../../../core/domain/calls/leg-figures.ts'
import t from '../../../../support/harness/index.ts'

const ANSWERED = Date.UTC(2026, 10, 25, 12, 0, 0)
const counters: MeasuredLeg = {
  codec: 'PCMA',
  codecs: [
    { codec: 'PCMU', from: '2026-11-25T12:00:00.000Z' },
    { codec: 'PCMA', from: '2026-11-25T12:00:04.000Z' },
  ],
  secured: false,
  packets_received: 395,
  packets_sent: 400,
  bytes_received: 63_200,
  bytes_sent: 64_000,
  packets_lost: 5,
  packets_late: 2,
  packets_discarded: 3,
  packets_unsent: 1,
  jitter_mean_ms: 2.5,
  jitter_max_ms: 9,
  without_media_ms: 0,
  remote_packets_lost: 4,
  remote_jitter_ms: 1.5,
  rtt_ms: 30,
  mos: 4.2,
  remote_mos: null,
  first_packet_at: new Date(ANSWERED + 120).toISOString(),
  last_packet_at: new Date(ANSWERED + 8000).toISOString(),
  strangers_dropped: 3,
  remote_address: '192.0.2.1',
  remote_port: 4000,
  signalled_address: '10.0.0.1',
  signalled_port: 4000,
}
const measured = {
  leg_id: 'CA1-a',
  side: 'caller',
  answered_ms: ANSWERED,
  ended_ms: ANSWERED + 8000,
  complete: true,
} as const

t.test('figures are the counters of the whole leg', async t => {
  t.match(legFigures(counters, measured), {
    leg_id: 'CA1-a',
    side: 'caller',
    codecs: [{ codec: 'PCMU' }, { codec: 'PCMA' }],
    octets_received: 63_200,
    octets_sent: 64_000,
    jitter_ms: 2.5,
    jitter_max_ms: 9,
    seconds_without_media: 0,
    ended_at: '2026-11-25T12:00:08.000Z',
  })
})

t.test('time without media is the wait for the first packet and the gaps, within the answered time', async t => {
  const seconds = (over: Partial<MeasuredLeg>, of: { answered_ms?: number | null } = {}) =>
    legFigures({ ...counters, ...over }, { ...measured, ...of }).seconds_without_media
  t.equal(seconds({ without_media_ms: 3400 }), 3)
  t.equal(seconds({ first_packet_at: new Date(ANSWERED + 2100).toISOString() }), 2, 'the first packet came late')
  t.equal(seconds({ first_packet_at: new Date(ANSWERED - 5000).toISOString() }), 0, 'early media')
  t.equal(seconds({ first_packet_at: null, packets_received: 0 }), 8, 'no packet at all')
  t.equal(seconds({ without_media_ms: 60_000 }), 8, 'gaps of early media do not count')
  t.equal(seconds({ first_packet_at: null }, { answered_ms: null }), 0, 'a leg that was never answered')
})

t.test('a leg that received nothing has no quality', async t => {
  t.match(legFigures({ ...counters, packets_received: 0 }, measured), {
    jitter_ms: null,
    jitter_max_ms: null,
    mos: null,
  })
})

t.test('the figures of a call are the sums of its legs', async t => {
  const legs = [legFigures(counters, measured), legFigures({ ...counters, packets_received: 5 }, measured)]
  t.match(sumOfLegs(legs), { packets_received: 400, packets_sent: 800, octets_sent: 128_000, packets_lost: 10 })
  t.match(sumOfLegs([]), { packets_received: 0 })
})
