import { iso } from '../../core/runtime/clock.ts'
import { alertsChangedSince } from '../../core/state/alerts/alerts.ts'
import { listContainments } from '../../core/state/alerts/containments.ts'
import { type HistoryRow, listProjectCalls } from '../../core/state/calls/call-history.ts'
import { appliedState, NODE_SILENCE_MS } from '../../core/state/configuration/apply.ts'
import { listChecks } from '../../core/state/configuration/trunk-tests.ts'
import type { Db } from '../../core/state/index.ts'
import { presentAlert, presentContainments } from '../v1/alert-present.ts'
import { presentCall } from '../v1/call-present.ts'
import { presentCheck } from '../v1/trunk-tests.ts'
import type { LiveEvent } from './types.ts'

const MAX_CALLS = 5000

/**
 * Finds the changes in a project by polling; the bus only says when to look. The first look sets the baseline. Later
 * looks return each change once.
 */
export class ProjectWatch {
  readonly #project_id: string
  #calls: Map<string, HistoryRow> | null = null
  #alerts_since: string
  /** The reported alerts with `updated_at` equal to `#alerts_since`: others may change in the same millisecond. */
  #alerts = new Map<string, string>()
  #containments = new Map<string, string>()
  #trunks = new Map<string, { readonly revision: number; readonly state: string }>()
  #tests = new Map<string, number>()
  #tests_since: string
  #nodes: Map<string, string> | null = null
  #first = true
  #turn: Promise<unknown> = Promise.resolve()

  constructor(project_id: string, now: string) {
    this.#project_id = project_id
    this.#alerts_since = now
    this.#tests_since = now
  }

