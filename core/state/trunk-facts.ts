import { type Selectable, sql } from 'kysely'
import { derivation, statement } from './batch.ts'
import type { ApplyReportTable, Db, TargetEvidenceTable, Trx } from './index.ts'
import type { CredentialRow, SourceRow, TargetRow, TrunkFigures, TrunkNumbers, TrunkRow } from './trunks.ts'

/** A trunk with all that is told of it, read in one message and of one instant. */
export interface TrunkFacts {
  readonly trunk: TrunkRow
  readonly sources: readonly SourceRow[]
  readonly targets: readonly TargetRow[]
  readonly credentials: readonly CredentialRow[]
  readonly figures: TrunkFigures & { readonly numbers_of: TrunkNumbers }
  readonly evidence: readonly Selectable<TargetEvidenceTable>[]
  /** What each signaling node runs of it, living or not; null columns: it has not reported it. */
  readonly reports: readonly (NodeReport & { readonly heartbeat_at: string })[]
}

export type NodeReport = {
  readonly [C in 'revision' | 'state' | 'error' | 'applied_at']: ApplyReportTable[C] | null
}

interface One {
  readonly id: string
  readonly project_id: string
}

/** The one read of the trunk's own table: what is kept of the others outlasts a write to it. */
const TRUNK = statement((db, { id, project_id }: One) =>
  db
    .selectFrom('trunk')
    .leftJoin('subaccount', 'subaccount.id', 'trunk.subaccount_id')
    .selectAll('trunk')
    .select('subaccount.name as subaccount_name')
    .where('trunk.id', '=', id)
    .where('trunk.project_id', '=', project_id)
    .where('trunk.status', '!=', 'released'),
)

const SOURCES = statement((db, { id }: One) =>
  db
    .selectFrom('trunk_source')
    .selectAll()
    .where('trunk_id', '=', id)
    .orderBy('selector_precedence')
    .orderBy('created_at')
    .orderBy('id'),
)

const TARGETS = statement((db, { id }: One) =>
  db
    .selectFrom('termination_target')
    .selectAll()
    .where('trunk_id', '=', id)
    .orderBy('priority')
    .orderBy('created_at')
    .orderBy('id'),
)

const CREDENTIALS = statement((db, { id }: One) =>
  db.selectFrom('digest_credential').selectAll().where('trunk_id', '=', id).orderBy('created_at').orderBy('id'),
)

const POLICY = statement((db, { id }: One) =>
  db
    .selectFrom('policy_attachment')
    .innerJoin('outbound_policy', 'outbound_policy.id', 'policy_attachment.policy_id')
    .select([
      'outbound_policy.id',
      'outbound_policy.name',
      'outbound_policy.revision',
      'outbound_policy.daily_spend_limit_minor',
      'outbound_policy.max_destination_rate_minor',
    ])
    .where('policy_attachment.service_type', '=', 'trunk')
    .where('policy_attachment.service_id', '=', id),
)

const USE = statement((db, { id }: One) =>
  db.selectFrom('level_use').select('live').where('level', '=', 'trunk').where('subject_id', '=', id),
)

const NUMBERS = statement((db, { id }: One) =>
  db
    .selectFrom('number')
    .select([
      eb => eb.fn.countAll<number>().as('routed'),
      eb => eb.fn.min('e164').as('first'),
      eb => eb.fn.max('e164').as('last'),
      eb => eb.fn.max('quarantined_until').as('quarantined_until'),
      sql<number>`coalesce(sum(case when status = 'quarantined' then 1 else 0 end), 0)`.as('quarantined'),
    ])
    .where('route_kind', '=', 'trunk')
    .where('route_id', '=', id),
)

const EVIDENCE = statement((db, { id }: One) =>
  db
    .selectFrom('target_evidence')
    .innerJoin('termination_target', 'termination_target.id', 'target_evidence.target_id')
    .selectAll('target_evidence')
    .where('termination_target.trunk_id', '=', id),
)

const REPORTS = statement((db, { id }: One) =>
  db
    .selectFrom('node')
    .leftJoin('apply_report', join =>
      join.onRef('apply_report.node_id', '=', 'node.id').on('apply_report.resource_id', '=', id),
    )
    .select([
      'apply_report.revision',
      'apply_report.state',
      'apply_report.error',
      'apply_report.applied_at',
      'node.heartbeat_at',
    ])
    .where('node.kind', '=', 'signaling'),
)

const FACTS = derivation(
  ({ id, project_id }: One) => `${id} ${project_id}`,
  one => [
    TRUNK(one),
    SOURCES(one),
    TARGETS(one),
    CREDENTIALS(one),
    POLICY(one),
    USE(one),
    NUMBERS(one),
    EVIDENCE(one),
    REPORTS(one),
  ],
  ([[trunk], sources, targets, credentials, [policy], [use], [number], evidence, reports]) => {
    if (!trunk || !number) return undefined
    const routed = Number(number.routed)
    const figures = {
      live_calls: Number(use?.live ?? 0),
      numbers: routed,
      targets: targets.length,
      subaccount_name: trunk.subaccount_name,
      policy: policy ?? null,
      numbers_of: {
        routed,
        first: number.first,
        last: number.last,
        quarantined: Number(number.quarantined),
        quarantined_until: number.quarantined_until,
      },
    }
    const facts: TrunkFacts = { trunk, sources, targets, credentials, evidence, figures, reports }
    return facts
  },
)

/** Undefined when the project has no such trunk; a released one is found no more. Shared: nobody may change it. */
export const readTrunkFacts = (db: Db | Trx, one: One): Promise<TrunkFacts | undefined> => FACTS(db, one)
