import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { State } from '../../core/state/index.ts'
import { awaitEnds, countOf, reasons, watchAge, wrongRows } from './left.ts'
import { allReady, type Carried, carry, listed, type Machine, onMachines, refusedByLoad } from './machines.ts'
import { type Strain, watchStrain } from './strain.ts'

// Two machines carry calls, and each of their processes is killed in turn. Only the calls of a killed process fail,
// none stays in progress, and slots and money are exact. The rate is one that both machines carry without kills. Calls
// that were refused while the machine itself stood still are counted apart (`strain.ts`).

const HOLD_MS = 3000
const WINDOW_S = 15
const KILL_AFTER_MS = 5000
/** Windows without a kill and without a failed call, one after the other: the machines carry the rate. */
const QUIET_WINDOWS = 2
/** Machines that do not carry even this are no measure. */
const LEAST_RATE = 1
/** Of design section 9: after its end a call is in progress for this long at most. */
const LIMIT_MS = 30_000
const VICTIMS = ['signaling', 'media', 'edge', 'control'] as const
/** How exactly the time is known at which SIPp has placed a call. */
const PLACED_WITHIN_MS = 1500
const SEEN_MS = 1000

type Victim = (typeof VICTIMS)[number]

interface Kill {
  readonly victim: Victim
  /** Its place among the machines. */
  readonly machine: number
}

interface Window {
  readonly carried: readonly Carried[]
  /** After the begin of the window. */
  readonly killed_ms: number
  /** How long after the kill the machine said that it takes calls again. */
  readonly back_ms: number
}

interface Judged {
  readonly own: number
  /** How long after the kill the last of them was placed. */
  readonly back_ms: number
  /** Why calls failed that the killed process did not have. */
  readonly foreign: readonly string[]
  /** Calls that were refused while the disk or the cores stood still. */
  readonly by_load: number
}

/** Runs it for so many minutes under so many calls a second, prints what it found, and returns whether all held. */
export async function kills(minutes: number, rate: number): Promise<boolean> {
  const whole = { clock_ms: 0, by_wire: false } as const
  const strain = await watchStrain()
  try {
    return await onMachines([whole, whole], async (machines, state) => {
      const carries = await carriedRate(machines, rate, strain)
      if (carries === null) console.log(`two machines do not carry ${LEAST_RATE} calls/s here: nothing was killed`)
      return carries !== null && (await run(state, machines, { minutes, rate: carries, strain }))
    })
  } finally {
    await strain.stop()
  }
}

/** Halves the rate until the machines carry it without a failed call; null: they carry none. */
async function carriedRate(machines: readonly Machine[], wanted: number, strain: Strain): Promise<number | null> {
  for (let rate = wanted; rate >= LEAST_RATE; rate /= 2)
    // The first window of a rate may find code that has not run yet.
    for (let windows = 0, quiet = 0; windows < 2 * QUIET_WINDOWS; windows++) {
      const { carried } = await oneWindow(machines, rate, null)
      const whys = carried.flatMap(({ failures }) => failures.map(({ why }) => why))
      const failed = carried.map(one => one.failed).join(' and ')
      console.log(
        `${rate} calls/s without a kill: ${failed} of ${carried[0]?.calls} calls failed${strain.told()}${listed(whys)}`,
      )
      quiet = carried.every(one => one.failed === 0) ? quiet + 1 : 0
      if (quiet === QUIET_WINDOWS) return rate
    }
  return null
}

