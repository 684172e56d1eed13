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

const TRUNK = statement((db, { id, project_id }: One) =>
  db
    .selectFrom('trunk')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .where('status', '!=', 'released'),
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

const FIGURES = statement((db, { id }: One) =>
  db
    .selectFrom('trunk')
    .leftJoin('subaccount', 'subaccount.id', 'trunk.subaccount_id')
    .leftJoin('policy_attachment', join =>
      join.onRef('policy_attachment.service_id', '=', 'trunk.id').on('policy_attachment.service_type', '=', 'trunk'),
    )
    .leftJoin('outbound_policy', 'outbound_policy.id', 'policy_attachment.policy_id')
    .leftJoin('level_use', join =>
      join.onRef('level_use.subject_id', '=', 'trunk.id').on('level_use.level', '=', 'trunk'),
    )
    .select([
      'subaccount.name as subaccount_name',
      'outbound_policy.id as policy_id',
      'outbound_policy.name as policy_name',
      'outbound_policy.revision as policy_revision',
      'outbound_policy.daily_spend_limit_minor',
      'outbound_policy.max_destination_rate_minor',
      'level_use.live',
    ])
    .where('trunk.id', '=', id),
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
    FIGURES(one),
    NUMBERS(one),
    EVIDENCE(one),
    REPORTS(one),
  ],
  ([[trunk], sources, targets, credentials, [figure], [number], evidence, reports]): TrunkFacts | undefined => {
    if (!trunk || !figure || !number) return undefined
    const { policy_id: id, policy_name: name, policy_revision: revision } = figure
    const { daily_spend_limit_minor, max_destination_rate_minor } = figure
    const routed = Number(number.routed)
    const figures = {
      live_calls: Number(figure.live ?? 0),
      numbers: routed,
      targets: targets.length,
      subaccount_name: figure.subaccount_name,
      policy:
        id === null || name === null || revision === null
          ? null
          : { id, name, revision, daily_spend_limit_minor, max_destination_rate_minor },
      numbers_of: {
        routed,
        first: number.first,
        last: number.last,
        quarantined: Number(number.quarantined),
        quarantined_until: number.quarantined_until,
      },
    }
    return { trunk, sources, targets, credentials, evidence, figures, reports }
  },
)

/** Undefined when the project has no such trunk; a released one is found no more. Shared: nobody may change it. */
export const readTrunkFacts = (db: Db | Trx, one: One): Promise<TrunkFacts | undefined> => FACTS(db, one)
