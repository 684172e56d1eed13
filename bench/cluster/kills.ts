import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openState, type State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { runSipp } from '../edge/world.ts'
import { addTrunk, CALLED, PEER_IP, priceAll, TARGET_IP } from '../platform/platform.ts'
import { startPostgres } from '../postgres-server.ts'
import { freePort, startUp } from '../up.ts'
import { failuresIn } from './failures.ts'

// Two machines carry calls, and each of their processes is killed in turn. Only the calls of a killed process fail,
// none stays in progress, and slots and money are exact. The rate is one that both machines carry without kills.

const HOLD_MS = 3000
const WINDOW_MS = 15_000
const KILL_AFTER_MS = 5000
/** Windows without a kill and without a failed call, one after the other: the machines carry the rate. */
const QUIET_WINDOWS = 2
/** Machines that do not carry even this are no measure. */
const LEAST_RATE = 1
/** Of design section 9: after its end a call is in progress for this long at most. */
const LIMIT_MS = 30_000
const VICTIMS = ['signaling', 'media', 'edge', 'control'] as const
const RTP_PORTS = ['16000-23999', '24000-31999'] as const
const LOOK_MS = 500
/** How exactly the time is known at which SIPp has placed a call. */
const PLACED_WITHIN_MS = 1500
/** A machine takes calls again after this long, on cores that are full of work. */
const BACK_MS = 8000

type Victim = (typeof VICTIMS)[number]
type Machine = Awaited<ReturnType<typeof startUp>>

interface Kill {
  readonly victim: Victim
  /** Its place among the machines. */
  readonly machine: number
}

/** What came of the calls of a machine in a window. */
interface Carried {
  readonly calls: number
  readonly failed: number
  /** Why, and when the call was placed, in milliseconds after the begin of the window; null: unknown. */
  readonly failures: readonly { readonly placed_ms: number | null; readonly why: string }[]
}

interface Window {
  readonly carried: readonly Carried[]
  /** After the begin of the window. */
  readonly killed_ms: number
}

interface Judged {
  readonly own: number
  /** How long after the kill the last of them was placed. */
  readonly back_ms: number
  /** Why calls failed that the killed process did not have. */
  readonly foreign: readonly string[]
}

/** Runs it for so many minutes under so many calls a second, prints what it found, and returns whether all held. */
export async function kills(minutes: number, rate: number): Promise<boolean> {
  const server = await startPostgres({ port: await freePort(), settings: {} })
  const machines: Machine[] = []
  let target: ChildProcess | null = null
  let state: State | null = null
  try {
    const database_url = `postgres://strowger@127.0.0.1:${server.port}/postgres`
    const shared = { STROWGER_DATABASE_URL: database_url, STROWGER_MASTER_KEY: randomBytes(32).toString('hex') }
    for (const ports of RTP_PORTS) {
      const settings = { STROWGER_RTP_PORTS: ports, STROWGER_SANDBOX: 'off', STROWGER_LOG: 'fatal' }
      const STROWGER_LINK = `127.0.0.1:${await freePort()}`
      machines.push(await startUp('kills', { ...shared, ...settings, STROWGER_LINK }))
    }
    const [first] = machines
    if (!first) throw new Error('no machine')
    state = await openState({ data_dir: first.folder, database_url })
    const target_port = await freePort()
    await priceAll(state, await addTrunk(first.made, target_port), first.made.numbers[0] ?? '')
    target = spawn('sipp', ['-sn', 'uas', '-i', TARGET_IP, '-p', String(target_port), '-aa', '-nostdin'], {
      cwd: first.folder,
      stdio: 'ignore',
    })
    const carries = await carriedRate(machines, rate)
    if (carries === null) console.log(`two machines do not carry ${LEAST_RATE} calls/s here: nothing was killed`)
    return carries !== null && (await run(state, machines, { minutes, rate: carries }))
  } finally {
    target?.kill('SIGKILL')
    await state?.close()
    for (const machine of machines) await machine.stop()
    await server.remove()
  }
}