async function run(
  state: State,
  machines: readonly Machine[],
  { minutes, rate, strain }: { readonly minutes: number; readonly rate: number; readonly strain: Strain },
): Promise<boolean> {
  const age = watchAge(state)
  let [count, own, foreign, by_load] = [0, 0, 0, 0]
  const until_ms = performance.now() + minutes * 60_000
  for (; performance.now() < until_ms; count++) {
    const victim = VICTIMS[Math.floor(count / machines.length) % VICTIMS.length] ?? 'signaling'
    const kill = { victim, machine: count % machines.length }
    const window = await oneWindow(machines, rate, kill)
    const judged = judge(window, kill, strain)
    own += judged.own
    foreign += judged.foreign.length
    by_load += judged.by_load
    const last = judged.own === 0 ? '' : `, the last placed ${(judged.back_ms / 1000).toFixed(1)} s after it`
    console.log(
      `kill -9 of ${victim} on machine ${kill.machine + 1}: ${judged.own} of its calls failed${last}; ` +
        `${judged.foreign.length} others${judged.by_load === 0 ? '' : `, ${judged.by_load} by load`}` +
        `${strain.told()}${listed(judged.foreign)}`,
    )
    await allReady(machines)
  }
  await awaitEnds(state, 2 * LIMIT_MS)
  const oldest_ms = age.stop()
  const wrong = await wrongRows(state)
  const calls = await countOf(state)
  console.log(
    `${count} kills under ${rate} calls/s: ${calls} calls, ${own} of the killed processes failed, ` +
      `${foreign} others, ${by_load} were refused while the machine stood still; ` +
      `the oldest call in progress was ${(oldest_ms / 1000).toFixed(1)} s old`,
  )
  for (const { reason, count } of await reasons(state)) console.log(`  ${count} calls ended with ${reason}`)
  for (const sentence of wrong) console.log(`  ${sentence}`)
  return foreign === 0 && oldest_ms <= HOLD_MS + LIMIT_MS && wrong.length === 0
}

/** Runs calls over all machines, `rate` a second together, and kills a process meanwhile. */
async function oneWindow(machines: readonly Machine[], rate: number, kill: Kill | null): Promise<Window> {
  const load = { rate: rate / machines.length, seconds: WINDOW_S, hold_ms: HOLD_MS }
  const begun_ms = performance.now()
  const loads = machines.map(machine => carry(machine, load))
  let [killed_ms, back_ms] = [0, 0]
  const victims = kill && machines[kill.machine]
  if (victims) {
    await pause(KILL_AFTER_MS)
    killed_ms = performance.now() - begun_ms
    process.kill(pidOf(victims, kill.victim), 'SIGKILL')
    // Its other processes need a moment to see that it is gone.
    await pause(SEEN_MS)
    await allReady([victims])
    back_ms = performance.now() - begun_ms - killed_ms
  }
  return { carried: await Promise.all(loads), killed_ms, back_ms }
}

/** A killed process has the calls of its machine that were in progress, or placed until the machine was ready again. */
function judge({ carried, killed_ms, back_ms: ready_ms }: Window, { victim, machine }: Kill, strain: Strain): Judged {
  let [own, back_ms, by_load] = [0, 0, 0]
  const foreign: string[] = []
  for (const [at, load] of carried.entries()) {
    const { failed, failures } = load
    const may = at === machine && victim !== 'control'
    for (const failure of failures) {
      const { placed_ms, why } = failure
      const after_ms = (placed_ms ?? killed_ms) - killed_ms
      if (may && after_ms >= -HOLD_MS - PLACED_WITHIN_MS && after_ms <= ready_ms + PLACED_WITHIN_MS) {
        own++
        back_ms = Math.max(back_ms, after_ms)
      } else if (refusedByLoad(load, failure, strain)) by_load++
      else foreign.push(`machine ${at + 1}, placed ${(after_ms / 1000).toFixed(1)} s after the kill: ${why}`)
    }
    // SIPp has written nothing about those that it gave up at its end.
    const unsaid = Math.max(0, failed - failures.length)
    if (may) own += unsaid
    else foreign.push(...Array.from({ length: unsaid }, () => `machine ${at + 1}: SIPp does not say why`))
  }
  return { own, back_ms, foreign, by_load }
}

const pidOf = ({ folder }: Machine, name: Victim): number =>
  Number(readFileSync(join(folder, 'run', `${name}.pid`), 'utf8'))
