import { type Selectable, sql } from 'kysely'
import {
  type AlertFinding,
  type AlertKind,
  attempted,
  longestWait,
  type OpenAlert,
  WHY_ACKNOWLEDGED,
} from '../../domain/alerts/index.ts'
import { iso } from '../../runtime/clock.ts'
import { newId } from '../../runtime/ids.ts'
import type { AlertNotificationTable, AlertTable, Db, Trx } from '../db.ts'
import { MEND_SLACK_MS } from '../delivery/outbox-delivery.ts'
import type { State } from '../index.ts'
import { queueWrite, readTogether, statement, updateOf } from '../port.ts'

export type AlertRow = Selectable<AlertTable>
export type NotificationRow = Selectable<AlertNotificationTable>

/** Lists the alerts of a project that were open at any time since `since`, newest first. */
export function listAlerts(
  db: Db | Trx,
  project_id: string,
  filter: { readonly since: string; readonly trunk_ids?: readonly string[] },
): Promise<AlertRow[]> {
  let query = db
    .selectFrom('alert')
    .selectAll()
    .where('project_id', '=', project_id)
    .where(eb => eb.or([eb('resolved_at', 'is', null), eb('resolved_at', '>=', filter.since)]))
    .orderBy('fired_at', 'desc')
    .orderBy('id')
    .limit(1000)
  if (filter.trunk_ids !== undefined) query = query.where('trunk_id', 'in', [...filter.trunk_ids])
  return query.execute()
}

export const findAlert = (db: Db | Trx, project_id: string, id: string): Promise<AlertRow | undefined> =>
  db.selectFrom('alert').selectAll().where('id', '=', id).where('project_id', '=', project_id).executeTakeFirst()

/** Finds an alert of any project. For operators. */
export const findAnyAlert = (db: Db | Trx, id: string): Promise<AlertRow | undefined> =>
  db.selectFrom('alert').selectAll().where('id', '=', id).executeTakeFirst()

/** Lists alerts of all projects, newest first. For operators. */
export function listAllAlerts(
  db: Db | Trx,
  page: {
    readonly limit: number
    readonly before?: { readonly at: string; readonly id: string }
    readonly organization_id?: string
    readonly kind?: AlertKind
    readonly state?: AlertRow['state']
  },
): Promise<AlertRow[]> {
  let query = db.selectFrom('alert').selectAll().orderBy('fired_at', 'desc').orderBy('id', 'desc')
  const { before, organization_id, kind, state, limit } = page
  if (organization_id !== undefined) query = query.where('organization_id', '=', organization_id)
  if (kind !== undefined) query = query.where('kind', '=', kind)
  if (state !== undefined) query = query.where('state', '=', state)
  if (before)
    query = query
      .where('fired_at', '<=', before.at)
      .where(eb => eb.or([eb('fired_at', '<', before.at), eb('id', '<', before.id)]))
  return query.limit(limit).execute()
}

/** Returns a project's open alerts of a kind, each with the resolution of the policy revision that fired it. */
/** Returns the kinds of open alerts, by project. */
export async function kindsOpen(db: Db): Promise<ReadonlyMap<string, ReadonlySet<AlertKind>>> {
  const rows = await db
    .selectFrom('alert')
    .select(['project_id', 'kind'])
    .distinct()
    .where('resolved_at', 'is', null)
    .execute()
  const kinds = new Map<string, Set<AlertKind>>()
  for (const { project_id, kind } of rows) kinds.set(project_id, (kinds.get(project_id) ?? new Set()).add(kind))
  return kinds
}

export async function openAlerts(db: Db | Trx, project_id: string, kind: AlertKind): Promise<OpenAlert[]> {
  const rows = await db
    .selectFrom('alert')
    .leftJoin('alert_policy', join =>
      join
        .onRef('alert_policy.id', '=', 'alert.policy_id')
        .onRef('alert_policy.revision', '=', 'alert.policy_revision'),
    )
    .selectAll('alert')
    .select('alert_policy.resolution')
    .where('alert.project_id', '=', project_id)
    .where('alert.kind', '=', kind)
    .where('alert.resolved_at', 'is', null)
    .execute()
  return rows.map(row => ({
    id: row.id,
    dedupe_key: row.dedupe_key,
    kind: row.kind,
    state: row.state === 'acknowledged' ? 'acknowledged' : 'firing',
    source_state: row.source_state,
    fired_at: row.fired_at,
    below_since: row.below_since,
    successes: row.successes,
    version: row.version,
    resolution: JSON.parse(
      row.resolution ??
        '{"rule":"acknowledged_or_24h","amount_minor":null,"count":null,"currency":null,"for_seconds":null,"percent":null}',
    ),
  }))
}

