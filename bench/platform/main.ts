import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { findCeiling, type LoadResult, startEdgeAlone } from '../edge/world.ts'
import { costOfCalls, printCost } from './cost.ts'
import { type Platform, startPlatform } from './platform.ts'

// Measures the calls per second that the whole platform sustains from a trunk's peer to its target, with admission,
// price, media ports and CDR. The reference is the edge with only a minimal B2BUA behind it. A sustained rate has no
// failure and no retransmission.
//
//   npm run bench -- platform [--seconds 8] [--most 1000] [--step 10] [--hold 0] [--rate 100]
//   npm run bench -- platform --only cost      measures the cost of a call at that rate, without searching the ceilings

const LEAST_RATIO = 0.4

const { values: given } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    most: { type: 'string', default: '1000' },
    step: { type: 'string', default: '10' },
    /** Length of each call in milliseconds. */
    hold: { type: 'string', default: '0' },
    /** Calls per second while measuring costs. */
    rate: { type: 'string', default: '100' },
    only: { type: 'string' },
  },
})
const [seconds = 0, most = 0, step = 0, hold_ms = 0] = [given.seconds, given.most, given.step, given.hold].map(Number)
const rate = Number(given.rate)

interface Subject {
  calls(rate: number, calls: number, hold_ms: number): Promise<LoadResult>
  stop(): Promise<void>
}

const cost = await withPlatform(platform => costOfCalls(platform, rate, seconds))
printCost(cost)
if (given.only === 'cost') process.exit(cost.failed > 0 ? 1 : 0)

const edge_alone = await ceilingOf('edge alone', startEdgeAlone)
const platform = await ceilingOf('whole platform', startPlatform)
const ratio = platform / edge_alone
const bad = ratio < LEAST_RATIO
console.log(
  `whole platform ${platform} calls/s, edge alone ${edge_alone} calls/s: ${ratio.toFixed(2)} x ` +
    `(limit ${LEAST_RATIO})${bad ? ' BELOW' : ''}`,
)
mkdirSync('bench/results', { recursive: true })
const results = { at: new Date().toISOString(), limit_ratio: LEAST_RATIO, seconds, edge_alone, platform, ratio, cost }
writeFileSync('bench/results/platform.json', `${JSON.stringify(results, null, 2)}\n`)
process.exit(bad ? 1 : 0)

async function ceilingOf(name: string, start: () => Promise<Subject>): Promise<number> {
  console.log(`${name}:`)
  const subject = await start()
  try {
    // Warm up: the compilation of hot paths must not limit the rate.
    await subject.calls(30, 300, hold_ms)
    return await findCeiling(rate => subject.calls(rate, rate * seconds, hold_ms), { step, most })
  } finally {
    await subject.stop()
  }
}

async function withPlatform<T>(work: (platform: Platform) => Promise<T>): Promise<T> {
  const platform = await startPlatform()
  try {
    await platform.calls(30, 300, 0)
    return await work(platform)
  } finally {
    await platform.stop()
  }
}