/** Halves the rate until the machines carry it without a failed call; null: they carry none. */
async function carriedRate(machines: readonly Machine[], wanted: number): Promise<number | null> {
  for (let rate = wanted; rate >= LEAST_RATE; rate /= 2)
    // The first window of a rate may find code that has not run yet.
    for (let windows = 0, quiet = 0; windows < 2 * QUIET_WINDOWS; windows++) {
      const { carried } = await oneWindow(machines, rate, null)
      const whys = carried.flatMap(({ failures }) => failures.map(({ why }) => why))
      const failed = carried.map(one => one.failed).join(' and ')
      console.log(`${rate} calls/s without a kill: ${failed} of ${carried[0]?.calls} calls failed${listed(whys)}`)
      quiet = carried.every(one => one.failed === 0) ? quiet + 1 : 0
      if (quiet === QUIET_WINDOWS) return rate
    }
  return null
}

async function run(
  state: State,
  machines: readonly Machine[],
  { minutes, rate }: { readonly minutes: number; readonly rate: number },
): Promise<boolean> {
  const age = watchAge(state)
  let [count, own, foreign] = [0, 0, 0]
  const until_ms = performance.now() + minutes * 60_000
  for (; performance.now() < until_ms; count++) {
    const victim = VICTIMS[Math.floor(count / machines.length) % VICTIMS.length] ?? 'signaling'
    const kill = { victim, machine: count % machines.length }
    const window = await oneWindow(machines, rate, kill)
    const judged = judge(window, kill)
    own += judged.own
    foreign += judged.foreign.length
    const last = judged.own === 0 ? '' : `, the last placed ${(judged.back_ms / 1000).toFixed(1)} s after it`
    console.log(
      `kill -9 of ${victim} on machine ${kill.machine + 1}: ${judged.own} of its calls failed${last}; ` +
        `${judged.foreign.length} others${listed(judged.foreign)}`,
    )
    await allReady(machines)
  }
  for (let left = LIMIT_MS * 2; left > 0 && (await running(state)).length > 0; left -= LOOK_MS) await pause(LOOK_MS)
  const oldest_ms = age.stop()
  const wrong = [...(await brokenInvariants(state.db)), ...(await left(state))]
  const calls = Number((await countOf(state)).calls)
  console.log(
    `${count} kills under ${rate} calls/s: ${calls} calls, ${own} of the killed processes failed, ` +
      `${foreign} others; the oldest call in progress was ${(oldest_ms / 1000).toFixed(1)} s old`,
  )
  for (const { reason, count } of await reasons(state)) console.log(`  ${count} calls ended with ${reason}`)
  for (const sentence of wrong) console.log(`  ${sentence}`)
  return foreign === 0 && oldest_ms <= HOLD_MS + LIMIT_MS && wrong.length === 0
}

/** Runs calls over all machines, `rate` a second together, and kills a process meanwhile. */
async function oneWindow(machines: readonly Machine[], rate: number, kill: Kill | null): Promise<Window> {
  const own_rate = rate / machines.length
  const calls = Math.ceil((own_rate * WINDOW_MS) / 1000)
  const begun_ms = performance.now()
  const loads = machines.map(machine => carry(machine, own_rate, calls))
  let killed_ms = 0
  const victims = kill && machines[kill.machine]
  if (victims) {
    await pause(KILL_AFTER_MS)
    killed_ms = performance.now() - begun_ms
    process.kill(pidOf(victims, kill.victim), 'SIGKILL')
  }
  return { carried: await Promise.all(loads), killed_ms }
}

async function carry({ folder, sip_port: port }: Machine, rate: number, calls: number): Promise<Carried> {
  const errors = join(folder, `errors-${process.hrtime.bigint()}.log`)
  const load = { folder, port, rate, calls, hold_ms: HOLD_MS, errors, transport: 'udp', local_ip: PEER_IP } as const
  const { failed } = await runSipp({ ...load, called: CALLED })
  const failures = failuresIn(errors).map(({ call, why }) => ({
    placed_ms: call === null ? null : ((call - 1) / rate) * 1000,
    why,
  }))
  return { calls, failed, failures }
}

