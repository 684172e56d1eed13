import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ending } from '../../core/domain/calls/endings.ts'
import { systemClock } from '../../core/runtime/clock.ts'
import { admitCall, writeCall } from '../../core/state/calls/running-calls.ts'
import { openState, type State } from '../../core/state/index.ts'
import { callOf, fillState, NOW_MS, requestOf, type Sizes, sidOf } from '../admission/data.ts'
import { onServer } from './server.ts'

// Measures what a call costs where its state is in PostgreSQL, against SQLite in the same run: everything that a call
// writes (its row, its decision, slots and money, the answer, the end with its record), in one project. The server
// syncs each commit to the disk.

const SIZES: Sizes = { trunks: 100, sources: 1_000, rules: 1_000, rates: 2_000 }
/** Calls that begin at the same time. */
const AT_ONCE = [1, 16] as const
/** Of design section 9: server CPU of a call, and its node's CPU as a multiple of SQLite's. */
const LIMITS = { server_ms: 2, node_ratio: 1.25 } as const
const TICK_MS = 10

interface Figures {
  readonly at_once: number
  readonly calls_per_second: number
  /** CPU of the process that runs the calls, for each. */
  readonly node_ms: number
  /** CPU of the server, for each; 0 of SQLite. */
  readonly server_ms: number
  readonly statements: number
  /** Messages to the store, which wait for their answer. */
  readonly messages: number
}

/** Measures calls on both stores. */
export async function state(calls: number) {
  const measured = (at: State, pid: number | null) => measure(at, pid, calls)
  const sqlite = await inFolder(async data_dir =>
    measured(await openState({ data_dir, inline_here: systemClock }), null),
  )
  const postgres = await onServer(async ({ open, pid }) => measured(await open(), pid()))
  return { sqlite, postgres, limits: LIMITS, within_limits: report(sqlite, postgres) }
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-cluster-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(state: State, pid: number | null, calls: number): Promise<readonly Figures[]> {
  try {
    await fillState(state, SIZES)
    const found: Figures[] = []
    let first = 0
    for (const at_once of AT_ONCE) {
      // The first tenth warms up plans and compiled code.
      await run(state, first, Math.ceil(calls / 10), at_once)
      first += calls
      const before = {
        own: process.cpuUsage(),
        server: cpuOf(pid),
        work: state.work(),
        at: performance.now(),
      }
      await run(state, first, calls, at_once)
      first += calls
      const { user, system } = process.cpuUsage(before.own)
      found.push({
        at_once,
        calls_per_second: calls / ((performance.now() - before.at) / 1000),
        node_ms: (user + system) / 1000 / calls,
        server_ms: (cpuOf(pid) - before.server) / calls,
        statements: (state.work().statements - before.work.statements) / calls,
        messages: (state.work().messages - before.work.messages) / calls,
      })
    }
    return found
  } finally {
    await state.close()
  }
}

/** Runs calls from their admission to their record, so many at a time. */
async function run(state: State, first: number, count: number, at_once: number): Promise<void> {
  let next = first
  const one = async (): Promise<void> => {
    while (next < first + count) await call(state, next++)
  }
  await Promise.all(Array.from({ length: at_once }, one))
}

async function call({ db }: State, i: number): Promise<void> {
  const request = requestOf(i, SIZES)
  const { decided } = await admitCall(db, {
    call: callOf(request),
    requests: [request],
    verstat: null,
    now_ms: NOW_MS + i,
  })
  if (!decided.admitted) throw new Error(`call ${i} was refused: ${decided.sentence}`)
  await writeCall(db, sidOf(i), [{ step: 'answered', at_ms: NOW_MS + i }])
  const facts = { ending: ending({ cause: 'caller_hung_up', answered: true }), pdd_ms: 840, media: null }
  const end = { ...facts, duration_seconds: 30, ended_ms: NOW_MS + i + 30_000 }
  await writeCall(db, sidOf(i), [{ step: 'end', facts: end }])
}

/** CPU time of a process and its children, in ms (proc(5)). Children that have ended are in the sums of the parent. */
function cpuOf(pid: number | null): number {
  if (pid === null) return 0
  const ticks = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(name => statOf(name))
    .filter(stat => stat !== null && (stat.pid === pid || stat.parent === pid))
    .reduce((sum, stat) => sum + (stat?.pid === pid ? stat.own + stat.children : (stat?.own ?? 0)), 0)
  return ticks * TICK_MS
}

function statOf(name: string) {
  try {
    const text = readFileSync(`/proc/${name}/stat`, 'utf8')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [, parent = 0] = fields
    const [user = 0, system = 0, ended_user = 0, ended_system = 0] = fields.slice(11, 15)
    return { pid: Number(name), parent, own: user + system, children: ended_user + ended_system }
  } catch {
    // It has ended meanwhile.
    return null
  }
}

function report(sqlite: readonly Figures[], postgres: readonly Figures[]): boolean {
  for (const figures of sqlite) console.log(lineOf('SQLite', figures))
  for (const figures of postgres) console.log(lineOf('PostgreSQL', figures))
  const [ours, theirs] = [sqlite.at(-1), postgres.at(-1)]
  const ratio = (theirs?.node_ms ?? 0) / (ours?.node_ms ?? 1)
  const good = (theirs?.server_ms ?? 0) <= LIMITS.server_ms
  console.log(
    `node CPU of the state: ${ratio.toFixed(2)} x SQLite's; server ${good ? 'within' : 'OVER'} ${LIMITS.server_ms} ms a call`,
  )
  return good
}

const lineOf = (
  name: string,
  { at_once, calls_per_second, node_ms, server_ms, statements, messages }: Figures,
): string =>
  `${name.padEnd(10)} ${String(at_once).padStart(2)} at once: ${calls_per_second.toFixed(0).padStart(5)} calls/s, ` +
  `node ${node_ms.toFixed(2)} ms, server ${server_ms.toFixed(2)} ms, ${statements.toFixed(0)} statements in ` +
  `${messages.toFixed(1)} messages a call`
