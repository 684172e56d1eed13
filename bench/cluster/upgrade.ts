import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openState, type State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { makeNewerRelease } from '../newer-release.ts'
import { addTrunk, priceAll } from '../platform/platform.ts'
import { startPostgres } from '../postgres-server.ts'
import { alive, openTalks, type Talks } from '../soak/talks.ts'
import { freePort, MAIN, startIn, startUp } from '../up.ts'

// Two machines are upgraded one by one to a newer release, each with half of the calls and their sound: the database is
// expanded, a machine is drained, ends with its last call, and starts again by the new program. Nothing ends a call but
// its caller.

const SOUND_MS = 10_000
const LIMIT_MS = 60_000
const MOST_TRIES = 10
const NEWER = '9.9.9'
const RTP_PORTS = ['16000-23999', '24000-31999'] as const

type Running = Awaited<ReturnType<typeof startUp>>
type Calls = Awaited<ReturnType<Talks['connect']>>

interface Machine {
  running: Running
  calls: Calls
  readonly settings: Readonly<Record<string, string>>
}

interface Stage {
  readonly name: string
  readonly calls: number
  readonly alive: number
  readonly silent_legs: number
  readonly loss_pct: number
}

/** Runs it with so many calls, prints what it found, and returns whether no call was cut. */
export async function upgrade(calls: number): Promise<boolean> {
  const server = await startPostgres({ port: await freePort(), settings: {} })
  const folder = mkdtempSync(join(tmpdir(), 'strowger-next-'))
  const machines: Machine[] = []
  let talks: Talks | null = null
  let state: State | null = null
  try {
    const { main } = makeNewerRelease(join(folder, 'next'), NEWER)
    const database_url = `postgres://strowger@127.0.0.1:${server.port}/postgres`
    const shared = { STROWGER_DATABASE_URL: database_url, STROWGER_MASTER_KEY: randomBytes(32).toString('hex') }
    for (const STROWGER_RTP_PORTS of RTP_PORTS) {
      const own = { STROWGER_RTP_PORTS, STROWGER_SANDBOX: 'off', STROWGER_LOG: 'fatal' }
      const STROWGER_LINK = `127.0.0.1:${await freePort()}`
      const settings = { ...shared, ...own, STROWGER_LINK, STROWGER_DEAD_CALL_SECONDS: '9999' }
      machines.push({ running: await startUp('upgrade', settings), calls: [], settings })
    }
    const [first] = machines
    if (!first) throw new Error('there are two machines')
    const { folder: data_dir, made, sip_port } = first.running
    state = await openState({ data_dir, database_url })
    const target_port = await freePort()
    await priceAll(state, await addTrunk(made, target_port), made.numbers[0] ?? '')
    talks = await openTalks({ folder: data_dir, sip_port, target_port })
    const stages = await upgraded({ talks, machines, calls, main })
    await talks.hangUp()
    return report(stages, await faultsIn(state))
  } finally {
    talks?.close()
    await state?.close()
    for (const { running } of machines) await running.stop()
    rmSync(folder, { recursive: true, force: true })
    await server.remove()
  }
}

interface Under {
  readonly talks: Talks
  readonly machines: readonly Machine[]
  readonly calls: number
  /** The program of the newer release. */
  readonly main: string
}

async function upgraded({ talks, machines, calls, main }: Under): Promise<readonly Stage[]> {
  const each = Math.ceil(calls / machines.length)
  const stages: Stage[] = []
  const sound = async (name: string, during: () => Promise<unknown>): Promise<void> => {
    const all = machines.flatMap(one => one.calls)
    const heard = talks.talk(all, SOUND_MS, machines[0]?.running.pids['media'] ?? 0)
    await pause(1000)
    await during()
    const { silent_legs, loss_pct } = await heard
    stages.push({ name, calls: all.length, alive: all.filter(alive).length, silent_legs, loss_pct })
  }
  const fill = async (machine: Machine): Promise<void> => {
    talks.aim(machine.running.sip_port)
    machine.calls = []
    for (let tries = 0; tries < MOST_TRIES && machine.calls.length < each; tries++)
      machine.calls.push(...(await talks.connect(each - machine.calls.length)))
  }
  for (const machine of machines) await fill(machine)
  await sound('expand', () => command(main, machines[0], 'migrate', '--expand'))
  for (const [at, machine] of machines.entries()) {
    let drained: Promise<unknown> = Promise.resolve()
    await sound(`drain of machine ${at + 1}`, async () => {
      drained = command(MAIN, machine, 'drain', '--wait')
    })
    for (const { near } of machine.calls) near.hangUp()
    await drained
    const { folder, made } = machine.running
    await machine.running.halt()
    machine.running = await startIn(folder, machine.settings, { made, main })
    await fill(machine)
    await sound(`machine ${at + 1} is new`, async () => undefined)
  }
  await sound('contract', () => command(main, machines[0], 'migrate', '--contract'))
  return stages
}

async function command(main: string, machine: Machine | undefined, ...words: string[]): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', STROWGER_DATA: machine?.running.folder ?? '', ...machine?.settings }
  await promisify(execFile)(process.execPath, [main, ...words], { env })
}

/** Names what is wrong with the calls when all have ended. */
async function faultsIn(state: State): Promise<readonly string[]> {
  const running = () => state.db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
  for (let left = LIMIT_MS; left > 0 && (await running()).length > 0; left -= 500) await pause(500)
  const ends = await state.db
    .selectFrom('cdr')
    .select(['call_sid', 'status', 'reason'])
    .where(eb => eb.or([eb('status', '!=', 'completed'), eb('reason', 'is not', null)]))
    .where('answered_at', 'is not', null)
    .execute()
  return [
    ...(await running()).map(({ sid }) => `${sid} is in progress`),
    ...ends.map(({ call_sid, status, reason }) => `${call_sid} ended as ${status}, ${reason}`),
    ...(await brokenInvariants(state.db)),
  ]
}

function report(stages: readonly Stage[], faults: readonly string[]): boolean {
  for (const { name, calls, alive, silent_legs, loss_pct } of stages)
    console.log(`${name}: ${alive} of ${calls} calls stayed, ${silent_legs} silent legs, ${loss_pct} % of packets lost`)
  console.log(`${stages.reduce((cut, { calls, alive }) => cut + calls - alive, 0)} calls cut`)
  for (const sentence of faults) console.log(`  ${sentence}`)
  return faults.length === 0 && stages.every(({ calls, alive, silent_legs }) => alive === calls && silent_legs === 0)
}
