import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { findCeiling, type LoadResult, startEdgeAlone } from '../edge/world.ts'
import { startPlatform } from './platform.ts'

// Calls a second that the whole platform holds from a trunk's peer to its target (admission, price, media ports, CDR),
// against those that its edge holds alone with the smallest B2BUA behind it. Held: no failure and no retransmission.
//
//   npm run bench -- platform [--seconds 8] [--most 320] [--step 10] [--hold 0]

const LEAST_RATIO = 0.4

const { values: given } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    most: { type: 'string', default: '320' },
    step: { type: 'string', default: '10' },
    /** How long each call talks, ms. */
    hold: { type: 'string', default: '0' },
  },
})
const [seconds, most, step, hold_ms] = [given.seconds, given.most, given.step, given.hold].map(Number) as [
  number,
  number,
  number,
  number,
]

interface Subject {
  calls(rate: number, calls: number, hold_ms: number): Promise<LoadResult>
  stop(): Promise<void>
}

const edge_alone = await ceilingOf('edge alone', startEdgeAlone)
const platform = await ceilingOf('whole platform', startPlatform)
const ratio = platform / edge_alone
const bad = ratio < LEAST_RATIO
console.log(
  `whole platform ${platform} calls/s, edge alone ${edge_alone} calls/s: ${ratio.toFixed(2)} x ` +
    `(limit ${LEAST_RATIO})${bad ? ' BELOW' : ''}`,
)
mkdirSync('bench/results', { recursive: true })
const results = { at: new Date().toISOString(), limit_ratio: LEAST_RATIO, seconds, edge_alone, platform, ratio }
writeFileSync('bench/results/platform.json', `${JSON.stringify(results, null, 2)}\n`)
process.exit(bad ? 1 : 0)

async function ceilingOf(name: string, start: () => Promise<Subject>): Promise<number> {
  console.log(`${name}:`)
  const subject = await start()
  try {
    // Warm-up: compilation of the hot paths is not part of what is held.
    await subject.calls(30, 300, hold_ms)
    return await findCeiling(rate => subject.calls(rate, rate * seconds, hold_ms), { step, most })
  } finally {
    await subject.stop()
  }
}
