import { setTimeout as pause } from 'node:timers/promises'
import type { State } from '../../core/state/index.ts'
import { freePort } from '../up.ts'
import { openWire, type Wire } from '../wire.ts'
import { awaitEnds, countOf, reasons, watchAge, wrongRows } from './left.ts'
import { allReady, type Carried, carry, listed, type Machine, onMachines, refusedByLoad } from './machines.ts'
import { type Strain, watchStrain } from './strain.ts'

// Two machines whose wall clocks are two hours apart lose their ways to the database and to each other, one after the
// other. Calls go on but for those of a machine that reaches nobody; none is ended or charged twice, or not at all.

const HOUR_MS = 3_600_000
const HOLD_MS = 20_000
/** Before a fault, and after it, calls are placed for so long. */
const AROUND_S = 10
/** After a machine that reaches nobody has fallen silent, others end its calls within this time. */
const LIMIT_MS = 60_000

interface Ways {
  /** The way of the second machine to the database. */
  readonly database: Wire
  /** Between the edges, one to each. */
  readonly links: readonly Wire[]
}

interface Fault {
  readonly name: string
  readonly how: 'blackhole' | 'halfOpen'
  readonly ways: (ways: Ways) => readonly Wire[]
  /** Whether running calls of the second machine end by it. */
  readonly cuts: boolean
  /** Whether the second machine refuses new calls meanwhile. */
  readonly refuses: boolean
}

const all = ({ database, links }: Ways): readonly Wire[] => [database, ...links]

const FAULTS: readonly Fault[] = [
  {
    name: 'machine 2 does not reach the database',
    ...{ how: 'blackhole', ways: ({ database }) => [database], cuts: false, refuses: true },
  },
  {
    name: 'the machines do not reach each other',
    ...{ how: 'blackhole', ways: ({ links }) => links, cuts: false, refuses: false },
  },
  // A machine refuses calls until it has found that its connections are lost.
  { name: 'connections are half open', how: 'halfOpen', ways: all, cuts: false, refuses: true },
  {
    name: 'machine 2 reaches neither the database nor machine 1',
    ...{ how: 'blackhole', ways: all, cuts: true, refuses: true },
  },
]

/** Has each fault last for so many seconds, prints what it found, and returns whether all held. */
export async function partitions(seconds: number, rate: number): Promise<boolean> {
  const settings = [
    { clock_ms: -HOUR_MS, by_wire: false },
    { clock_ms: HOUR_MS, by_wire: true },
  ] as const
  const strain = await watchStrain()
  return onMachines(settings, async (machines, state) => {
    const database = machines[1]?.way
    if (!database) throw new Error('the second machine has no way that can break')
    const links = await linksBy(machines, state)
    const age = watchAge(state)
    let good = true
    try {
      for (const fault of FAULTS) {
        await allReady(machines)
        const carried = await under(fault, machines, { database, links }, { seconds, rate })
        const wrong = judge(fault, carried, strain)
        good &&= wrong.length === 0
        const failed = carried.map(one => one.failed).join(' and ')
        const why = carried.flatMap(({ failures }, at) =>
          failures.map(one => `machine ${at + 1}, ${when(one.placed_ms)}: ${one.why}`),
        )
        const of = `${failed} of ${carried[0]?.calls} calls failed`
        console.log(`${fault.name} for ${seconds} s: ${of}${strain.told()}${listed(why)}`)
        for (const sentence of wrong) console.log(`  WRONG: ${sentence}`)
        await awaitEnds(state, LIMIT_MS)
      }
    } finally {
      for (const link of links) await link.mend().then(() => link.close())
    }
    const oldest_ms = age.stop()
    const wrong = await wrongRows(state)
    console.log(
      `${await countOf(state)} calls, wall clocks two hours apart; the oldest call in progress was ` +
        `${(oldest_ms / 1000).toFixed(1)} s old`,
    )
    for (const { reason, count } of await reasons(state)) console.log(`  ${count} calls ended with ${reason}`)
    for (const sentence of wrong) console.log(`  ${sentence}`)
    return good && wrong.length === 0
  }).finally(() => strain.stop())
}

const when = (placed_ms: number | null): string =>
  placed_ms === null ? 'some time' : `${Math.floor((placed_ms - AROUND_S * 1000) / 5000) * 5} s after the begin`

/** Leads the links of the edges through ways that can break. */
async function linksBy(machines: readonly Machine[], { db }: State): Promise<readonly Wire[]> {
  const links: Wire[] = []
  for (const { link } of machines) {
    const way = await openWire({ host: '127.0.0.1', port: await freePort() }, link)
    links.push(way)
    await db.updateTable('edge_link').set({ port: way.port }).where('port', '=', link.port).execute()
  }
  for (let left_ms = LIMIT_MS; left_ms > 0 && links.some(({ open }) => open === 0); left_ms -= 500) await pause(500)
  if (links.some(({ open }) => open === 0)) throw new Error('the edges do not use the links')
  return links
}

async function under(
  { how, ways: broken }: Fault,
  machines: readonly Machine[],
  ways: Ways,
  { seconds, rate }: { readonly seconds: number; readonly rate: number },
): Promise<readonly Carried[]> {
  const load = { rate: rate / machines.length, seconds: seconds + 2 * AROUND_S, hold_ms: HOLD_MS }
  const loads = machines.map(machine => carry(machine, load))
  await pause(AROUND_S * 1000)
  for (const way of broken(ways)) way[how]()
  await pause(seconds * 1000)
  for (const way of all(ways)) await way.mend()
  return Promise.all(loads)
}

/** Says what should not have failed, in sentences. What was refused while the machine stood still is no fault. */
function judge({ cuts, refuses }: Fault, carried: readonly Carried[], strain: Strain): readonly string[] {
  const [first, second] = carried.map(load => {
    const refused = load.failures.filter(({ why }) => why.startsWith('503'))
    const by_load = refused.filter(failure => refusedByLoad(load, failure, strain))
    return { refused: refused.length - by_load.length, cut: load.failed - refused.length }
  })
  const failed = first ? first.refused + first.cut : 0
  return [
    ...(failed > 0 ? [`${failed} calls of machine 1 failed`] : []),
    ...(second && second.cut > 0 && !cuts ? [`${second.cut} calls of machine 2 were cut`] : []),
    ...(second && second.refused > 0 && !refuses ? [`${second.refused} calls of machine 2 were refused`] : []),
  ]
}
