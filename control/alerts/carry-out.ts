import type { AlertFinding, AlertPolicy, Transition } from '../../core/domain/alerts/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { type AlertRow, changeAlert, insertAlert, keepAlert, openAlertOf } from '../../core/state/alerts/alerts.ts'
import { failure, type State, type Trx } from '../../core/state/index.ts'
import { appendAudit } from '../../core/state/people/audit.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import { type TellContext, tellAlert } from './tell.ts'

export interface AlertContext extends TellContext {
  readonly state: State
  readonly project: ProjectRow
}

export const SYSTEM = { type: 'system', id: null, name: 'Strowger', detail: null } as const

/** Carries out a transition. Its rows, messages and audit event commit in one transaction. */
export async function applyTransition(context: AlertContext, policy: AlertPolicy, step: Transition): Promise<void> {
  const { state, now_ms } = context
  const now = iso(now_ms)
  switch (step.do) {
    case 'fire':
      await state
        .transaction(trx => fire(trx, context, policy, step.finding))
        .catch(error => {
          // Another process fired the same alert at the same time.
          if (failure(error) !== 'unique') throw error
        })
      return
    case 'keep':
      await state.transaction(trx => keepAlert(trx, step.alert.id, step.finding, now))
      return
    case 'count': {
      const { below_since, successes, version } = step
      await state.transaction(trx => changeAlert(trx, step.alert.id, { below_since, successes, version }, now))
      return
    }
    case 'source':
      await state.transaction(trx => changeAlert(trx, step.alert.id, { source_state: step.source_state }, now))
      return
    case 'resolve':
      await state.transaction(async trx => {
        const changes = { state: 'resolved' as const, resolved_at: now, resolved_why: step.why }
        const row = await changeAlert(trx, step.alert.id, changes, now)
        if (!row) return
        await recorded(trx, context, row, 'alert.resolved', `Alert resolved: ${step.why}`)
        await tellAlert(trx, row, 'alert.resolved', context)
      })
  }
}

/** Fires an alert, or returns the open one with the same key. */
export async function fire(
  trx: Trx,
  context: AlertContext,
  policy: AlertPolicy,
  finding: AlertFinding,
): Promise<AlertRow> {
  const open = await openAlertOf(trx, finding.dedupe_key)
  if (open) return open
  const { project, now_ms } = context
  const row = await insertAlert(trx, finding, {
    organization_id: project.organization_id,
    project_id: project.id,
    policy_id: policy.id,
    policy_revision: policy.revision,
    channels: policy.channels,
    now: iso(now_ms),
  })
  await recorded(trx, context, row, 'alert.fired', `Alert fired: ${finding.reason}`)
  await tellAlert(trx, row, 'alert.fired', context)
  return row
}

async function recorded(
  trx: Trx,
  { project, now_ms }: Pick<AlertContext, 'project' | 'now_ms'>,
  row: AlertRow,
  action: string,
  summary: string,
): Promise<void> {
  await appendAudit(trx, {
    id: newId.auditEvent(),
    organization_id: project.organization_id,
    project_id: project.id,
    at: iso(now_ms),
    actor: SYSTEM,
    category: 'security',
    kind: 'alerts',
    action,
    summary,
    detail: null,
    resource: { type: 'alert', id: row.id, name: row.kind, href: null },
    trunk_id: row.trunk_id,
    from_revision: null,
    to_revision: null,
    request_id: null,
    changes: [],
  })
}
