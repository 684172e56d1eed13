import { saveTrunk, type TrunkRow } from '../../core/state/configuration/trunks.ts'
import type { Trx } from '../../core/state/index.ts'
import { type Change, type Refusal, refuse } from '../http/reply.ts'
import type { Static } from '../http/schema.ts'
import { presentLoaded, presentSaved, presentTrunk } from './trunk-present.ts'
import type { TrunkDetail } from './trunk-schemas.ts'

type Detail = Static<typeof TrunkDetail>

/** Returns a Warning header for private ranges. They are allowed, for peers in the same network. */
export const privateRangeWarning = (ranges: readonly string[]): Record<string, string> =>
  ranges.length === 0 ? {} : { Warning: `299 strowger "private source ranges: ${ranges.slice(0, 10).join(', ')}"` }

/** Returns the audit record of a change to a trunk. */
export const trunkChange = (
  summary: string,
  before: Detail | null,
  after: Detail,
  detail: string | null = null,
): Change => ({
  resource: { type: 'trunk', id: after.id, name: after.name, href: `/v1/trunks/${after.id}` },
  summary,
  before,
  after,
  from_revision: before?.revision ?? null,
  to_revision: after.revision,
  trunk_id: after.id,
  detail,
})

/** Refuses changes to a trunk, and to anything below it, that is releasing or released. */
export const releasing = (trunk: TrunkRow): Refusal<'trunk_releasing'> | null =>
  trunk.status === 'releasing' || trunk.status === 'released'
    ? refuse('trunk_releasing', { name: trunk.name, value: trunk.status })
    : null

/**
 * Writes to a trunk or to anything below it. `work` changes the rows below, and the trunk gets its next revision. The
 * returned change, for the audit trail, compares the whole trunk before and after.
 */
export async function writeTrunk(
  trx: Trx,
  trunk: TrunkRow,
  now: string,
  write: {
    readonly summary: string
    readonly changes?: Parameters<typeof saveTrunk>[2]
    readonly work?: () => Promise<void>
    readonly detail?: string
  },
): Promise<{ readonly trunk: TrunkRow; readonly detail: Detail; readonly change: Change }> {
  const before = await presentLoaded(trx, trunk, now)
  await write.work?.()
  const saved = await saveTrunk(trx, trunk, write.changes ?? {}, now)
  const detail = write.work ? await presentTrunk(trx, saved, now) : await presentSaved(trx, trunk, saved, now)
  return { trunk: saved, detail, change: trunkChange(write.summary, before, detail, write.detail ?? null) }
}
