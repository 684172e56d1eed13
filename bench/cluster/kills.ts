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

// Two machines carry calls, and each of their processes is killed in turn. Only the calls of a killed process fail,
// none stays in progress, and slots and money are exact.

/** Calls a second, of all machines together: `--rate`. */
const RATE = process.argv.includes('--rate') ? Number(process.argv[process.argv.indexOf('--rate') + 1]) : 20
const HOLD_MS = 3000
const WINDOW_MS = 15_000
const KILL_AFTER_MS = 5000
/** Of design section 9: after its end a call is in progress for this long at most. */
const LIMIT_MS = 30_000
const VICTIMS = ['signaling', 'media', 'edge', 'control'] as const
const RTP_PORTS = ['16000-23999', '24000-31999'] as const
const LOOK_MS = 500

type Victim = (typeof VICTIMS)[number]
type Machine = Awaited<ReturnType<typeof startUp>>

interface Window {
  readonly victim: Victim
  readonly machine: number
  /** Calls that failed, of each machine. */
  readonly failed: readonly number[]
}

/** Runs it for so many minutes under so many calls a second, prints what it found, and returns whether all held. */
export async function kills(minutes: number, rate = RATE): Promise<boolean> {
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
    return await run(state, machines, { minutes, rate: rate / machines.length })
  } finally {
    target?.kill('SIGKILL')
    await state?.close()
    for (const machine of machines) await machine.stop()
    await server.remove()
  }
}

async function run(
  state: State,
  machines: readonly Machine[],
  { minutes, rate }: { readonly minutes: number; readonly rate: number },
): Promise<boolean> {
  const age = watchAge(state)
  const windows: Window[] = []
  const until_ms = performance.now() + minutes * 60_000
  for (let turn = 0; performance.now() < until_ms; turn++) {
    const victim = VICTIMS[Math.floor(turn / machines.length) % VICTIMS.length] ?? 'signaling'
    const window = await oneWindow(machines, rate, { victim, machine: turn % machines.length })
    windows.push(window)
    console.log(`kill -9 of ${victim} on machine ${window.machine + 1}: ${window.failed.join(' and ')} calls failed`)
    await allStarted(machines)
  }
  for (let left = LIMIT_MS * 2; left > 0 && (await running(state)).length > 0; left -= LOOK_MS) await pause(LOOK_MS)
  const oldest_ms = age.stop()
  const wrong = [...(await brokenInvariants(state.db)), ...(await left(state))]
  const others = windows.reduce((sum, { failed, machine, victim }) => {
    const foreign = failed.filter((_, at) => at !== machine || victim === 'control')
    return sum + foreign.reduce((some, count) => some + count, 0)
  }, 0)
  const calls = Number((await countOf(state)).calls)
  console.log(
    `${windows.length} kills under ${rate * machines.length} calls/s: ${calls} calls, ${others} of other processes failed; ` +
      `the oldest call in progress was ${(oldest_ms / 1000).toFixed(1)} s old`,
  )
  for (const { reason, count } of await reasons(state)) console.log(`  ${count} calls ended with ${reason}`)
  for (const sentence of wrong) console.log(`  ${sentence}`)
  return others === 0 && oldest_ms <= HOLD_MS + LIMIT_MS && wrong.length === 0
}

async function oneWindow(
  machines: readonly Machine[],
  rate: number,
  { victim, machine }: Pick<Window, 'victim' | 'machine'>,
): Promise<Window> {
  const calls = (rate * WINDOW_MS) / 1000
  const loads = machines.map(({ folder, sip_port: port }) =>
    runSipp({
      ...{ folder, port, rate, calls, hold_ms: HOLD_MS },
      transport: 'udp',
      local_ip: PEER_IP,
      called: CALLED,
    }),
  )
  await pause(KILL_AFTER_MS)
  const at = machines[machine]
  if (at) process.kill(pidOf(at, victim), 'SIGKILL')
  const failed = (await Promise.all(loads)).map(load => load.failed)
  return { victim, machine, failed }
}

const pidOf = ({ folder }: Machine, name: Victim): number =>
  Number(readFileSync(join(folder, 'run', `${name}.pid`), 'utf8'))

/** Waits until every machine takes calls. */
async function allStarted(machines: readonly Machine[]): Promise<void> {
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
