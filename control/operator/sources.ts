import {
  approveSource,
  type LimitedSource,
  limitedSources,
  pendingSource,
} from '../../core/state/configuration/sources.ts'
import { deleteSource, type SourceRow, saveTrunk, type TrunkRow } from '../../core/state/configuration/trunks.ts'
import type { Trx } from '../../core/state/index.ts'
import { pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { type Change, isRefusal, notFound, type Refusal, refuse } from '../http/reply.ts'
import { Instant, list, nullable, pageSchema, resource, type Static, Type } from '../http/schema.ts'
import { SourceStanding } from '../v1/trunk-schemas.ts'
import { customerOf } from './customer-of.ts'
import { route } from './route.ts'

const MAX_PAGE = 200
const DEFAULT_PAGE = 50
const SubaccountId = nullable(Type.String())

const LimitedSourceAnswer = resource('OperatorLimitedSource', {
  id: Type.String(),
  cidr: Type.String(),
  standing: SourceStanding,
  created_at: Instant,
  trunk_id: Type.String(),
  trunk_name: Type.String(),
  project_id: Type.String(),
  subaccount_id: SubaccountId,
  overlaps: list(
    resource('OperatorSourceOverlap', {
      cidr: Type.String(),
      trunk_name: Type.String(),
      project_id: Type.String(),
      subaccount_id: SubaccountId,
    }),
  ),
  carrier: nullable(resource('OperatorOverrulingCarrier', { cidr: Type.String(), name: Type.String() }), {
    description: 'The carrier whose source takes precedence over it.',
  }),
})

export type PresentedSource = Static<typeof LimitedSourceAnswer>

const present = ({ carrier, overlaps, ...row }: LimitedSource): PresentedSource => ({
  id: row.id,
  cidr: row.cidr,
  standing: row.standing,
  created_at: row.created_at,
  trunk_id: row.trunk_id,
  trunk_name: row.trunk_name,
  project_id: row.project_id,
  subaccount_id: row.subaccount_id,
  overlaps: overlaps.map(({ cidr, trunk_name, project_id, subaccount_id }) => ({
    cidr,
    trunk_name,
    project_id,
    subaccount_id,
  })),
  carrier: carrier ? { cidr: carrier.cidr, name: carrier.name } : null,
})

const refusalOf = (
  id: string,
  why: 'unknown' | 'not_pending' | 'carriers',
): Refusal<'not_found' | 'state_conflict' | 'source_of_carrier'> => {
  if (why === 'unknown') return notFound(`source ${id.slice(0, 60)}`)
  return why === 'carriers'
    ? refuse('source_of_carrier', { value: id })
    : refuse('state_conflict', { name: `source ${id}`, value: 'decided: it does not wait for an approval' })
}

async function sourceChange(
  db: Trx,
  { cidr }: SourceRow,
  trunk: TrunkRow,
  of: { readonly verb: string; readonly from_revision: number; readonly after: string | null },
): Promise<Change> {
  return {
    resource: { type: 'trunk', id: trunk.id, name: trunk.name, href: `/v1/trunks/${trunk.id}` },
    summary: `${of.verb} source ${cidr} of trunk ${trunk.name}`,
    before: { standing: 'pending_approval' },
    after: { standing: of.after },
    trunk_id: trunk.id,
    from_revision: of.from_revision,
    to_revision: trunk.revision,
    ...(await customerOf(db, trunk.project_id)),
  }
}

export const sources = [
  route({
    method: 'get',
    path: '/source-approvals',
    summary: 'List the sources of trunks that wait for an approval, count by name alone, or are overruled by a carrier',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: { 200: pageSchema(LimitedSourceAnswer) },
    async run({ db, now, query: { cursor, limit = DEFAULT_PAGE } }) {
      const position = readCursor(cursor, ['number', 'string', 'string'])
      if (isRefusal(position)) return position
      const after = position && { overruled: position[0] === 1, created_at: position[1], id: position[2] }
      const rows = await limitedSources(db, now, { limit: limit + 1, ...(after ? { after } : {}) })
      const { shown, more } = pageOf(rows, limit, row => [row.carrier ? 1 : 0, row.created_at, row.id])
      return { status: 200, body: { data: shown.map(present), ...more } }
    },
  }),

  route({
    method: 'post',
    path: '/source-approvals/{source_id}/approve',
    summary:
      'Approve a source that waits because it is wide or beyond the hundredth; it takes no address from another tenant',
    scope: 'operator:fraud',
    context: 'organization',
    applies: true,
    audit: { kind: 'trunks', action: 'source.approved' },
    replies: { 204: null },
    refusals: ['state_conflict', 'source_of_carrier'],
    async run({ db, params, now }) {
      const approval = await approveSource(db, params.source_id, now)
      if ('refused' in approval) return refusalOf(params.source_id, approval.refused)
      const { source, trunk, from_revision } = approval
      const change = await sourceChange(db, source, trunk, { verb: 'Approved', from_revision, after: source.standing })
      return { status: 204, change }
    },
  }),

  route({
    method: 'post',
    path: '/source-approvals/{source_id}/refuse',
    summary: 'Refuse a source that waits for approval, which removes it',
    scope: 'operator:fraud',
    context: 'organization',
    applies: true,
    audit: { kind: 'trunks', action: 'source.refused' },
    replies: { 204: null },
    refusals: ['state_conflict', 'source_of_carrier'],
    async run({ db, params, now }) {
      const found = await pendingSource(db, params.source_id)
      if ('refused' in found) return refusalOf(params.source_id, found.refused)
      const { source, trunk } = found
      await deleteSource(db, source.id)
      const saved = await saveTrunk(db, trunk, {}, now)
      const from_revision = trunk.revision
      return {
        status: 204,
        change: await sourceChange(db, source, saved, { verb: 'Refused', from_revision, after: null }),
      }
    },
  }),
]
