import type { Bus } from '../../core/runtime/bus.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { Sleeper } from '../../core/runtime/sleeper.ts'
import { ownSandbox } from '../../core/state/configuration/bootstrap.ts'
import {
  type AppliedRevision,
  CONFIGURATION,
  configurationRevision,
  readConfiguration,
  reportApplied,
} from '../../core/state/configuration/snapshot.ts'
import type { State } from '../../core/state/index.ts'
import { compileSnapshot, EMPTY_SNAPSHOT, type Snapshot } from './snapshot.ts'

const POLL_MS = 1000

/** Keeps the compiled configuration up to date. The bus and a timer trigger the same check. */
export class Configuration {
  readonly #state: State
  readonly #node_id: string
  readonly #machine_id: string
  readonly #clock: Clock
  readonly #log: Log
  readonly #edgeTold: () => Promise<void>
  readonly #listeners = new Set<(snapshot: Snapshot) => void>()
  /** What has been reported of each resource. */
  #reported = new Map<string, string>()
  readonly #sleeper: Sleeper
  readonly #unhear: () => void
  #snapshot: Snapshot = EMPTY_SNAPSHOT
  #unreported = false

  constructor(options: {
    readonly state: State
    readonly node_id: string
    readonly machine_id: string
    readonly clock: Clock
    readonly bus: Bus
    readonly log: Log
    /** Resolves when the edge of this machine has been sent what is saved now. */
    readonly edgeTold: () => Promise<void>
  }) {
    this.#state = options.state
    this.#node_id = options.node_id
    this.#machine_id = options.machine_id
    this.#clock = options.clock
    this.#log = options.log
    this.#edgeTold = options.edgeTold
    this.#sleeper = new Sleeper({
      work: () => this.#apply(),
      failed: err =>
        this.#log.error({ err }, 'the configuration could not be read; the node keeps the one that it has'),
      every: { clock: options.clock, period_ms: POLL_MS },
    })
    this.#unhear = options.bus.on('configuration', () => void this.refresh())
  }

  get current(): Snapshot {
    return this.#snapshot
  }

  onChange(listener: (snapshot: Snapshot) => void): void {
    this.#listeners.add(listener)
  }

  /** Applies the saved configuration if its revision differs from the current one. Never rejects. */
  refresh(): Promise<void> {
    return this.#sleeper.wake()
  }

  /** Reports all of the configuration once more: the reports of this node were deleted. */
  reportAgain(): void {
    this.#reported = new Map()
    this.#unreported = true
    void this.refresh()
  }

  async stop(): Promise<void> {
    this.#unhear()
    await this.#sleeper.stop()
  }

  async #apply(): Promise<void> {
    const revision = await configurationRevision(this.#state.db)
    if (revision === this.#snapshot.revision && !this.#unreported) return
    // Until the reports are saved.
    this.#unreported = true
    const reported = this.#reported
    const read = await readConfiguration(this.#state)
    const rows = { ...read, carrier_targets: ownSandbox(read.carrier_targets, this.#machine_id) }
    const { snapshot, failures } = compileSnapshot(rows, this.#snapshot)
    this.#snapshot = snapshot
    for (const [resource_id, error] of failures) this.#log.error({ resource_id, error }, 'a resource cannot be applied')
    for (const listener of this.#listeners) listener(snapshot)
    const reports: AppliedRevision[] = []
    const marks = new Map<string, string>()
    const accounts = rows.accounts.map(({ project_id, revision }) => ({ id: project_id, revision }))
    for (const row of [...rows.trunks, ...rows.applications, ...rows.carriers, ...rows.numbers, ...accounts]) {
      const error = failures.get(row.id) ?? null
      const mark = `${row.revision} ${error ?? ''}`
      if (reported.get(row.id) === mark) continue
      marks.set(row.id, mark)
      reports.push({ resource_id: row.id, revision: row.revision, state: error === null ? 'applied' : 'failed', error })
    }
    reports.push({ resource_id: CONFIGURATION, revision: snapshot.revision, state: 'applied', error: null })
    // To an edge that does not know a peer yet, it is a stranger.
    await this.#edgeTold()
    await reportApplied(this.#state, this.#node_id, reports, this.#clock.now())
    for (const [id, mark] of marks) reported.set(id, mark)
    if (reported === this.#reported) this.#unreported = false
    this.#log.info({ revision: snapshot.revision, trunks: snapshot.trunks.size }, 'configuration applied')
  }
}
