// Checks that this bench and another one of the same engine contract measure the same for the same engines: `--against
// DIR`, where DIR has build/rtpload, build/udpforward and payloads/. Both generators load each engine in turn.
import { join } from 'node:path'
import { manner, median, type Point } from './bars.ts'
import { command, type Generator, loaded } from './run.ts'

/** The largest allowed difference between the two benches. */
const LIMIT_PCT = 10
/** Ignore a run with more loss: other processes starved it, and late packets in bursts are cheaper to forward. */
const STARVED_PCT = 0.5
const POINTS: readonly Point[] = [
  ...[200, 500, 1000].map(calls => ({ mode: 'relay', calls, tick_us: 1000 })),
  { mode: 'relay', calls: 200, tick_us: 100 },
  { mode: 'srtp-gcm', calls: 200, tick_us: 1000 },
]

interface Measured {
  readonly cpu_us_per_packet: number
  readonly loss_pct: number
}

interface Reading {
  readonly ours: number
  readonly theirs: number
}

/** Prints the comparison. Returns whether all figures agree. */
export async function agreement(
  dir: string,
  own: Generator,
  { reps, seconds, work }: { readonly reps: number; readonly seconds: number; readonly work: string },
): Promise<boolean> {
  const other: Generator = ({ legs, pids, point }) => [
    join(dir, 'build/rtpload'),
    ...['--legs', legs, '--payloads', join(dir, 'payloads'), '--pid', pids, '--cpu', '0', '--rt'],
    ...['--warmup', '1', '--duration', String(seconds), '--tick-us', String(point.tick_us)],
  ]
  const readings = new Map<string, Reading[]>()
  for (let rep = 1; rep <= reps; rep++) {
    for (const point of POINTS) {
      for (const engine of point.mode === 'relay'
        ? ['forwarder', 'rtpengine', 'strowger']
        : ['rtpengine', 'strowger']) {
        const ours = (await loaded(command(engine), point, own, work)) as Measured
        const program = engine === 'forwarder' ? [join(dir, 'build/udpforward')] : command(engine)
        const of = engine === 'forwarder' ? { ...point, mode: 'single' } : point
        const theirs = (await loaded(program, of, other, work)) as { loss_pct: number; engine: Measured }
        const name = [point.mode, point.calls, manner(point.tick_us), engine].join(' | ')
        const reading = { ours: ours.cpu_us_per_packet, theirs: theirs.engine.cpu_us_per_packet }
        const starved = Math.max(ours.loss_pct, theirs.loss_pct) > STARVED_PCT
        readings.set(name, [...(readings.get(name) ?? []), ...(starved ? [] : [reading])])
        const figures = `${reading.ours.toFixed(2)} and ${reading.theirs.toFixed(2)} us/packet`
        console.error(`${rep} ${name}: ${figures}${starved ? ', packets lost: not counted' : ''}`)
      }
    }
  }
  console.log(
    '\n| mode | calls | packets | engine | ours us/packet | theirs | apart | |\n|---|---|---|---|---|---|---|---|',
  )
  let agreed = 0
  for (const [name, pairs] of readings) {
    const apart = ((median(pairs.map(pair => pair.ours / pair.theirs)) ?? Number.NaN) - 1) * 100
    const middle = (of: (pair: Reading) => number) => (median(pairs.map(of)) ?? Number.NaN).toFixed(2)
    const agrees = Math.abs(apart) <= LIMIT_PCT
    if (agrees) agreed++
    const cells = [name, middle(pair => pair.ours), middle(pair => pair.theirs), `${apart.toFixed(1)} %`]
    console.log(`| ${cells.join(' | ')} | ${agrees ? 'agree' : 'APART'} |`)
  }
  console.log(`\n${agreed} of ${readings.size} figures are within ${LIMIT_PCT} % of those of ${dir}.`)
  return agreed === readings.size
}
