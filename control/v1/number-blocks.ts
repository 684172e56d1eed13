import type { Db, Trx } from '../../core/state/index.ts'
import { type NumberRow, numbersOfRange, saveNumber } from '../../core/state/numbers.ts'
import {
  blockSize,
  type DelegationRow,
  delegate,
  delegationsOfBlocks,
  findBlock,
  findSubtrunk,
  insertBlock,
  listBlocks,
  type NumberBlockRow,
  type SubtrunkRow,
} from '../../core/state/subtrunks.ts'
import { invalid, isRefusal, notFound, type Refusal, refuse } from '../http/reply.ts'
import {
  E164,
  Instant,
  Int32,
  input,
  list,
  listOf,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

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

const NumberBlock = resource('NumberBlock', {
  id: Type.String(),
  start: Type.String(),
  end: Type.String(),
  size: Int32,
  created_at: Instant,
  delegations: list(
    resource('BlockConsumer', {
      id: Type.String(),
      subtrunk_id: Type.String(),
      start: Type.String(),
      end: Type.String(),
      size: Int32,
    }),
  ),
})

async function present(db: Db, row: NumberBlockRow): Promise<Static<typeof NumberBlock>> {
  const delegations = await delegationsOfBlocks(db, [row.id])
  return {
    id: row.id,
    start: row.start,
    end: row.end,
    size: row.size,
    created_at: row.created_at,
    delegations: delegations.map(({ id, subtrunk_id, start, end, size }) => ({ id, subtrunk_id, start, end, size })),
  }
}

export interface DelegationWish {
  readonly block_id: string
  readonly start?: string
  readonly end?: string
}

/**
 * Gives a range of a block, the whole of it by default, to a subtrunk: it may present the numbers, and gets their
 * calls.
 */
export async function delegateTo(
  trx: Trx,
  subtrunk: SubtrunkRow,
  wish: DelegationWish,
  facts: { readonly now: string; readonly assigned_by: string },
): Promise<DelegationRow | Refusal<'not_found' | 'validation_failed' | 'number_in_use'>> {
  const block = await findBlock(trx, subtrunk.project_id, wish.block_id)
  if (!block) return notFound(`number block ${wish.block_id.slice(0, 60)}`)
  const start = wish.start ?? block.start
  const end = wish.end ?? block.end
  if (blockSize(start, end) === null || start < block.start || end > block.end)
    return invalid('/start', `and end are no range within ${block.start} to ${block.end}`)
  const { now: assigned_at, assigned_by } = facts
  const made = await delegate(trx, {
    block_id: block.id,
    subtrunk_id: subtrunk.id,
    start,
    end,
    assigned_at,
    assigned_by,
  })
  if (!made) return refuse('number_in_use', { value: `${start} to ${end}`, limit: 'delegated already' })
  for (const number of await numbersOfRange(trx, subtrunk.project_id, { start, end }))
    await saveNumber(trx, number, { route_kind: 'subtrunk', route_id: subtrunk.id }, assigned_at)
  return made
}

const missingOf = (numbers: readonly NumberRow[], size: number): boolean =>
  numbers.filter(number => number.status === 'held').length !== size

export const numberBlocks = [
  route({
    method: 'get',
    path: '/number-blocks',
    summary: 'List the number blocks of the project and who has them',
    scope: 'service_configuration:read',
    replies: { 200: listOf(NumberBlock) },
    async run({ db, project }) {
      const data: Static<typeof NumberBlock>[] = []
      for (const row of await listBlocks(db, project.id)) data.push(await present(db, row))
      return { status: 200, body: { data } }
    },
  }),

  route({
    method: 'post',
    path: '/number-blocks',
    summary: 'Make a block of consecutive numbers that the project holds',
    scope: 'numbers:manage',
    idempotent: true,
    audit: { kind: 'numbers', action: 'number_block.created' },
    body: input('NumberBlockRequest', { start: E164, end: E164 }),
    replies: { 201: NumberBlock },
    refusals: ['number_in_use', 'resource_exists'],
    example: { start: '+2342010000001', end: '+2342010000010' },
    async run({ db, project, body, now }) {
      const { start, end } = body
      const size = blockSize(start, end)
      if (size === null) return invalid('/end', 'is not after start, or of another length')
      const numbers = await numbersOfRange(db, project.id, body)
      if (missingOf(numbers, size))
        return refuse('number_in_use', { value: `${start} to ${end}`, limit: 'not held by the project as a whole' })
      const known = await listBlocks(db, project.id)
      if (known.some(block => block.start <= end && block.end >= start))
        return refuse('resource_exists', { value: 'a block with some of these numbers' })
      const row = await insertBlock(db, { project_id: project.id, start, end, size, created_at: now })
      const shown = await present(db, row)
      return {
        status: 201,
        body: shown,
        change: {
          resource: { type: 'number_block', id: row.id, name: `${start} to ${end}`, href: null },
          summary: `Made number block ${start} to ${end}`,
          before: null,
          after: shown,
        },
      }
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
    body: input('DelegateRequest', {
      subtrunk_id: Type.String({ maxLength: 128 }),
      start: optional(E164),
      end: optional(E164),
    }),
    replies: { 201: Delegation },
    refusals: ['number_in_use'],
    async run({ db, project, params, caller, body, now }) {
      const subtrunk = await findSubtrunk(db, project.id, body.subtrunk_id)
      if (!subtrunk) return invalid('/subtrunk_id', 'is not a subtrunk of the project')
      const wish = { ...body, block_id: params.block_id }
      const made = await delegateTo(db, subtrunk, wish, { now, assigned_by: caller.actor.name })
      if (isRefusal(made)) return made
      return { status: 201, body: presentDelegation(made), change: delegationChange(subtrunk, made) }
    },
  }),
]

export const delegationChange = (subtrunk: SubtrunkRow, made: DelegationRow) => ({
  resource: {
    type: 'subtrunk',
    id: subtrunk.id,
    name: subtrunk.name,
    href: `/v1/trunks/${subtrunk.trunk_id}/subtrunks/${subtrunk.id}`,
  },
  summary: `Delegated ${made.start} to ${made.end} to subtrunk ${subtrunk.name}`,
  before: null,
  after: presentDelegation(made),
  trunk_id: subtrunk.trunk_id,
})
