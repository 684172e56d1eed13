import { NODE_SILENCE_MS } from '../configuration/apply.ts'
import type { Db } from '../db.ts'

/** Counts of open and waiting work over all projects, for operators. */
interface Backlog {
  readonly alerts_open: number
  readonly alerts_critical: number
  readonly containments_open: number
  readonly notifications_waiting: number
  readonly webhook_deliveries_waiting: number
  /** Trunks whose saved revision some live signaling node has not applied. */
  readonly trunks_behind: number
  /** Sources of trunks that wait for an operator (`strowger sources`). */
  readonly sources_waiting: number
  /** Sources that overlap another tenant's and so count only by their trunk's name. */
  readonly sources_name_only: number
}

export async function backlog(db: Db, now: string): Promise<Backlog> {
  const alive = new Date(Date.parse(now) - NODE_SILENCE_MS).toISOString()
  const row = await db
    .selectNoFrom(eb => {
      const sources = eb
        .selectFrom('trunk_source')
        .innerJoin('trunk as owner', 'owner.id', 'trunk_source.trunk_id')
        .select(eb.fn.countAll<number>().as('n'))
        .where('owner.status', '!=', 'released')
      const alerts = eb.selectFrom('alert').select(eb.fn.countAll<number>().as('n')).where('resolved_at', 'is', null)
      return [
        alerts.as('alerts_open'),
        alerts.where('severity', '=', 'critical').as('alerts_critical'),
        eb
          .selectFrom('containment')
          .select(eb.fn.countAll<number>().as('n'))
          .where('released_at', 'is', null)
          .where('expires_at', '>', now)
          .as('containments_open'),
        eb
          .selectFrom('alert_notification')
          .select(eb.fn.countAll<number>().as('n'))
          .where('state', '=', 'pending')
          .as('notifications_waiting'),
        eb
          .selectFrom('webhook_delivery')
          .select(eb.fn.countAll<number>().as('n'))
          .where('state', '=', 'pending')
          .as('webhook_deliveries_waiting'),
        eb
          .selectFrom('trunk')
          .select(eb.fn.countAll<number>().as('n'))
          .where('trunk.status', '!=', 'released')
          .where(({ exists, selectFrom }) =>
            exists(
              selectFrom('node')
                .select('node.id')
                .where('node.kind', '=', 'signaling')
                .where('node.heartbeat_at', '>=', alive)
                .where(inner =>
                  inner.not(
                    inner.exists(
                      inner
                        .selectFrom('apply_report')
                        .select('apply_report.revision')
                        .whereRef('apply_report.node_id', '=', 'node.id')
                        .whereRef('apply_report.resource_id', '=', 'trunk.id')
                        .whereRef('apply_report.revision', '>=', 'trunk.revision')
                        .where('apply_report.state', '=', 'applied'),
                    ),
                  ),
                ),
            ),
          )
          .as('trunks_behind'),
        sources.where('standing', '=', 'pending_approval').as('sources_waiting'),
        sources.where('standing', '=', 'name_only').as('sources_name_only'),
      ]
    })
    .executeTakeFirstOrThrow()
  const count = (name: keyof Backlog): number => Number(row[name] ?? 0)
  return {
    alerts_open: count('alerts_open'),
    alerts_critical: count('alerts_critical'),
    containments_open: count('containments_open'),
    notifications_waiting: count('notifications_waiting'),
    webhook_deliveries_waiting: count('webhook_deliveries_waiting'),
    trunks_behind: count('trunks_behind'),
    sources_waiting: count('sources_waiting'),
    sources_name_only: count('sources_name_only'),
  }
}