/** Returns the keys of a kind whose alerts fired since `since` and were resolved by an acknowledgement. */
export async function answeredKeys(
  db: Db | Trx,
  project_id: string,
  kind: AlertKind,
  since: string,
): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('alert')
    .select('dedupe_key')
    .where('project_id', '=', project_id)
    .where('kind', '=', kind)
    .where('fired_at', '>=', since)
    .where('resolved_why', '=', WHY_ACKNOWLEDGED)
    .execute()
  return new Set(rows.map(row => row.dedupe_key))
}

/** Finds the open alert of a key in any project. */
export const openAlertOf = (db: Db | Trx, dedupe_key: string): Promise<AlertRow | undefined> =>
  db
    .selectFrom('alert')
    .selectAll()
    .where('dedupe_key', '=', dedupe_key)
    .where('resolved_at', 'is', null)
    .executeTakeFirst()

export async function insertAlert(
  trx: Trx,
  finding: AlertFinding,
  context: Pick<AlertRow, 'organization_id' | 'project_id' | 'policy_id' | 'policy_revision'> & {
    readonly channels: readonly string[]
    readonly now: string
  },
): Promise<AlertRow> {
  const { channels, now, ...rest } = context
  return trx
    .insertInto('alert')
    .values({
      ...rest,
      ...columnsOf(finding),
      id: `alt_${newId.uuid()}`,
      kind: finding.kind,
      state: 'firing',
      source_state: 'measured',
      dedupe_key: finding.dedupe_key,
      containment_id: null,
      channels: JSON.stringify(channels),
      fired_at: now,
      acknowledged_at: null,
      acknowledged_by: null,
      resolved_at: null,
      resolved_why: null,
      below_since: null,
      successes: 0,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

const columnsOf = (finding: AlertFinding) => ({
  severity: finding.severity,
  reason: finding.reason,
  remediation: finding.remediation,
  subject_type: finding.subject.type,
  subject_id: finding.subject.id,
  subject_name: finding.subject.name,
  trunk_id: finding.trunk_id,
  evidence: JSON.stringify(finding.evidence),
  suggested_actions: JSON.stringify(finding.suggested_actions),
  version: finding.version,
})

/** Updates the alert of a condition that still holds. `updated_at` changes only when something else does. */
export async function keepAlert(
  trx: Trx,
  id: string,
  finding: AlertFinding,
  now: string,
): Promise<AlertRow | undefined> {
  const columns = columnsOf(finding)
  return trx
    .updateTable('alert')
    .set({ ...columns, below_since: null, successes: 0, updated_at: now })
    .where('id', '=', id)
    .where('resolved_at', 'is', null)
    .where(eb =>
      eb.or([eb('evidence', '!=', columns.evidence), eb('below_since', 'is not', null), eb('successes', '>', 0)]),
    )
    .returningAll()
    .executeTakeFirst()
}

export const changeAlert = (
  trx: Trx,
  id: string,
  changes: Partial<
    Pick<
      AlertRow,
      | 'state'
      | 'source_state'
      | 'below_since'
      | 'successes'
      | 'version'
      | 'acknowledged_at'
      | 'acknowledged_by'
      | 'resolved_at'
      | 'resolved_why'
      | 'containment_id'
    >
  >,
  now: string,
): Promise<AlertRow | undefined> =>
  trx
    .updateTable('alert')
    .set({ ...changes, updated_at: now })
    .where('id', '=', id)
    .where('resolved_at', 'is', null)
    .returningAll()
    .executeTakeFirst()

/** Returns the alerts of a project that changed at `since` or later, for live views. */
export const alertsChangedSince = (db: Db, project_id: string, since: string): Promise<AlertRow[]> =>
  db
    .selectFrom('alert')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('updated_at', '>=', since)
    .orderBy('updated_at')
    .limit(200)
    .execute()

export async function insertNotification(
  trx: Trx,
  notification: Pick<
    NotificationRow,
    'project_id' | 'alert_id' | 'event' | 'channel' | 'recipient' | 'subject' | 'body' | 'next_attempt_at'
  >,
  now: string,
): Promise<void> {
  await trx
    .insertInto('alert_notification')
    .values({
      ...notification,
      id: `ntf_${newId.uuid()}`,
      state: 'pending',
      attempts: 0,
      lease_until: null,
      last_error: null,
      created_at: now,
      delivered_at: null,
    })
    .execute()
}

const LEASE_MS = 60_000

/** The literal state matches the partial index of waiting rows. */
const ANY_PENDING = statement((db, _: object) =>
  db.selectFrom('alert_notification').select('id').where('state', '=', sql.lit('pending')).limit(1),
)

/**
 * Leases due notifications. When the process of a lease dies, another one takes the notification again. Takes no write
 * lock while nothing is due.
 */
export async function claimNotifications(
  state: State,
  now_ms: number,
  limit: number,
  channels: readonly NotificationRow['channel'][],
): Promise<NotificationRow[]> {
  const now = iso(now_ms)
  const due = (db: Db, most: number) =>
    db
      .selectFrom('alert_notification')
      .selectAll()
      .where('state', '=', 'pending')
      .where('channel', 'in', [...channels])
      .where('next_attempt_at', '<=', now)
      .where(eb => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<', now)]))
      .orderBy('next_attempt_at')
      .limit(most)
      .execute()
  const [pending] = await readTogether(state.db, ANY_PENDING({}))
  if (pending.length === 0 || (await due(state.db, 1)).length === 0) return []
  return state.transaction(async trx => {
    const rows = await due(trx, limit)
    const lease_until = iso(now_ms + LEASE_MS)
    for (const { id } of rows) await queueWrite(trx, updateOf('alert_notification', { lease_until }, id))
    return rows
  })
}

/** Stores the outcome of an attempt. A null `error` means sent; `final` means that retries cannot succeed. */
export async function settleNotification(
  db: Db,
  row: NotificationRow,
  error: { readonly text: string; readonly final: boolean } | null,
  at: { readonly now_ms: number; readonly jitter: number },
): Promise<void> {
  const attempts = row.attempts + 1
  const failed = error === null ? false : error.final ? 'final' : 'now'
  const attempt = { attempts, created_ms: Date.parse(row.created_at), failed } as const
  const { state, next_attempt_ms } = attempted(attempt, at.now_ms, at.jitter)
  await db
    .updateTable('alert_notification')
    .set({
      state,
      attempts,
      last_error: error === null ? null : error.text.slice(0, 300),
      next_attempt_at: iso(next_attempt_ms),
      delivered_at: state === 'delivered' ? iso(at.now_ms) : null,
      lease_until: null,
    })
    .where('id', '=', row.id)
    .execute()
}

/** Corrects what waiting notifications got before the clock was set back: one that waits too long is due now. */
export async function mendNotificationTimes(db: Db, now_ms: number): Promise<void> {
  const now = iso(now_ms)
  const after = (ms: number): string => iso(now_ms + ms + MEND_SLACK_MS)
  const waiting = await db
    .selectFrom('alert_notification')
    .select(['id', 'attempts', 'created_at', 'next_attempt_at'])
    .where('state', '=', sql.lit('pending'))
    .where('next_attempt_at', '>', after(0))
    .execute()
  for (const { id, attempts, created_at, next_attempt_at } of waiting)
    if (next_attempt_at > after(longestWait(attempts, next_attempt_at > created_at)))
      await db.updateTable('alert_notification').set({ next_attempt_at: now }).where('id', '=', id).execute()
  await sql`update alert_notification set lease_until = null where state = 'pending'
    and lease_until > ${after(LEASE_MS)}`.execute(db)
  // The day of its retries begins with it.
  await sql`update alert_notification set created_at = ${now} where state = 'pending'
    and created_at > ${after(0)}`.execute(db)
}

/** Deletes alerts a year after their resolution (lists show at most 90 days) and notifications after 30 days. */
export async function forgetOldAlerts(db: Db, now_ms: number): Promise<void> {
  const day_ms = 86_400_000
  await sql`delete from alert where id in (select id from alert where resolved_at < ${iso(now_ms - 365 * day_ms)}
    limit 1000)`.execute(db)
  await sql`delete from alert_notification where id in (select id from alert_notification
    where state != 'pending' and created_at < ${iso(now_ms - 30 * day_ms)} limit 1000)`.execute(db)
}
