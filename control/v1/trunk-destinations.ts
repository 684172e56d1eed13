import { iso } from '../../core/runtime/clock.ts'
import {
  type DestinationFigures,
  figuresByDestination,
  MOST_CALLS,
} from '../../core/state/calls/destination-figures.ts'
import { invalid } from '../http/reply.ts'
import { Count64, Flag, Instant, Int64, list, nullable, optional, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'

const DAY_MS = 86_400_000
const MAX_DAYS = 31

const TrunkDestination = resource('TrunkDestination', {
  prefix: nullable(Type.String()),
  label: nullable(Type.String()),
  attempts: Count64,
  answered: Count64,
  asr_pct: nullable(Type.Number()),
  acd_seconds: nullable(Count64),
  pdd_ms: nullable(Count64),
  duration_seconds: Count64,
  billed_seconds: Count64,
  charge_minor: Int64,
})

const TrunkDestinations = resource('TrunkDestinations', {
  since: Instant,
  before: Instant,
  complete: Flag,
  data: list(TrunkDestination),
})

const share = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole)
const rounded = (value: number | null): number | null => (value === null ? null : Math.round(value))

function present(row: DestinationFigures): Static<typeof TrunkDestination> {
  const asr = share(100 * row.answered, row.attempts)
  return {
    prefix: row.prefix === null ? null : `+${row.prefix}`,
    label: row.label,
    attempts: row.attempts,
    answered: row.answered,
    asr_pct: asr === null ? null : Math.round(asr * 10) / 10,
    acd_seconds: rounded(share(row.duration_seconds, row.answered)),
    pdd_ms: rounded(share(row.pdd_ms, row.pdd_calls)),
    duration_seconds: row.duration_seconds,
    billed_seconds: row.billed_seconds,
    charge_minor: row.charge_minor,
  }
}

export const destinations = [
  route({
    method: 'get',
    path: '/trunks/{trunk_id}/destinations',
    summary: 'Figures of the outbound calls of a trunk by the prefix of their price, the most called first',
    description:
      'Of the calls that ended from `since` (a day ago unless given) until `before` (now unless given), at most 31 days; ' +
      `of more than ${MOST_CALLS} calls the latest, and then \`complete\` is false. Calls that were ` +
      'refused before they had a price, and those of the sandbox, have no prefix.',
    scope: 'call_diagnostics:read',
    query: Type.Object({ since: optional(Instant), before: optional(Instant) }, { additionalProperties: false }),
    replies: { 200: TrunkDestinations },
    async run({ db, trunk, now, query }) {
      const before_ms = Date.parse(query.before ?? now)
      const since_ms = query.since === undefined ? before_ms - DAY_MS : Date.parse(query.since)
      if (since_ms >= before_ms) return invalid('since', 'is not before the end')
      if (before_ms - since_ms > MAX_DAYS * DAY_MS)
        return invalid('since', `is more than ${MAX_DAYS} days before the end`)
      const window = { since: iso(since_ms), before: iso(before_ms) }
      const { rows, calls } = await figuresByDestination(db, trunk.id, window)
      return { status: 200, body: { ...window, complete: calls < MOST_CALLS, data: rows.map(present) } }
    },
  }),
]
