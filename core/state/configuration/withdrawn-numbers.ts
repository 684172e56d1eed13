import { holds, type NumberRange, without } from '../../domain/numbers/ranges.ts'
import type { Trx } from '../db.ts'
import { type NumberRow, saveNumber } from './numbers.ts'
import {
  blockSize,
  delegationsOfBlocks,
  deleteBlock,
  detachDelegation,
  insertBlock,
  listBlocks,
  type NumberBlockRow,
  newDelegationId,
} from './subtrunks.ts'

/** How long a number rests before somebody else may have it. */
export const QUARANTINE_MS = 30 * 24 * 60 * 60 * 1000

interface Withdrawn {
  readonly number: NumberRow
  /** The block that had the number, as it was; null for none. */
  readonly block: NumberBlockRow | null
}

/**
 * Takes a held number from its project, whoever asks for it: the number is unrouted and quarantined, and its block and
 * delegation lose it. What is left of them on both sides of the number stays as two.
 */
export async function withdrawNumber(
  trx: Trx,
  number: NumberRow,
  { now, quarantined_until }: { readonly now: string; readonly quarantined_until: string },
): Promise<Withdrawn> {
  const last_trunk_id = await trunkOf(trx, number)
  const unrouted = { route_kind: null, route_id: null, fallback_kind: null, fallback_id: null }
  const changes = { status: 'quarantined', ...unrouted, quarantined_until, last_trunk_id } as const
  const saved = await saveNumber(trx, number, changes, now)
  const block = (await listBlocks(trx, number.project_id ?? '')).find(range => holds(range, number.e164)) ?? null
  if (block) await shrink(trx, block, number.e164, now)
  return { number: saved, block }
}

async function trunkOf(trx: Trx, { route_kind, route_id }: NumberRow): Promise<string | null> {
  if (route_kind === 'trunk') return route_id
  if (route_kind !== 'subtrunk') return null
  const row = await trx.selectFrom('subtrunk').select('trunk_id').where('id', '=', route_id).executeTakeFirst()
  return row?.trunk_id ?? null
}

const boundsOf = (range: NumberRange) => ({ ...range, size: blockSize(range.start, range.end) ?? 0 })

async function shrink(trx: Trx, block: NumberBlockRow, e164: string, now: string): Promise<void> {
  const delegation = (await delegationsOfBlocks(trx, [block.id])).find(range => holds(range, e164))
  if (delegation) {
    const [first, second] = without(delegation, e164)
    if (first) await trx.updateTable('delegation').set(boundsOf(first)).where('id', '=', delegation.id).execute()
    else await detachDelegation(trx, delegation.id)
    if (second)
      await trx
        .insertInto('delegation')
        .values({ ...delegation, id: newDelegationId(), ...boundsOf(second) })
        .execute()
  }
  const [first, second] = without(block, e164)
  if (first) await trx.updateTable('number_block').set(boundsOf(first)).where('id', '=', block.id).execute()
  else await deleteBlock(trx, block.id)
  if (!second) return
  const { id } = await insertBlock(trx, { ...boundsOf(second), project_id: block.project_id, created_at: now })
  await trx
    .updateTable('delegation')
    .set({ block_id: id })
    .where('block_id', '=', block.id)
    .where('start', '>=', second.start)
    .execute()
}
