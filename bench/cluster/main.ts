import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ending } from '../../core/domain/calls/endings.ts'
import { systemClock } from '../../core/runtime/clock.ts'
import { admitCall, writeCall } from '../../core/state/calls/running-calls.ts'
import { openState, type State } from '../../core/state/index.ts'
import { callOf, fillState, NOW_MS, requestOf, type Sizes, sidOf } from '../admission/data.ts'
import { startPostgres } from '../postgres-server.ts'
import { freePort } from '../up.ts'

// Measures what a call costs where its state is in PostgreSQL, against SQLite in the same run: everything that a call
// writes (its row, its decision, slots and money, the answer, the end with its record), in one project. The server
// syncs each commit to the disk.
//
//   npm run bench -- cluster --only state [--calls 1000]
//   npm run bench -- cluster --only outage [--calls 100]    the database stops, returns, and is replaced by its standby
//   npm run bench -- cluster --only kills [--minutes 10]    each process of two machines is killed under calls
//   npm run bench -- cluster --only crashes [--seeds 20] [--operations 10000]    histories with kills and outages

const SIZES: Sizes = { trunks: 100, sources: 1_000, rules: 1_000, rates: 2_000 }
/** Calls that begin at the same time. */
const AT_ONCE = [1, 16] as const
/** Of design section 9: server CPU of a call, and its node's CPU as a multiple of SQLite's. */
const LIMITS = { server_ms: 2, node_ratio: 1.25 } as const
const TICK_MS = 10

const option = (name: string): string | undefined => process.argv[process.argv.indexOf(name) + 1]
const calls = Number(process.argv.includes('--calls') ? option('--calls') : 1000)
const only = process.argv.includes('--only') ? option('--only') : 'state'
const number = (name: string, otherwise: number): number =>
  process.argv.includes(name) ? Number(option(name)) : otherwise

/** Figures of machines under faults. Each returns whether it is within its limits. */
const FAULTS: Readonly<Record<string, () => Promise<boolean>>> = {
  outage: async () => (await import('./outage.ts')).outage(number('--calls', 100)),
  kills: async () => (await import('./kills.ts')).kills(number('--minutes', 10)),
  crashes: async () => (await import('./crashes.ts')).crashes(number('--seeds', 20), number('--operations', 10_000)),
}
const faults = FAULTS[only ?? '']
if (faults) process.exit((await faults()) ? 0 : 1)
if (only !== 'state') throw new Error(`--only ${only}: there are state, ${Object.keys(FAULTS).join(', ')}`)

interface Figures {
  readonly at_once: number
  readonly calls_per_second: number
  /** CPU of the process that runs the calls, for each. */
  readonly node_ms: number
  /** CPU of the server, for each; 0 of SQLite. */
  readonly server_ms: number
  readonly statements: number
}

const sqlite = await inFolder(async data_dir => measure(await openState({ data_dir, inline_here: systemClock }), null))
const postgres = await onServer((state, pid) => measure(state, pid))
report()

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-cluster-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function onServer<T>(work: (state: State, pid: number) => Promise<T>): Promise<T> {
  const server = await startPostgres({ port: await freePort(), settings: {} })
  try {
    const database_url = `postgres://strowger@127.0.0.1:${server.port}/postgres`
    return await work(
      await openState({ data_dir: '', database_url, migrates: 'anybody', busy_timeout_ms: 60_000 }),
      server.pid(),
    )
  } finally {
    await server.remove()
  }
}

async function measure(state: State, pid: number | null): Promise<readonly Figures[]> {
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
        work: state.work().statements,
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
        statements: (state.work().statements - before.work) / calls,
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

function report(): void {
  const line = (name: string, { at_once, calls_per_second, node_ms, server_ms, statements }: Figures): void =>
    console.log(
      `${name.padEnd(10)} ${String(at_once).padStart(2)} at once: ${calls_per_second.toFixed(0).padStart(5)} calls/s, ` +
        `node ${node_ms.toFixed(2)} ms, server ${server_ms.toFixed(2)} ms, ${statements.toFixed(0)} statements a call`,
    )
  for (const figures of sqlite) line('SQLite', figures)
  for (const figures of postgres) line('PostgreSQL', figures)
  const [ours, theirs] = [sqlite.at(-1), postgres.at(-1)]
  const ratio = (theirs?.node_ms ?? 0) / (ours?.node_ms ?? 1)
  const good = (theirs?.server_ms ?? 0) <= LIMITS.server_ms
  console.log(
    `node CPU of the state: ${ratio.toFixed(2)} x SQLite's; server ${good ? 'within' : 'OVER'} ${LIMITS.server_ms} ms a call`,
  )
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), calls, limits: LIMITS, sqlite, postgres, within_limits: good }
  writeFileSync('bench/results/cluster.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = good ? 0 : 1
}
