import { numbersOfRange, saveNumber } from '../../core/state/configuration/numbers.ts'
import {
  blockSize,
  type DelegationRow,
  delegate,
  detachDelegation,
  findBlock,
  findSubtrunk,
  listDelegations,
  type SubtrunkRow,
  saveSubtrunk,
} from '../../core/state/configuration/subtrunks.ts'
import type { Trx } from '../../core/state/index.ts'
import type { Caller } from '../http/caller.ts'
import { type Change, invalid, isRefusal, notFound, type Refusal, refuse } from '../http/reply.ts'
import { E164, Instant, Int32, input, listOf, oneOf, optional, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'
import { seenNumbers } from './seen-numbers.ts'

export const Delegation = resource('Delegation', {
  id: Type.String(),
  block_id: Type.String(),
  start: Type.String(),
  end: Type.String(),
  size: Int32,
  status: oneOf('pending', 'applying', 'applied', 'failed', 'detaching'),
  assigned_at: Instant,
  assigned_by: Type.String(),
})

export const presentDelegation = (row: DelegationRow): Static<typeof Delegation> => ({
  id: row.id,
  block_id: row.block_id,
  start: row.start,
  end: row.end,
  size: row.size,
  status: row.status,
  assigned_at: row.assigned_at,
  assigned_by: row.assigned_by,
})

/** A range within a block. Without `start` and `end` it is the whole block. */
const range = { start: optional(E164), end: optional(E164) }

interface Wish {
  readonly block_id: string
  readonly start?: string
  readonly end?: string
}

/**
 * Delegates a range of a block to a subtrunk, which gets a new revision. The subtrunk may present the numbers and
 * receives their calls.
 */
async function delegateTo(
  trx: Trx,
  subtrunk: SubtrunkRow,
  wish: Wish,
  facts: { readonly now: string; readonly caller: Caller },
) {
  if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
  const made = await delegated(trx, subtrunk, wish, facts)
  if (isRefusal(made)) return made
  const saved = await saveSubtrunk(trx, subtrunk, {}, facts.now)
  return {
    status: 201 as const,
    revision: saved.revision,
    body: presentDelegation(made),
    change: delegationChange(saved, `Delegated ${made.start} to ${made.end} to subtrunk ${saved.name}`, null, made),
  }
}

async function delegated(
  trx: Trx,
  subtrunk: SubtrunkRow,
  wish: Wish,
  { now, caller }: { readonly now: string; readonly caller: Caller },
): Promise<DelegationRow | Refusal<'not_found' | 'validation_failed' | 'number_in_use'>> {
  const block = await findBlock(trx, subtrunk.project_id, wish.block_id)
  if (!block) return notFound(`number block ${wish.block_id.slice(0, 60)}`)
  const { start = block.start, end = block.end } = wish
  if (blockSize(start, end) === null || start < block.start || end > block.end)
    return invalid('/start', `and end are no range within ${block.start} to ${block.end}`)
  const numbers = await seenNumbers(trx, caller, subtrunk.project_id, { start, end })
  if (!numbers) return notFound(`number block ${wish.block_id.slice(0, 60)}`)
  const assigned_by = caller.actor.name
  const given = { block_id: block.id, subtrunk_id: subtrunk.id, start, end, assigned_at: now, assigned_by }
  const made = await delegate(trx, given)
  if (!made) return refuse('number_in_use', { value: `${start} to ${end}`, limit: 'delegated already' })
  for (const number of numbers) await saveNumber(trx, number, { route_kind: 'subtrunk', route_id: subtrunk.id }, now)
  return made
}

const delegationChange = (
  subtrunk: SubtrunkRow,
  summary: string,
  before: DelegationRow | null,
  after: DelegationRow | null,
): Change => ({
  resource: {
    type: 'subtrunk',
    id: subtrunk.id,
    name: subtrunk.name,
    href: `/v1/trunks/${subtrunk.trunk_id}/subtrunks/${subtrunk.id}`,
  },
  summary,
  before: before && presentDelegation(before),
  after: after && presentDelegation(after),
  trunk_id: subtrunk.trunk_id,
  to_revision: subtrunk.revision,
})

const PATH = '/trunks/{trunk_id}/subtrunks/{subtrunk_id}/delegations'

export const delegations = [
  route({
    method: 'get',
    path: PATH,
    summary: 'List the number ranges that a subtrunk has',
    scope: 'service_configuration:read',
    replies: { 200: listOf(Delegation) },
    async run({ db, subtrunk }) {
      const data = (await listDelegations(db, subtrunk.id)).map(presentDelegation)
      return { status: 200, revision: subtrunk.revision, body: { data } }
    },
  }),

  route({
    method: 'post',
    path: PATH,
    summary: 'Delegate a number block, or a range of it, to a subtrunk',
    scope: 'numbers:manage',
    if_match: 'subtrunk',
    idempotent: true,
    applies: true,
    audit: { kind: 'numbers', action: 'number_block.delegated' },
    body: input('SubtrunkDelegationRequest', { block_id: Type.String({ maxLength: 128 }), ...range }),
    replies: { 201: Delegation },
    refusals: ['number_in_use', 'state_conflict'],
    async run({ db, subtrunk, caller, body, now }) {
      return delegateTo(db, subtrunk, body, { now, caller })
    },
  }),

  route({
    method: 'post',
    path: '/number-blocks/{block_id}/delegate',
    summary: 'Delegate a block, or a range of it, to a subtrunk',
    scope: 'numbers:manage',
    idempotent: true,
    applies: true,
    audit: { kind: 'numbers', action: 'number_block.delegated' },
    body: input('DelegateRequest', { subtrunk_id: Type.String({ maxLength: 128 }), ...range }),
    replies: { 201: Delegation },
    refusals: ['number_in_use', 'state_conflict'],
    async run({ db, project, params, caller, body, now }) {
      const subtrunk = await findSubtrunk(db, project.id, body.subtrunk_id)
      if (!subtrunk) return invalid('/subtrunk_id', 'is not a subtrunk of the project')
      const { subtrunk_id: _, ...given } = body
      return delegateTo(db, subtrunk, { ...given, block_id: params.block_id }, { now, caller })
    },
  }),

  route({
    method: 'delete',
    path: `${PATH}/{delegation_id}`,
    summary: 'Take a number range back; its numbers are routed to the trunk again',
    scope: 'numbers:manage',
    if_match: 'subtrunk',
    applies: true,
    audit: { kind: 'numbers', action: 'number_block.detached' },
    replies: { 204: null },
    async run({ db, trunk, subtrunk, params, now }) {
      const row = (await listDelegations(db, subtrunk.id)).find(({ id }) => id === params.delegation_id)
      if (!row) return notFound(`delegation ${params.delegation_id.slice(0, 60)}`)
      await detachDelegation(db, row.id)
      for (const number of await numbersOfRange(db, subtrunk.project_id, row))
        if (number.route_kind === 'subtrunk' && number.route_id === subtrunk.id)
          await saveNumber(db, number, { route_kind: 'trunk', route_id: trunk.id }, now)
      const saved = await saveSubtrunk(db, subtrunk, {}, now)
      const summary = `Took ${row.start} to ${row.end} back from subtrunk ${subtrunk.name}`
      return { status: 204, revision: saved.revision, change: delegationChange(saved, summary, row, null) }
    },
  }),
]
