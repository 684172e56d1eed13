import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freeCallbacks } from '../../core/state/delivery/outbox-delivery.ts'
import { isPassing, openState, type State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { endCallsOfLostNodes, NodeWatch } from '../../core/state/nodes/nodes.ts'
import { INSTALLATION, verifyChain } from '../../core/state/people/audit.ts'
import { fillState, type Sizes } from '../admission/data.ts'
import { startPostgres } from '../postgres-server.ts'
import { seeded } from '../random.ts'
import { freePort } from '../up.ts'
import { deliver, outOfOrder } from './crash-deliveries.ts'
import type { Acknowledged, WorkerTask } from './crash-worker.ts'

// Histories of calls whose processes are killed, and whose database server breaks off, at random moments. After each
// step the invariants of the rows hold, and what the state acknowledged is there. Callbacks of a call arrive in order.

const SIZES: Sizes = { trunks: 2, sources: 10, rules: 10, rates: 10 }
/** Both bind: the trunks together may have more calls than the project. */
const CEILINGS = { trunk: 8, project: 12 } as const
const WORKERS = 3
/** Between two looks at the rows while the history goes on. */
const LOOK_MS = 200
/** In the course of a history. */
const CRASHES = 10

interface CrashServer {
  /** Returns the URL of an empty database. */
  database(): Promise<string>
  breakOff(): Promise<void>
  comeBack(): Promise<void>
}

interface CrashFigures {
  readonly seed: number
  readonly operations: number
  readonly admitted: number
  readonly refused: number
  readonly kills: number
  readonly outages: number
  readonly looks: number
  readonly most: { readonly trunk: number; readonly project: number }
  /** Sentences on what was wrong; empty when all held. */
  readonly broken: readonly string[]
}

/** Runs one history of so many operations. */
export async function crashHistory(
  server: CrashServer,
  { seed, operations, crashes = CRASHES }: Omit<Asked, 'database_url'>,
): Promise<CrashFigures> {
  const database_url = await server.database()
  const state = await openState({ data_dir: '', database_url, migrates: 'anybody', busy_timeout_ms: 60_000 })
  try {
    await fillState(state, SIZES)
    await state.db.updateTable('trunk').set({ concurrency: CEILINGS.trunk, cps: 10_000 }).execute()
    await state.db.updateTable('outbound_policy').set({ concurrency: CEILINGS.project, cps: 10_000 }).execute()
    return await new CrashRun(server, state, { database_url, seed, operations, crashes }).run()
  } finally {
    await state.close()
  }
}

interface Asked {
  readonly database_url: string
  readonly seed: number
  readonly operations: number
  readonly crashes?: number | undefined
}

async function awaitWritable(state: State): Promise<void> {
  for (;;)
    try {
      return await state.probe()
    } catch (error) {
      if (!isPassing(error)) throw error
    }
}

class CrashRun {
  readonly #server: CrashServer
  readonly #state: State
  readonly #asked: Asked
  readonly #random: () => number
  readonly #workers: ChildProcess[] = []
  readonly #acknowledged: Record<Acknowledged['did'], string[]> = {
    ...{ began: [], admitted: [], refused: [], answered: [], ended: [], audited: [], delivered: [], erred: [] },
  }
  readonly #broken = new Set<string>()
  readonly #most = { trunk: 0, project: 0 }
  #runs = 0
  #looks = 0
  #kills = 0
  #outages = 0

  constructor(server: CrashServer, state: State, asked: Asked) {
    this.#server = server
    this.#state = state
    this.#asked = asked
    this.#random = seeded(asked.seed)
  }

  async run(): Promise<CrashFigures> {
    const { operations, seed, crashes = CRASHES } = this.#asked
    for (let machine = 0; machine < WORKERS; machine++) this.#workers[machine] = this.#start(machine)
    try {
      // Kills are spread over the history, and every fifth crash is the server's.
      for (let crash = 1; crash <= crashes && this.#acknowledged.erred.length === 0; crash++) {
        await this.#until((operations * crash) / (crashes + 1))
        if (crash % 5 === 3) await this.#outage()
        else await this.#kill(Math.floor(this.#random() * WORKERS))
        await this.#look()
      }
      await this.#until(operations)
    } finally {
      for (const worker of this.#workers) worker.kill('SIGKILL')
    }
    await this.#settle()
    for (const error of this.#acknowledged.erred) this.#broken.add(error)
    return {
      ...{ seed, operations: this.#done, kills: this.#kills, outages: this.#outages, looks: this.#looks },
      ...{ admitted: this.#acknowledged.admitted.length, refused: this.#acknowledged.refused.length },
      ...{ most: this.#most, broken: [...this.#broken] },
    }
  }

  get #done(): number {
    return Object.values(this.#acknowledged).reduce((sum, ids) => sum + ids.length, 0)
  }

  #start(machine: number): ChildProcess {
    const run = ++this.#runs
    const { database_url, seed } = this.#asked
    const task: WorkerTask = {
      ...{ database_url, sizes: SIZES, machine_id: `mac_${machine}`, run, seed: seed * 1000 + run },
    }
    const program = fileURLToPath(new URL('./crash-worker.js', import.meta.url))
    const worker = fork(program, [JSON.stringify(task)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    worker.on('message', told => {
      const { did, id } = told as Acknowledged
      this.#acknowledged[did].push(id)
    })
    return worker
  }

  /** Looks again and again until so many operations are done. */
  async #until(done: number): Promise<void> {
    while (this.#done < done && this.#acknowledged.erred.length === 0) {
      await this.#look()
      await pause(LOOK_MS)
    }
  }

  async #kill(machine: number): Promise<void> {
    const worker = this.#workers[machine]
    if (!worker) return
    const gone = once(worker, 'close')
    worker.kill('SIGKILL')
    await gone
    this.#kills++
    this.#workers[machine] = this.#start(machine)
  }

  async #outage(): Promise<void> {
    await this.#server.breakOff()
    this.#outages++
    // One of the machines does not survive it.
    await this.#kill(Math.floor(this.#random() * WORKERS))
    await this.#server.comeBack()
    // The connections of before are broken, and the first statement on each finds that.
    await awaitWritable(this.#state)
  }

  /** Sees at one moment that no ceiling is exceeded, and that the rows agree with each other. */
  async #look(): Promise<void> {
    const { db } = this.#state
    const live = db.selectFrom('lease').where('ended_at', 'is', null)
    const rows = await live
      .select(eb => ['trunk_id', eb.fn.countAll<number>().as('calls')])
      .groupBy('trunk_id')
      .execute()
    const counts = rows.map(({ calls }) => Number(calls))
    this.#most.trunk = Math.max(this.#most.trunk, ...counts)
    this.#most.project = Math.max(
      this.#most.project,
      counts.reduce((sum, count) => sum + count, 0),
    )
    for (const level of ['trunk', 'project'] as const)
      if (this.#most[level] > CEILINGS[level])
        this.#broken.add(`${this.#most[level]} calls of a ${level}, which may have ${CEILINGS[level]}`)
    for (const sentence of await brokenInvariants(db)) this.#broken.add(sentence)
    this.#looks++
  }

  /** Another machine delivers what the last processes had taken. All callbacks arrive, those of a call in order. */
  async #deliverRest(): Promise<void> {
    const { db } = this.#state
    const { delivered } = this.#acknowledged
    await freeCallbacks(db, () => true)
    while ((await deliver(this.#state, 'another machine', id => delivered.push(id))) > 0);
    const wrong = outOfOrder(delivered)
    if (wrong.length > 0) this.#broken.add(`callbacks of ${wrong.length} calls came out of order, such as ${wrong[0]}`)
    const told = await db
      .selectFrom('outbox')
      .select(eb => eb.fn.countAll<number>().as('rows'))
      .executeTakeFirstOrThrow()
    const arrived = new Set(delivered.map(id => JSON.stringify(JSON.parse(id).slice(0, 2)))).size
    if (arrived !== Number(told.rows)) this.#broken.add(`${arrived} of ${told.rows} callbacks arrived`)
    const ended = this.#acknowledged.ended.length
    if (arrived < ended) this.#broken.add(`${ended} calls ended, and only ${arrived} callbacks arrived`)
  }

  /** After the last crash another machine ends what is left. All that was acknowledged must be there, once. */
  async #settle(): Promise<void> {
    const state = this.#state
    const { db } = state
    await Promise.all(this.#workers.map(worker => worker.exitCode ?? worker.signalCode ?? once(worker, 'close')))
    await endCallsOfLostNodes(state, state.clock, new NodeWatch(), { dead: () => true })
    await this.#look()
    await this.#deliverRest()
    const ids = async (rows: Promise<readonly { readonly id: string | null }[]>): Promise<ReadonlySet<string>> =>
      new Set((await rows).flatMap(({ id }) => id ?? []))
    const calls = await ids(db.selectFrom('call').select('sid as id').execute())
    const running = await ids(db.selectFrom('call').select('sid as id').where('ended_at', 'is', null).execute())
    const cdrs = await ids(db.selectFrom('cdr').select('call_sid as id').execute())
    const events = await ids(db.selectFrom('audit_event').select('id').execute())
    const { admitted, answered, ended, audited } = this.#acknowledged
    const lack = (what: string, told: readonly string[], there: ReadonlySet<string>): void => {
      const missing = told.filter(id => !there.has(id))
      if (missing.length > 0) this.#broken.add(`${missing.length} ${what} are lost, such as ${missing[0]}`)
    }
    lack('acknowledged calls', admitted, calls)
    lack('records of ended calls', ended, cdrs)
    lack('records of calls', [...calls], cdrs)
    lack('events of the audit trail', audited, events)
    if (running.size > 0) this.#broken.add(`${running.size} calls are still in progress`)
    const chain = await verifyChain(db, INSTALLATION)
    if (!chain.intact) this.#broken.add(`the audit chain is broken: ${chain.why}`)
    const charged = await ids(db.selectFrom('ledger').select('call_sid as id').where('kind', '=', 'charge').execute())
    const billable = await db.selectFrom('cdr').select('call_sid as id').where('duration_seconds', '>', 0).execute()
    lack(
      'charges of calls',
      billable.map(({ id }) => id),
      charged,
    )
    lack(
      'answers of calls',
      answered,
      await ids(db.selectFrom('cdr').select('call_sid as id').where('answered_at', 'is not', null).execute()),
    )
  }
}

/** Runs histories of the seeds 1, 2, …, prints each, and returns whether all held. */
export async function crashes(seeds: number, operations: number): Promise<boolean> {
  const server = await startPostgres({ port: await freePort(), settings: {} })
  let databases = 0
  const database = async (): Promise<string> => {
    await server.tell(`create database crash_${++databases} template template0`)
    return `postgres://strowger@127.0.0.1:${server.port}/crash_${databases}`
  }
  let good = true
  try {
    for (let seed = 1; seed <= seeds; seed++) {
      const { broken, most, ...counts } = await crashHistory({ ...server, database }, { seed, operations })
      good &&= broken.length === 0
      console.log(
        `seed ${seed}: ${counts.operations} operations (${counts.admitted} calls admitted, ${counts.refused} refused), ` +
          `${counts.kills} kills, ${counts.outages} outages; at ${counts.looks} looks at most ` +
          `${most.trunk} of ${CEILINGS.trunk} calls of a trunk and ${most.project} of ${CEILINGS.project} of the project`,
      )
      for (const sentence of broken) console.log(`  ${sentence}`)
    }
  } finally {
    await server.remove()
  }
  return good
}