  /** The calls that were live at the last look. */
  get live(): readonly HistoryRow[] {
    return [...(this.#calls?.values() ?? [])]
  }

  /** Returns the changes since the last look. Looks run one at a time: overlapping ones repeat or lose changes. */
  look(db: Db, now_ms: number): Promise<LiveEvent[]> {
    const turn = this.#turn.then(() => this.#look(db, now_ms))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #look(db: Db, now_ms: number): Promise<LiveEvent[]> {
    const events = [
      ...(await this.#callEvents(db)),
      ...(await this.#alertEvents(db)),
      ...(await this.#containmentEvents(db, now_ms)),
      ...(await this.#applyEvents(db, now_ms)),
      ...(await this.#testEvents(db)),
      ...(await this.#nodeEvents(db, now_ms)),
    ]
    this.#first = false
    return events
  }

  async #callEvents(db: Db): Promise<LiveEvent[]> {
    const rows = await listProjectCalls(db, this.#project_id, { live: true }, { limit: MAX_CALLS })
    const live = new Map(rows.map(row => [row.sid, row]))
    const known = this.#calls
    this.#calls = live
    if (known === null) return []
    const changed = rows.filter(row => known.get(row.sid)?.updated_at !== row.updated_at).reverse()
    const gone = [...known.keys()].filter(sid => !live.has(sid))
    const ended = []
    for (let at = 0; at < gone.length; at += 500)
      ended.push(
        ...(await db
          .selectFrom('call')
          .selectAll()
          .where('sid', 'in', gone.slice(at, at + 500))
          .execute()),
      )
    return [...changed, ...ended].map(row => ({ type: 'call', trunk_id: row.trunk_id, call: presentCall(row) }))
  }

  async #alertEvents(db: Db): Promise<LiveEvent[]> {
    const rows = await alertsChangedSince(db, this.#project_id, this.#alerts_since)
    const fresh = rows.filter(row => this.#alerts.get(row.id) !== row.updated_at)
    const since = rows.at(-1)?.updated_at ?? this.#alerts_since
    this.#alerts_since = since
    this.#alerts = new Map(rows.filter(row => row.updated_at === since).map(row => [row.id, row.updated_at]))
    return fresh.map(row => ({ type: 'alert', trunk_id: row.trunk_id, alert: presentAlert(row) }))
  }

  async #containmentEvents(db: Db, now_ms: number): Promise<LiveEvent[]> {
    const rows = await listContainments(db, this.#project_id, { since: iso(now_ms - 60_000) })
    const shown = await presentContainments(db, rows)
    const events: LiveEvent[] = []
    for (const containment of shown) {
      const text = JSON.stringify(containment)
      const known = this.#containments.get(containment.id)
      this.#containments.set(containment.id, text)
      if (!this.#first && known !== text)
        events.push({ type: 'containment', trunk_id: containment.trunk_id, containment })
    }
    const kept = new Set(shown.map(one => one.id))
    for (const id of this.#containments.keys()) if (!kept.has(id)) this.#containments.delete(id)
    return events
  }

  /** Queries the apply state only of trunks with a new revision and of trunks not yet applied at the last look. */
  async #applyEvents(db: Db, now_ms: number): Promise<LiveEvent[]> {
    const rows = await db
      .selectFrom('trunk')
      .select(['id', 'revision'])
      .where('project_id', '=', this.#project_id)
      .where('status', '!=', 'released')
      .limit(10_000)
      .execute()
    const events: LiveEvent[] = []
    for (const trunk of rows) {
      const known = this.#trunks.get(trunk.id)
      if (this.#first) {
        this.#trunks.set(trunk.id, { revision: trunk.revision, state: 'applied' })
        continue
      }
      if (known?.revision === trunk.revision && known.state === 'applied') continue
      const { state, effective_revision, applied_at, error } = await appliedState(db, trunk, now_ms)
      this.#trunks.set(trunk.id, { revision: trunk.revision, state })
      if (known?.revision === trunk.revision && known.state === state) continue
      const apply = { state, desired_revision: trunk.revision, effective_revision, applied_at, error }
      events.push({ type: 'trunk_apply', trunk_id: trunk.id, revision: trunk.revision, apply })
    }
    return events
  }

  async #testEvents(db: Db): Promise<LiveEvent[]> {
    const since = this.#tests_since
    const runs = await db
      .selectFrom('trunk_test_run')
      .select(['id', 'subject_id', 'result', 'finding', 'finished_at'])
      .where('project_id', '=', this.#project_id)
      .where(eb => eb.or([eb('result', '=', 'running'), eb('finished_at', '>', since)]))
      .orderBy('started_at')
      .limit(200)
      .execute()
    const events: LiveEvent[] = []
    for (const run of runs) {
      const facts = { type: 'trunk_test' as const, trunk_id: run.subject_id, run_id: run.id, finding: run.finding }
      const after = this.#tests.get(run.id) ?? 0
      const checks = (await listChecks(db, [run.id], after)).get(run.id) ?? []
      for (const check of checks) events.push({ ...facts, result: 'running', check: presentCheck(check) })
      this.#tests.set(run.id, checks.at(-1)?.sequence ?? after)
      if (run.finished_at === null) continue
      this.#tests.delete(run.id)
      if (run.finished_at > this.#tests_since) this.#tests_since = run.finished_at
      events.push({ ...facts, result: run.result, check: null })
    }
    return events
  }

  async #nodeEvents(db: Db, now_ms: number): Promise<LiveEvent[]> {
    const rows = await db.selectFrom('node').select(['id', 'kind', 'heartbeat_at']).execute()
    const alive = iso(now_ms - NODE_SILENCE_MS)
    const known = this.#nodes
    const nodes = new Map(rows.filter(row => row.heartbeat_at >= alive).map(row => [row.id, row.kind as string]))
    this.#nodes = nodes
    if (known === null) return []
    const beat = new Map(rows.map(row => [row.id, row.heartbeat_at]))
    const event = (id: string, kind: string, state: 'up' | 'lost'): LiveEvent => ({
      type: 'node',
      trunk_id: null,
      node: { id, kind, state, heartbeat_at: beat.get(id) ?? null },
    })
    return [
      ...[...nodes].filter(([id]) => !known.has(id)).map(([id, kind]) => event(id, kind, 'up')),
      ...[...known].filter(([id]) => !nodes.has(id)).map(([id, kind]) => event(id, kind, 'lost')),
    ]
  }
}
