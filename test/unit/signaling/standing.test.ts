import { standingOf } from '../../../signaling/standing.ts'
import t from '../../support/harness/index.ts'

const MINUTE = 60_000
const [NOW, NEVER] = [60 * MINUTE, null]

t.test('a node without the database is cut off while a machine attests it, and alone otherwise', async t => {
  for (const [why, state_ago_ms, peer_ago_ms, attested_ago_ms, standing] of [
    ['it has just written', 2000, NEVER, NEVER, 'whole'],
    ['two heartbeats may fail', 5999, NEVER, NEVER, 'whole'],
    ['a machine alone, without its database', 6000, NEVER, NEVER, 'cut_off'],
    ['for hours', 50 * MINUTE, NEVER, NEVER, 'cut_off'],
    ['machines that all miss their database', 50 * MINUTE, 1000, NEVER, 'cut_off'],
    ['a peer with the database hears it', 9 * MINUTE, 1000, 1000, 'cut_off'],
    ['for ten minutes: its calls are ended by others', 10 * MINUTE, 1000, 1000, 'alone'],
    ['attested before it lost the database, not since', 10 * MINUTE, 1000, 11 * MINUTE, 'cut_off'],
    ['no peer for 11 s', 20_000, 11_999, 11_999, 'cut_off'],
    ['no peer for 12 s', 20_000, 12_000, 12_000, 'alone'],
    ['both lost at once, 12 s ago', 12_000, 12_000, 12_000, 'alone'],
    ['the peer had gone before the database', 12_000, 12_000 + 12_001, NEVER, 'cut_off'],
    ['no peer for long, but the database', 1000, 10 * MINUTE, NEVER, 'whole'],
  ] as const) {
    const before = (ago_ms: number | null) => (ago_ms === null ? null : NOW - ago_ms)
    const contacts = {
      ...{ state_ms: NOW - state_ago_ms, peer_ms: before(peer_ago_ms), attested_ms: before(attested_ago_ms) },
    }
    t.equal(standingOf(contacts, NOW), standing, why)
  }
})
