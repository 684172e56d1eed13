import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type EdgeAlone, startEdgeAlone } from './world.ts'

// Compares the CPU time of a call in this tree's edge with that in another built tree's. Both edges run all the time,
// on one core, and calls go to one and the other in turns of half a second. Whatever slows the machine down for longer
// slows both, and neither the core nor the order differs. The middle of the turns counts: in some a compiler or a
// collection of garbage ran, or another guest of the host.

/** The core of both edges. The load and the B2BUAs are free to use the other one. */
const CORE = 1

interface Turns {
  /** Calls per second. */
  readonly rate: number
  readonly turns: number
}

export async function compareInTurns(against: string, { rate, turns }: Turns): Promise<void> {
  const other = join(resolve(against), 'build/bench/edge')
  if (!existsSync(other)) throw new Error(`${other} does not exist: build that tree first`)
  const before = await startEdgeAlone({ folder: other, core: CORE })
  const now = await startEdgeAlone({ core: CORE })
  const calls = Math.max(1, Math.round(rate / 2))
  const pairs: { edge: [number, number]; app: [number, number] }[] = []
  let failed = 0
  const turn = async (world: EdgeAlone): Promise<{ edge: number; app: number }> => {
    const [edge, app] = [await world.measureEdge(), await world.measureApp()]
    failed += (await world.calls(rate, calls, 0)).failed
    const cpu = await world.measureEdge()
    return { edge: cpu.cpu_us - edge.cpu_us, app: (await world.measureApp()).cpu_us - app.cpu_us }
  }
  // Warm up: the compilation of hot paths is not part of a call's cost.
  for (const world of [before, now, before, now]) await world.calls(rate, rate * 3, 0)
  for (let index = 0; index < turns; index++) {
    const first = await turn(index % 2 === 0 ? before : now)
    const second = await turn(index % 2 === 0 ? now : before)
    const [old, fresh] = index % 2 === 0 ? [first, second] : [second, first]
    pairs.push({ edge: [old.edge / calls, fresh.edge / calls], app: [old.app / calls, fresh.app / calls] })
    if ((index + 1) % 10 === 0) report(pairs, failed, other)
  }
  await before.stop()
  await now.stop()
}

function report(pairs: readonly { edge: [number, number]; app: [number, number] }[], failed: number, other: string) {
  console.log(`${pairs.length} turns of each, ${failed} calls failed; before is ${other}`)
  for (const name of ['edge', 'app'] as const) {
    const list = pairs.map(pair => pair[name])
    const change = middle(list.map(([before, now]) => Math.log(now / before)))
    const spread = middle(list.map(([before, now]) => Math.abs(Math.log(now / before) - change)))
    const percent = 100 * (Math.exp(change) - 1)
    // The standard error of a median, from the median deviation (both of a normal distribution).
    const error = (100 * 1.2533 * 1.4826 * spread) / Math.sqrt(list.length)
    const [before, now] = [middle(list.map(([one]) => one)), middle(list.map(([, one]) => one))]
    console.log(
      `  ${name.padEnd(5)} ${before.toFixed(0)} -> ${now.toFixed(0)} us of CPU a call: ` +
        `${percent >= 0 ? '+' : ''}${percent.toFixed(1)} % ± ${error.toFixed(1)}`,
    )
  }
}

const middle = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0
