import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { collectMetrics } from '../../core/runtime/metrics.ts'
import { PROCESSES, pidOf } from '../descriptors.ts'
import { startTown } from '../soak/town.ts'
import { memoryOf, slopeOf } from './watched.ts'

const LOOK_MS = 5000
/** How long each short call talks. */
const HOLD_MS = 5000
const WARM_UP_MS = 5000
/** A process that grows by less than this in the last third, in MiB a minute, has levelled off. */
const LEVEL = 0.5

interface Load {
  readonly minutes: number
  /** Concurrent calls with sound. */
  readonly relayed: number
  /** Short calls per second, in addition. */
  readonly rate: number
}

interface UnderCalls {
  readonly name: string
  /** Own memory in MiB at the first and at the last look. */
  readonly first: number
  readonly last: number
  /** MiB a minute in each third of the time. */
  readonly slopes: readonly [number, number, number]
  /** What the heap of JavaScript held after a collection, in MiB: the least that it had in each third. */
  readonly live: readonly [number, number, number]
  readonly level: boolean
}

/** The memory of a process at each look, in MiB. */
interface Looks {
  readonly own: number[]
  readonly heap: number[]
}

/** Watches the memory of each process of a platform while calls talk and others come and go. */
export async function underCalls({ minutes, relayed, rate }: Load): Promise<UnderCalls[]> {
  const town = await startTown()
  try {
    const talking = await town.talks.connect(relayed)
    const duration_ms = minutes * 60_000
    const sounding = town.talks.talk(talking, duration_ms, pidOf(town.folder, 'media'))
    const short = town.short(rate, Math.max(1, Math.round((rate * duration_ms) / 1000)), HOLD_MS)
    // The sandbox carrier sleeps.
    const looks = new Map<string, Looks>(
      PROCESSES.filter(name => name !== 'sandbox').map(name => [name, { own: [], heap: [] }]),
    )
    await pause(WARM_UP_MS)
    for (const until_ms = performance.now() + duration_ms - WARM_UP_MS; performance.now() < until_ms; ) {
      const heaps = heapsIn(await collectMetrics(join(town.folder, 'run')))
      for (const [name, { own, heap }] of looks) {
        own.push(memoryOf(pidOf(town.folder, name)).own)
        // The supervisor has no metrics.
        heap.push(heaps.get(name) ?? Number.NaN)
      }
      await pause(LOOK_MS)
    }
    const [sound, { failed }] = await Promise.all([sounding, short])
    console.log(`${talking.length} calls talked, ${sound.loss_pct} % of sound lost; ${failed} short calls failed`)
    await town.talks.hangUp()
    return [...looks].map(([name, list]) => judged(name, list))
  } finally {
    await town.stop()
  }
}

/** Returns the used heap of each process in MiB, from the text of `/metrics`. */
function heapsIn(text: string): Map<string, number> {
  const lines = text.matchAll(/^nodejs_heap_size_used_bytes\{process="(\w+)"\} (\S+)$/gm)
  return new Map([...lines].map(([, name = '', bytes]) => [name, Number(bytes) / 2 ** 20]))
}

function judged(name: string, { own, heap }: Looks): UnderCalls {
  const third = Math.floor(own.length / 3)
  const thirds = <T>(of: (from: number, to: number) => T): [T, T, T] => [
    of(0, third),
    of(third, 2 * third),
    of(2 * third, 3 * third),
  ]
  const slopes = thirds((from, to) => Number((slopeOf(own.slice(from, to)) * (60_000 / LOOK_MS)).toFixed(2)))
  const live = thirds((from, to) => Math.min(...heap.slice(from, to)))
  return { name, first: own[0] ?? 0, last: own.at(-1) ?? 0, slopes, live, level: slopes[2] < LEVEL }
}

export function tellUnderCalls(all: readonly UnderCalls[]): void {
  const heads = [
    'process',
    'first',
    'last',
    '1st third',
    '2nd third',
    '3rd third',
    'live heap',
    '2nd third',
    '3rd third',
  ]
  const line = (cells: readonly string[]): string =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(11) : cell.padStart(11))).join('')
  console.log(
    'own memory in MiB, and MiB a minute in each third of the time; the live heap of JavaScript in each third',
  )
  console.log(line(heads))
  for (const { name, first, last, slopes, live, level } of all)
    console.log(
      `${line([name, ...[first, last, ...slopes, ...live].map(one => one.toFixed(1))])}${level ? '' : '  GROWS'}`,
    )
}
