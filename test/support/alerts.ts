import { insertAlert } from '../../core/state/alerts/alerts.ts'
import { insertContainment } from '../../core/state/alerts/containments.ts'
import type { State } from '../../core/state/index.ts'

interface Owner {
  readonly state: State
  readonly demo: { readonly project_id: string }
}

let made = 0

/** Inserts an open alert of the project. Returns its id. */
export async function insertTestAlert(
  { state, demo }: Owner,
  kind: 'new_source_ip' | 'endpoint_health' = 'endpoint_health',
) {
  const policy = await state.db
    .selectFrom('alert_policy')
    .innerJoin('project', 'project.organization_id', 'alert_policy.organization_id')
    .selectAll('alert_policy')
    .where('project.id', '=', demo.project_id)
    .where('kind', '=', kind)
    .where('newest', '=', 1)
    .executeTakeFirstOrThrow()
  const row = await state.transaction(trx =>
    insertAlert(
      trx,
      {
        kind,
        dedupe_key: `${kind}:test:${++made}`,
        severity: 'warning',
        subject: { id: 'x', name: 'Thing', type: 'organization' },
        trunk_id: null,
        reason: 'Something is not as it should be.',
        remediation: 'Mend it.',
        evidence: [],
        suggested_actions: [],
        version: null,
      },
      {
        organization_id: policy.organization_id,
        project_id: demo.project_id,
        policy_id: policy.id,
        policy_revision: policy.revision,
        channels: ['in_app'],
        now: new Date().toISOString(),
      },
    ),
  )
  return row.id
}

export async function insertTestContainment({ state, demo }: Owner): Promise<string> {
  const now = Date.now()
  const row = await state.transaction(trx =>
    insertContainment(trx, {
      project_id: demo.project_id,
      trunk_id: null,
      prefix: `8821${100 + ++made}`,
      case_ref: `SEC-TEST-${made}`,
      reason_category: 'destination_risk',
      reason_detail: 'test',
      source_alert_id: null,
      starts_at: new Date(now).toISOString(),
      expires_at: new Date(now + 3_600_000).toISOString(),
    }),
  )
  return row.id
}
