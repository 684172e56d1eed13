import { setTimeout as pause } from 'node:timers/promises'
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
  readonly level: boolean
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
    const looks = new Map<string, number[]>(PROCESSES.filter(name => name !== 'sandbox').map(name => [name, []]))
    await pause(WARM_UP_MS)
    for (const until_ms = performance.now() + duration_ms - WARM_UP_MS; performance.now() < until_ms; ) {
      for (const [name, list] of looks) list.push(memoryOf(pidOf(town.folder, name)).own)
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

function judged(name: string, list: readonly number[]): UnderCalls {
  const third = Math.floor(list.length / 3)
  const [begin, middle, end] = [0, 1, 2].map(at =>
    Number((slopeOf(list.slice(at * third, (at + 1) * third)) * (60_000 / LOOK_MS)).toFixed(2)),
  )
  const [first = 0, last = 0] = [list[0], list.at(-1)]
  return { name, first, last, slopes: [begin ?? 0, middle ?? 0, end ?? 0], level: (end ?? 0) < LEVEL }
}

export function tellUnderCalls(all: readonly UnderCalls[]): void {
  const heads = ['process', 'first', 'last', '1st third', '2nd third', '3rd third']
  const line = (cells: readonly string[]): string =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(11) : cell.padStart(11))).join('')
  console.log('own memory in MiB, and MiB a minute in each third of the time')
  console.log(line(heads))
  for (const { name, first, last, slopes, level } of all)
    console.log(`${line([name, ...[first, last, ...slopes].map(one => one.toFixed(1))])}${level ? '' : '  GROWS'}`)
}
