import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openState, type State } from '../../core/state/index.ts'
import { runSipp } from '../edge/world.ts'
import { addTrunk, CALLED, PEER_IP, priceAll, TARGET_IP } from '../platform/platform.ts'
import { startPostgres } from '../postgres-server.ts'
import { freePort, startUp } from '../up.ts'
import { openWire, type Wire } from '../wire.ts'
import { wrongClock } from '../wrong-clock.ts'
import { failuresIn } from './failures.ts'
import type { Strain } from './strain.ts'

// Machines on one PostgreSQL, each with SIPp as its callers, and what came of their calls.

/** The first port of sound, and how many a machine has. */
const RTP = { first: 16_000, each: 5000 } as const

const READY_WITHIN_MS = 30_000
const LOOK_MS = 500

export interface Machine extends Awaited<ReturnType<typeof startUp>> {
  /** Its way to the database; null: no way of ours. */
  readonly way: Wire | null
  /** Where the others reach its edge. */
  readonly link: { readonly host: string; readonly port: number }
}

/** What came of the calls of a machine. */
export interface Carried {
  /** When the first call was placed, on the monotonic clock. */
  readonly begun_ms: number
  readonly calls: number
  readonly failed: number
  /** Why, and when the call was placed, in milliseconds after the first one; null: unknown. */
  readonly failures: readonly { readonly placed_ms: number | null; readonly why: string }[]
}

interface Load {
  /** Calls a second. */
  readonly rate: number
  readonly seconds: number
  readonly hold_ms: number
}

interface Setting {
  /** By how much its wall clock is wrong. */
  readonly clock_ms: number
  /** Whether it reaches the database by a way that can break. */
  readonly by_wire: boolean
}

/** Runs `work` with so many machines and the state that they share. */
export async function onMachines<T>(
  settings_of: readonly Setting[],
  work: (machines: readonly Machine[], state: State, trunk_id: string) => Promise<T>,
): Promise<T> {
  const server = await startPostgres({ port: await freePort(), settings: {} })
  const machines: Machine[] = []
  const ways: Wire[] = []
  let target: ChildProcess | null = null
  let state: State | null = null
  const urlOf = (port: number): string => `postgres://strowger@127.0.0.1:${port}/postgres`
  try {
    const STROWGER_MASTER_KEY = randomBytes(32).toString('hex')
    for (const [at, { clock_ms, by_wire }] of settings_of.entries()) {
      const to = { host: '127.0.0.1', port: server.port }
      const way = by_wire ? await openWire({ host: '127.0.0.1', port: await freePort() }, to) : null
      if (way) ways.push(way)
      const link = { host: '127.0.0.1', port: await freePort() }
      const rtp = RTP.first + at * RTP.each
      const up = await startUp('machine', {
        ...{ STROWGER_DATABASE_URL: urlOf(way?.port ?? server.port), STROWGER_MASTER_KEY },
        ...{ STROWGER_RTP_PORTS: `${rtp}-${rtp + RTP.each - 1}`, STROWGER_SANDBOX: 'off', STROWGER_LOG: 'fatal' },
        ...{ STROWGER_LINK: `${link.host}:${link.port}` },
        ...(clock_ms === 0 ? {} : { NODE_OPTIONS: wrongClock(clock_ms) }),
      })
      machines.push({ ...up, way, link })
    }
    const [first] = machines
    if (!first) throw new Error('no machine')
    state = await openState({ data_dir: first.folder, database_url: urlOf(server.port) })
    const target_port = await freePort()
    const trunk_id = await addTrunk(first.made, target_port)
    await priceAll(state, trunk_id, first.made.numbers[0] ?? '')
    target = spawn('sipp', ['-sn', 'uas', '-i', TARGET_IP, '-p', String(target_port), '-aa', '-nostdin'], {
      cwd: first.folder,
      stdio: 'ignore',
    })
    return await work(machines, state, trunk_id)
  } finally {
    target?.kill('SIGKILL')
    await state?.close()
    for (const way of ways) await way.mend()
    for (const machine of machines) await machine.stop()
    for (const way of ways) await way.close()
    await server.remove()
  }
}

/** Has the calls of a load made at a machine. */
export async function carry({ folder, sip_port: port }: Machine, load: Load): Promise<Carried> {
  const { rate, seconds, hold_ms } = load
  const calls = Math.ceil(rate * seconds)
  const begun_ms = performance.now()
  const errors = join(folder, `errors-${process.hrtime.bigint()}.log`)
  const how = { folder, port, rate, calls, hold_ms, errors, transport: 'udp', local_ip: PEER_IP } as const
  const { failed } = await runSipp({ ...how, called: CALLED })
  const failures = failuresIn(errors).map(({ call, why }) => ({
    placed_ms: call === null ? null : ((call - 1) / rate) * 1000,
    why,
  }))
  return { begun_ms, calls, failed, failures }
}

/** A call is decided within this time, or refused. */
const DECIDED_MS = 2000

/** Whether a call was refused while the machine of the benchmark itself stood still. */
export const refusedByLoad = (
  { begun_ms }: Pick<Carried, 'begun_ms'>,
  { placed_ms, why }: Carried['failures'][number],
  strain: Strain,
): boolean =>
  placed_ms !== null &&
  why.startsWith('503 state_unavailable') &&
  strain.stalledIn(begun_ms + placed_ms - DECIDED_MS, begun_ms + placed_ms + DECIDED_MS)

/** Waits until every machine takes calls. */
export async function allReady(machines: readonly Machine[]): Promise<void> {
  for (const { made } of machines)
    for (let left = READY_WITHIN_MS; left > 0; left -= LOOK_MS) {
      const ready = await fetch(`${made.base_url}/readyz/machine`).then(
        ({ ok }) => ok,
        () => false,
      )
      if (ready) break
      await pause(LOOK_MS)
    }
}

/** Counts sentences, and lists the most frequent ones. */
export function listed(sentences: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const sentence of sentences) counts.set(sentence, (counts.get(sentence) ?? 0) + 1)
  const most = [...counts].sort(([, one], [, other]) => other - one).slice(0, 6)
  return most.map(([sentence, count]) => `\n    ${count} × ${sentence}`).join('')
}
