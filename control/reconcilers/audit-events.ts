import { type BoundedMap, boundedMap } from '../../core/domain/bounded-map.ts'
import { eventKindOf, isOfPart } from '../../core/domain/webhooks/kinds.ts'
import { iso } from '../../core/runtime/clock.ts'
import { appliedState } from '../../core/state/configuration/apply.ts'
import {
  type HeardRow,
  heardAudit,
  lastAuditPosition,
  noteReportedUpTo,
  reportedUpTo,
  trunksOf,
} from '../../core/state/delivery/reported-events.ts'
import { queueEvents } from '../../core/state/delivery/webhook-endpoints.ts'
import type { State } from '../../core/state/index.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from './reconciler.ts'

const BATCH = 200
const CHANGES = 'audit'
const APPLIES = 'applies'
/** After this time, an unapplied write is no longer waited for: its trunk was written again or no longer exists. */
const PATIENCE_MS = 60 * 60 * 1000
const MAX_REMEMBERED = 10_000

/**
 * Queues webhook events for audited changes of trunks, numbers and recordings, and for trunks that were applied or
 * failed to apply. Every change writes to the audit trail, so that no change is missed and no write waits for this
 * task. Event ids derive from the trail, so that receivers can detect the duplicates of a crash.
 */
export function auditEvents(): Reconciler {
  /** Writes reported while an earlier one still waits. They must not be reported again in every run. */
  const reported = boundedMap<string, true>(MAX_REMEMBERED)
  return {
    name: 'audit-events',
    period_ms: 1000,
    runs: 'once',
    topics: ['jobs'],
    async run(services) {
      await tellChanges(services)
      await tellApplies(services, reported)
    },
  }
}

type Reported = BoundedMap<string, true>

async function tellChanges({ state, clock, bus }: Services): Promise<void> {
  const { from, newest } = await span(state, CHANGES)
  for (let reported = from; reported < newest; ) {
    const rows = await heardAudit(state.db, reported, newest, BATCH)
    const upto = rows.length < BATCH ? newest : (rows.at(-1)?.position ?? newest)
    const trunks = await trunksOf(
      state.db,
      rows.filter(isOfPart).flatMap(({ trunk_id }) => trunk_id ?? []),
    )
    const events = rows.flatMap(row => {
      const kind = eventKindOf(row)
      const trunk = isOfPart(row) ? trunks.get(row.trunk_id ?? '') : undefined
      return kind === null ? [] : [eventOf(row, kind, trunk && ofTrunk(row, trunk))]
    })
    // The rows are read before the transaction, so that API writes wait only for these two statements.
    await state.shortTransaction(async trx => {
      await queueEvents(trx, events, clock.now())
      await noteReportedUpTo(trx, CHANGES, upto)
    })
    if (events.length > 0) bus.ring('outbox')
    reported = upto
  }
}

/** Returns the range of unreported positions. The first run starts at the newest: earlier events have no receivers. */
async function span(state: State, name: string): Promise<{ readonly from: number; readonly newest: number }> {
  const newest = await lastAuditPosition(state.db)
  const from = await reportedUpTo(state.db, name)
  if (from !== undefined) return { from, newest }
  await state.transaction(trx => noteReportedUpTo(trx, name, newest))
  return { from: newest, newest }
}

const eventOf = (row: HeardRow, kind: string, more: object = {}) => ({
  kind,
  project_id: row.project_id,
  id: `evt_${row.id.replace(/^aud_/, '')}`,
  data: {
    id: row.resource_id,
    name: row.resource_name,
    href: row.resource_href,
    summary: row.summary,
    revision: row.to_revision,
    at: row.at,
    request_id: row.request_id,
    ...more,
  },
})

/** The trunk of a change of its part, and the part. */
const ofTrunk = (row: HeardRow, trunk: { readonly name: string; readonly revision: number }) => ({
  id: row.trunk_id,
  href: `/v1/trunks/${row.trunk_id}`,
  ...trunk,
  part: { type: row.resource_type, id: row.resource_id, name: row.resource_name, href: row.resource_href },
})

/** Continues from the oldest write that is not yet applied. A later write of a trunk replaces its earlier ones. */
async function tellApplies({ state, clock, bus }: Services, reported: Reported): Promise<void> {
  const { from, newest } = await span(state, APPLIES)
  if (from >= newest) return
  const heard = await heardAudit(state.db, from, newest, BATCH)
  const rows = heard.filter(row => row.resource_type === 'trunk' && row.to_revision !== null)
  const last = new Map(rows.map(row => [row.resource_id, row]))
  let upto = from
  let waiting = false
  for (const row of rows) {
    const old = last.get(row.resource_id) !== row || reported.has(row.id)
    const done = old || (await reportApply({ state, clock, bus }, row, reported))
    if (!done) waiting = true
    if (!waiting) upto = row.position
  }
  if (!waiting) upto = heard.length < BATCH ? newest : (heard.at(-1)?.position ?? newest)
  if (upto > from) await state.transaction(trx => noteReportedUpTo(trx, APPLIES, upto))
}

async function reportApply(
  { state, clock, bus }: Pick<Services, 'state' | 'clock' | 'bus'>,
  row: HeardRow,
  reported: Reported,
): Promise<boolean> {
  const resource = { id: row.resource_id, revision: row.to_revision ?? 0 }
  const applied = await appliedState(state.db, resource, clock.now())
  if (applied.state === 'applying') return clock.now() - Date.parse(row.at) > PATIENCE_MS
  const kind = applied.state === 'applied' ? 'trunk.applied' : 'trunk.apply_failed'
  const { effective_revision, error } = applied
  const event = eventOf(row, kind, { effective_revision, error, at: iso(clock.now()) })
  const id = `${event.id}-apply`
  await state.shortTransaction(trx => queueEvents(trx, [{ ...event, id }], clock.now()))
  reported.set(row.id, true)
  bus.ring('outbox')
  return true
}
