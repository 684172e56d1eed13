import type { Selectable } from 'kysely'
import { LIVE_CALLS } from '../calls/counters.ts'
import type { ApplyReportTable, Db, TargetEvidenceTable, Trx } from '../db.ts'
import { cachedQuery, combinedQuery, statement } from '../port.ts'
import type { CredentialRow, SourceRow, TargetRow, TrunkFigures, TrunkNumbers, TrunkRow } from './trunks.ts'

/** A trunk with all facts that the API reports, read in one message from one snapshot. */
export type LoadedTrunk = TrunkRow & {
  readonly subaccount_name: string | null
  readonly below: TrunkBelow
}

/** Facts from other tables. The cached object stays the same while those tables do, even if the trunk changes. */
export interface TrunkBelow {
  readonly sources: readonly SourceRow[]
  readonly targets: readonly TargetRow[]
  readonly credentials: readonly CredentialRow[]
  readonly live_calls: number
  readonly policy: TrunkFigures['policy']
  readonly numbers: TrunkNumbers
  readonly evidence: readonly Selectable<TargetEvidenceTable>[]
  /** Reports of all signaling nodes, alive or not. Null columns: the node has not reported the trunk. */
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

const NUMBERS = statement((db, { id }: One) =>
  db
    .selectFrom('number')
    .select([
      eb => eb.fn.countAll<number>().as('routed'),
      eb => eb.fn.min('e164').as('first'),
      eb => eb.fn.max('e164').as('last'),
    ])
    .where('route_kind', '=', 'trunk')
    .where('route_id', '=', id),
)

const QUARANTINED = statement((db, { id }: One) =>
  db
    .selectFrom('number')
    .select([eb => eb.fn.countAll<number>().as('count'), eb => eb.fn.max('quarantined_until').as('until')])
    .where('last_trunk_id', '=', id)
    .where('status', '=', 'quarantined'),
)

const DELEGATED = statement((db, { id }: One) =>
  db
    .selectFrom('delegation')
    .innerJoin('subtrunk', 'subtrunk.id', 'delegation.subtrunk_id')
    .select([eb => eb.fn.sum<number>('delegation.size').as('count'), 'subtrunk.name'])
    .where('subtrunk.trunk_id', '=', id)
    .where('delegation.status', '!=', 'detaching')
    .groupBy(['subtrunk.id', 'subtrunk.name'])
    .orderBy('subtrunk.name'),
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

const keyOf = ({ id, project_id }: One): string => `${id} ${project_id}`

const OWN = cachedQuery(
  keyOf,
  one => [TRUNK(one)],
  ([[row]]) => row,
)

const BELOW = cachedQuery(
  keyOf,
  one => [
    SOURCES(one),
    TARGETS(one),
    CREDENTIALS(one),
    POLICY(one),
    LIVE_CALLS({ level: 'trunk', id: one.id }),
    NUMBERS(one),
    QUARANTINED(one),
    DELEGATED(one),
    EVIDENCE(one),
    REPORTS(one),
  ],
  ([
    sources,
    targets,
    credentials,
    [policy],
    [use],
    [number],
    [resting],
    delegated,
    evidence,
    reports,
  ]): TrunkBelow => ({
    sources,
    targets,
    credentials,
    live_calls: Number(use?.live ?? 0),
    policy: policy ?? null,
    numbers: {
      routed: Number(number?.routed ?? 0),
      first: number?.first ?? null,
      last: number?.last ?? null,
      quarantined: Number(resting?.count ?? 0),
      quarantined_until: resting?.until ?? null,
      delegated: delegated.map(({ name, count }) => ({ name, count: Number(count) })),
    },
    evidence,
    reports,
  }),
)

const LOADED = combinedQuery(keyOf, OWN, BELOW, (trunk, below): LoadedTrunk | undefined => trunk && { ...trunk, below })

/** Reads a trunk with its facts; undefined for an unknown or released trunk. Callers must not modify the result. */
export const readTrunk = (db: Db | Trx, one: One): Promise<LoadedTrunk | undefined> => LOADED.read(db, one)
