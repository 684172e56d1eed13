import { toldAs } from '../../core/domain/webhooks/kinds.ts'
import { iso } from '../../core/runtime/clock.ts'
import { appliedState } from '../../core/state/apply.ts'
import type { AuditRow } from '../../core/state/audit.ts'
import { auditAfter, lastAuditPosition, noteToldUpTo, toldUpTo } from '../../core/state/told-events.ts'
import { queueEvent } from '../../core/state/webhook-endpoints.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from './reconciler.ts'

const BATCH = 200
const CHANGES = 'audit'
const APPLIES = 'applies'
/** A write that no node has taken up after so long is told no more: its trunk has been written again, or is gone. */
const PATIENCE_MS = 60 * 60 * 1000

/**
 * Tells webhook endpoints what the audit trail says of trunks, numbers and recordings, and when a saved trunk came into
 * force or could not. The trail is written with every change, so that no change is missed and no write waits for this;
 * ids of events come from the trail, so that what is told twice after a crash can be told apart.
 */
export const auditEvents: Reconciler = {
  name: 'audit-events',
  period_ms: 1000,
  topics: ['jobs'],
  async run(services) {
    await tellChanges(services)
    await tellApplies(services)
  },
}

async function tellChanges({ state, clock, bus }: Services): Promise<void> {
  for (;;) {
    const told = await state.transaction(async trx => {
      const from = await toldUpTo(trx, CHANGES)
      if (from === undefined) {
        // What was before endpoints could ask for it is nobody's news.
        await noteToldUpTo(trx, CHANGES, await lastAuditPosition(trx))
        return 0
      }
      const rows = await auditAfter(trx, from, BATCH)
      for (const row of rows) {
        const kind = toldAs(row.action)
        if (kind !== null && row.project_id !== null)
          await queueEvent(trx, { ...eventOf(row, kind), project_id: row.project_id }, clock.now())
      }
      const last = rows.at(-1)
      if (last) await noteToldUpTo(trx, CHANGES, last.position)
      return rows.length
    })
    if (told > 0) bus.ring('outbox', '')
    if (told < BATCH) return
  }
}

const eventOf = (row: AuditRow, kind: string, more: object = {}) => ({
  kind,
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

/** Goes on from the oldest write that is not in force yet; a later write of the same trunk stands for the earlier. */
async function tellApplies({ state, clock, bus }: Services): Promise<void> {
  const from = await toldUpTo(state.db, APPLIES)
  if (from === undefined) return noteToldUpTo(state.db, APPLIES, await lastAuditPosition(state.db))
  const rows = (await auditAfter(state.db, from, BATCH)).filter(isTrunkWrite)
  if (rows.length === 0) return noteToldUpTo(state.db, APPLIES, Math.max(from, await lastOf(state.db, from)))
  const newest = new Map(rows.map(row => [row.resource_id, row]))
  let told = from
  let waiting = false
  for (const row of rows) {
    const done = newest.get(row.resource_id) !== row || (await toldApply({ state, clock, bus }, row))
    if (!done) waiting = true
    if (!waiting) told = row.position
  }
  if (told > from) await noteToldUpTo(state.db, APPLIES, told)
}

async function lastOf(db: Services['state']['db'], from: number): Promise<number> {
  return (await auditAfter(db, from, BATCH)).at(-1)?.position ?? from
}

const isTrunkWrite = (row: AuditRow): boolean =>
  row.resource_type === 'trunk' && row.to_revision !== null && row.project_id !== null

/** Writes that were told while an earlier one still waits: they must not be told again at every look. */
const already = new Set<string>()
const MAX_REMEMBERED = 10_000

async function toldApply({ state, clock, bus }: Pick<Services, 'state' | 'clock' | 'bus'>, row: AuditRow) {
  if (already.has(row.id)) return true
  const resource = { id: row.resource_id, revision: row.to_revision ?? 0 }
  const applied = await appliedState(state.db, resource, clock.now())
  if (applied.state === 'applying') return clock.now() - Date.parse(row.at) > PATIENCE_MS
  const kind = applied.state === 'applied' ? 'trunk.applied' : 'trunk.apply_failed'
  const { effective_revision, error } = applied
  const event = eventOf(row, kind, { effective_revision, error, at: iso(clock.now()) })
  const id = `${event.id}-apply`
  await state.transaction(trx => queueEvent(trx, { ...event, id, project_id: row.project_id ?? '' }, clock.now()))
  if (already.size > MAX_REMEMBERED) already.clear()
  already.add(row.id)
  bus.ring('outbox', '')
  return true
}
