import type { TracedFinding } from '../../core/domain/admission/types.ts'
import { faultWords, isFault } from '../../core/domain/calls/fault-words.ts'
import type { LegFigures } from '../../core/domain/calls/leg-figures.ts'
import type { HistoryRow } from '../../core/state/calls/call-history.ts'
import type { CallAttemptTable, CallEventTable, MediaQualityTable } from '../../core/state/index.ts'

/** An admission decision as signaling stores it: the members that the sentences use. */
export interface Decision extends Record<string, unknown> {
  readonly admitted?: boolean
  readonly sentence?: string
  readonly max_duration_seconds?: number | null
  readonly checks?: readonly TracedFinding[]
}

interface Explained {
  readonly call: Pick<HistoryRow, 'status' | 'sip_code' | 'reason' | 'ended_by' | 'ended_at'>
  readonly decision: Decision | null
  readonly attempts: readonly Omit<CallAttemptTable, 'id' | 'call_sid' | 'carrier_id'>[]
  readonly price: readonly string[] | null
  readonly events: readonly Pick<CallEventTable, 'kind' | 'number' | 'detail'>[]
}

/** Explains a call in sentences: the decision, checks, attempts at targets, faults of documents, the end, the price. */
export const inWords = ({ call, decision, attempts, events, price }: Explained): string[] => [
  ...decisionWords(decision),
  ...attempts.map(attemptWords),
  ...events.filter(isFault).map(faultWords),
  endWords(call),
  ...(price ?? []),
]

function decisionWords(decision: Decision | null): string[] {
  if (decision === null) return ['No admission was asked for this call.']
  const limit = decision.max_duration_seconds
  const longest = typeof limit === 'number' ? `, for at most ${limit} s` : ''
  const outcome =
    decision.admitted === true ? `Admitted${longest}.` : `Refused: ${decision.sentence ?? 'no reason kept'}`
  const checks = (decision.checks ?? []).map(({ check, result, sentence }) => `Check ${check} ${result}: ${sentence}`)
  return [outcome, ...checks]
}

function attemptWords(attempt: Explained['attempts'][number]): string {
  const { sequence, target, transport, address, result, sip_code, reason, started_at, ended_at } = attempt
  const where = address === null ? '' : ` at ${address}`
  const code = sip_code === null ? '' : ` with ${sip_code}`
  const why = reason === null ? '' : ` (${reason})`
  const took = ended_at === null ? '' : ` after ${Date.parse(ended_at) - Date.parse(started_at)} ms`
  const outcome = result === null ? 'still trying' : `${result.replace('_', ' ')}${code}${why}${took}`
  return `Attempt ${sequence}: ${target} over ${transport}${where}: ${outcome}.`
}

function endWords({ status, sip_code, reason, ended_by, ended_at }: Explained['call']): string {
  if (ended_at === null) return `The call is ${status}.`
  const by =
    ended_by === null
      ? ''
      : ` by ${ended_by === 'caller' || ended_by === 'called' ? `the ${ended_by} side` : `the ${ended_by}`}`
  const code = sip_code === null ? '' : `, SIP ${sip_code}`
  return `Ended as ${status}${by}${code}${reason === null ? '' : `, reason ${reason}`}.`
}

const MAX_SAMPLES = 720
const SIDES: readonly LegFigures['side'][] = ['caller', 'called', 'application']

/**
 * Returns the samples and final figures of each leg. A long series is thinned out evenly, but keeps its first and last
 * sample.
 */
export function seriesOf(
  rows: readonly Pick<MediaQualityTable, 'leg_id' | 'at' | 'stats'>[],
  figures: readonly LegFigures[] = [],
  max = MAX_SAMPLES,
) {
  const legs = new Map<string, (typeof rows)[number][]>()
  for (const row of rows) {
    const leg = legs.get(row.leg_id)
    if (leg) leg.push(row)
    else legs.set(row.leg_id, [row])
  }
  for (const { leg_id } of figures) if (!legs.has(leg_id)) legs.set(leg_id, [])
  const order = (leg_id: string): number => SIDES.indexOf(figures.find(one => one.leg_id === leg_id)?.side ?? 'called')
  const sorted = [...legs].sort(([a], [b]) => order(a) - order(b))
  return sorted.map(([leg_id, kept]) => ({
    figures: figures.find(one => one.leg_id === leg_id) ?? null,
    leg_id,
    samples_kept: kept.length,
    samples: thinned(kept, max).map(({ at, stats }) => ({ at, stats: JSON.parse(stats) as Record<string, unknown> })),
  }))
}

function thinned<T>(items: readonly T[], max: number): readonly T[] {
  if (items.length <= max) return items
  return Array.from({ length: max }, (_, at) => items[Math.round((at * (items.length - 1)) / (max - 1))]).flatMap(
    item => item ?? [],
  )
}
