import { consumersOfRange, type NumberRow, numbersOfRange } from '../../core/state/configuration/numbers.ts'
import {
  blockSize,
  delegationsOfBlocks,
  deleteBlock,
  findBlock,
  insertBlock,
  listBlocks,
  type NumberBlockRow,
} from '../../core/state/configuration/subtrunks.ts'
import type { Db } from '../../core/state/index.ts'
import { invalid, notFound, refuse } from '../http/reply.ts'
import { E164, Instant, Int32, input, list, listOf, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'

const NumberBlock = resource('NumberBlock', {
  id: Type.String(),
  start: Type.String(),
  end: Type.String(),
  size: Int32,
  created_at: Instant,
  consumers: list(
    resource('NumberBlockConsumer', {
      count: Int32,
      id: Type.String(),
      name: Type.String(),
      type: oneOf('trunk', 'subtrunk', 'voice_application'),
    }),
  ),
  delegations: list(
    resource('NumberBlockDelegation', {
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
    consumers: await consumersOfRange(db, row.project_id, row),
    delegations: delegations.map(({ id, subtrunk_id, start, end, size }) => ({ id, subtrunk_id, start, end, size })),
  }
}

const missingOf = (numbers: readonly NumberRow[], size: number): boolean =>
  numbers.filter(number => number.status === 'held').length !== size

const blockNamed = (id: string): string => `number block ${id.slice(0, 60)}`

const resourceOf = ({ id, start, end }: NumberBlockRow) => ({
  type: 'number_block',
  id,
  name: `${start} to ${end}`,
  href: `/v1/number-blocks/${id}`,
})

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
    refusals: ['resource_exists'],
    example: { start: '+2342010000001', end: '+2342010000010' },
    async run({ db, project, body, now }) {
      const { start, end } = body
      const size = blockSize(start, end)
      if (size === null) return invalid('/end', 'is not after start, or of another length')
      const numbers = await numbersOfRange(db, project.id, body)
      if (missingOf(numbers, size)) return notFound(`whole range ${start} to ${end} among the numbers of the project`)
      const known = await listBlocks(db, project.id)
      if (known.some(block => block.start <= end && block.end >= start))
        return refuse('resource_exists', { value: 'a block with some of these numbers' })
      const row = await insertBlock(db, { project_id: project.id, start, end, size, created_at: now })
      const shown = await present(db, row)
      return {
        status: 201,
        body: shown,
        change: {
          resource: resourceOf(row),
          summary: `Made number block ${start} to ${end}`,
          before: null,
          after: shown,
        },
      }
    },
  }),

  route({
    method: 'get',
    path: '/number-blocks/{block_id}',
    summary: 'Read a number block and who has it',
    scope: 'service_configuration:read',
    replies: { 200: NumberBlock },
    async run({ db, project, params }) {
      const row = await findBlock(db, project.id, params.block_id)
      return row ? { status: 200, body: await present(db, row) } : notFound(blockNamed(params.block_id))
    },
  }),

  route({
    method: 'delete',
    path: '/number-blocks/{block_id}',
    summary: 'Delete a number block of which nothing is delegated; its numbers stay, routed as they are',
    scope: 'numbers:manage',
    audit: { kind: 'numbers', action: 'number_block.deleted' },
    replies: { 204: null },
    refusals: ['number_in_use'],
    async run({ db, project, params }) {
      const row = await findBlock(db, project.id, params.block_id)
      if (!row) return notFound(blockNamed(params.block_id))
      const shown = await present(db, row)
      const [delegated] = shown.delegations
      if (delegated)
        return refuse('number_in_use', { value: `${delegated.start} to ${delegated.end}`, limit: 'delegated' })
      await deleteBlock(db, row.id)
      const summary = `Deleted number block ${row.start} to ${row.end}`
      return {
        status: 204,
        change: { resource: { ...resourceOf(row), href: null }, summary, before: shown, after: null },
      }
    },
  }),
]