/** A killed process has the calls that its machine had in progress, or was asked for until it was back. */
function judge({ carried, killed_ms }: Window, { victim, machine }: Kill): Judged {
  let [own, back_ms] = [0, 0]
  const foreign: string[] = []
  for (const [at, { failed, failures }] of carried.entries()) {
    const may = at === machine && victim !== 'control'
    for (const { placed_ms, why } of failures) {
      const after_ms = (placed_ms ?? killed_ms) - killed_ms
      if (may && after_ms >= -HOLD_MS - PLACED_WITHIN_MS && after_ms <= BACK_MS) {
        own++
        back_ms = Math.max(back_ms, after_ms)
      } else foreign.push(`machine ${at + 1}, placed ${(after_ms / 1000).toFixed(1)} s after the kill: ${why}`)
    }
    // SIPp has written nothing about those that it gave up at its end.
    const unsaid = Math.max(0, failed - failures.length)
    if (may) own += unsaid
    else foreign.push(...Array.from({ length: unsaid }, () => `machine ${at + 1}: SIPp does not say why`))
  }
  return { own, back_ms, foreign }
}

/** Counts sentences, and lists the most frequent ones. */
function listed(sentences: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const sentence of sentences) counts.set(sentence, (counts.get(sentence) ?? 0) + 1)
  const most = [...counts].sort(([, one], [, other]) => other - one).slice(0, 6)
  return most.map(([sentence, count]) => `\n    ${count} × ${sentence}`).join('')
}

const pidOf = ({ folder }: Machine, name: Victim): number =>
  Number(readFileSync(join(folder, 'run', `${name}.pid`), 'utf8'))

/** Waits until every machine takes calls. */
async function allReady(machines: readonly Machine[]): Promise<void> {
  for (const { made } of machines)
    for (let left = LIMIT_MS; left > 0; left -= LOOK_MS) {
      const ready = await fetch(`${made.base_url}/readyz/machine`).then(
        ({ ok }) => ok,
        () => false,
      )
      if (ready) break
      await pause(LOOK_MS)
    }
}

const running = ({ db }: State) => db.selectFrom('call').select('queued_at').where('ended_at', 'is', null).execute()

/** Observes how old calls in progress become. */
function watchAge(state: State): { stop(): number } {
  let oldest_ms = 0
  const look = async (): Promise<void> => {
    for (const { queued_at } of await running(state))
      oldest_ms = Math.max(oldest_ms, state.clock.now() - Date.parse(queued_at))
  }
  const looking = setInterval(() => void look().catch(error => console.error(error)), LOOK_MS)
  return {
    stop() {
      clearInterval(looking)
      return oldest_ms
    },
  }
}

const countOf = ({ db }: State) =>
  db
    .selectFrom('call')
    .select(eb => eb.fn.countAll<number>().as('calls'))
    .executeTakeFirstOrThrow()

/** Why calls failed. */
const reasons = ({ db }: State) =>
  db
    .selectFrom('call')
    .select(eb => ['reason', eb.fn.countAll<number>().as('count')])
    .where('reason', 'is not', null)
    .groupBy('reason')
    .execute()

/** What is left that should not be, in sentences. */
async function left({ db }: State): Promise<readonly string[]> {
  const open = await db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
  const slots = await db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
  const without = await db
    .selectFrom('call')
    .leftJoin('cdr', 'cdr.call_sid', 'call.sid')
    .select('call.sid')
    .where('cdr.call_sid', 'is', null)
    .execute()
  return [
    ...(open.length > 0 ? [`${open.length} calls are still in progress`] : []),
    ...(slots.length > 0 ? [`${slots.length} slots are still taken`] : []),
    ...(without.length > 0 ? [`${without.length} calls have no record`] : []),
  ]
}
