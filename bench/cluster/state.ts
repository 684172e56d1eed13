import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../core/runtime/clock.ts'
import { openState, type State } from '../../core/state/index.ts'
import { fillState } from '../admission/data.ts'
import { onServer, type Served } from './server.ts'
import { runCalls, STATE_SIZES } from './state-calls.ts'
import type { CallsToRun } from './state-node.ts'

// Measures what a call costs where its state is in PostgreSQL, against SQLite in the same run: everything that a call
// writes (its row, its decision, slots and money, the answer, the end with its record), in one project. The server
// syncs each commit to the disk.

/** Calls that begin at the same time. */
const MOST_AT_ONCE = 48
const AT_ONCE = [1, 16, MOST_AT_ONCE] as const
/**
 * Of design section 9: calls of a project, the server's CPU for a call, its node's as a multiple of SQLite's, and the
 * CPU of all with three nodes as a multiple of that with one.
 */
const LIMITS = { calls_per_second: 500, server_ms: 2, node_ratio: 1.25, three_nodes_ratio: 1.1 } as const
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
  const measured = (at: State, served: Served | null) => measure(at, served, calls)
  const sqlite = await inFolder(async data_dir =>
    measured(await openState({ data_dir, inline_here: systemClock }), null),
  )
  const [postgres, nodes] = await onServer(async served => {
    const one = await measured(await served.open(), served)
    const at = 2 * AT_ONCE.length * calls
    const of_one = await ofNodes(served, { nodes: 1, at_once: MOST_AT_ONCE, calls, from: at })
    const of_three = await ofNodes(served, { nodes: 3, at_once: MOST_AT_ONCE, calls, from: at + 3 * calls })
    const shared = await ofNodes(served, { nodes: 3, at_once: MOST_AT_ONCE / 3, calls, from: at + 12 * calls })
    const again = await ofNodes(served, { nodes: 1, at_once: MOST_AT_ONCE, calls, from: at + 21 * calls })
    return [one, { of_one, of_three, shared, again }] as const
  })
  return { sqlite, postgres, nodes, limits: LIMITS, within_limits: report(sqlite, postgres, nodes) }
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-cluster-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(state: State, served: Served | null, calls: number): Promise<readonly Figures[]> {
  const pid = served?.pid() ?? null
  try {
    await fillState(state, STATE_SIZES)
    await served?.analyze()
    const found: Figures[] = []
    let first = 0
    for (const at_once of AT_ONCE) {
      // The first tenth warms up plans and compiled code.
      await runCalls(state, first, Math.ceil(calls / 10), at_once)
      first += calls
      const before = {
        own: process.cpuUsage(),
        server: cpuOf(pid),
        work: state.work(),
        at: performance.now(),
      }
      await runCalls(state, first, calls, at_once)
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

interface Load {
  readonly nodes: number
  /** Calls that begin at the same time on each node. */
  readonly at_once: number
  /** Of each node. */
  readonly calls: number
  /** The number of the first one. */
  readonly from: number
}

/**
 * Measures the CPU of all nodes and of the server for each call. Each node runs `calls`, after twice as many: a process
 * that has just started compiles its code, and needs twice the CPU for its first 500 calls.
 */
async function ofNodes({ database_url, pid }: Served, { nodes, at_once, calls, from }: Load): Promise<number> {
  const program = new URL('./state-node.js', import.meta.url)
  const processes = Array.from({ length: nodes }, () => fork(program, [database_url]))
  const run = async (first: number, count: number): Promise<number> => {
    const each = Math.floor(count / nodes)
    const took = processes.map(async (one, at) => {
      one.send({ first: first + at * each, calls: each, at_once } satisfies CallsToRun)
      return Number((await once(one, 'message'))[0])
    })
    return (await Promise.all(took)).reduce((sum, ms) => sum + ms, 0)
  }
  try {
    await Promise.all(processes.map(one => once(one, 'message')))
    const all = nodes * calls
    await run(from, 2 * all)
    const before = cpuOf(pid())
    const nodes_ms = await run(from + 2 * all, all)
    return (nodes_ms + cpuOf(pid()) - before) / all
  } finally {
    for (const one of processes) one.kill('SIGKILL')
  }
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

interface OfNodes {
  readonly of_one: number
  /** Three nodes, each of which has as many calls at once as the one. */
  readonly of_three: number
  /** Three nodes share the calls of the one, so that their turns are smaller. */
  readonly shared: number
  /** With one again: the tables have grown meanwhile. */
  readonly again: number
}

function report(sqlite: readonly Figures[], postgres: readonly Figures[], nodes: OfNodes): boolean {
  for (const figures of sqlite) console.log(lineOf('SQLite', figures))
  for (const figures of postgres) console.log(lineOf('PostgreSQL', figures))
  const [ours, theirs] = [sqlite.at(-1), postgres.at(-1)]
  const { of_one, of_three, shared, again } = nodes
  const found = {
    calls_per_second: theirs?.calls_per_second ?? 0,
    server_ms: theirs?.server_ms ?? 0,
    node_ratio: (theirs?.node_ms ?? 0) / (ours?.node_ms ?? 1),
    three_nodes_ratio: of_three / ((of_one + again) / 2),
  }
  console.log(
    `CPU of nodes and server for a call: one node ${of_one.toFixed(2)} ms, three ${of_three.toFixed(2)} ms, ` +
      `three that share the load of one ${shared.toFixed(2)} ms, one again ${again.toFixed(2)} ms`,
  )
  const good = (Object.keys(LIMITS) as (keyof typeof LIMITS)[]).map(name => {
    const within = name === 'calls_per_second' ? found[name] >= LIMITS[name] : found[name] <= LIMITS[name]
    console.log(`${name}: ${found[name].toFixed(2)}, limit ${LIMITS[name]}: ${within ? 'met' : 'MISSED'}`)
    return within
  })
  return good.every(Boolean)
}

const lineOf = (
  name: string,
  { at_once, calls_per_second, node_ms, server_ms, statements, messages }: Figures,
): string =>
  `${name.padEnd(10)} ${String(at_once).padStart(2)} at once: ${calls_per_second.toFixed(0).padStart(5)} calls/s, ` +
  `node ${node_ms.toFixed(2)} ms, server ${server_ms.toFixed(2)} ms, ${statements.toFixed(0)} statements in ` +
  `${messages.toFixed(1)} messages a call`
