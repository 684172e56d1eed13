import type { EndedCall, Figures } from './figures.ts'

/** The stored facts of one leg that metrics need. */
interface LegSummary {
  readonly packets_received: number
  readonly packets_lost: number
  readonly jitter_ms: number | null
  readonly mos: number | null
}

/** A call with packets in only one direction for this long counts as one-way (design section 4). */
const ONE_WAY_SECONDS = 4

type MediaFigures = Pick<
  Figures,
  | 'measured_calls'
  | 'no_media_calls'
  | 'one_way_calls'
  | 'transcoded_calls'
  | 'packets_received'
  | 'packets_lost'
  | 'jitter_legs'
  | 'jitter_us'
  | 'mos_legs'
  | 'mos_thousandths'
>

/** Returns the contribution of an answered call's media; empty when no leg was measured. */
export function mediaFigures(call: Pick<EndedCall, 'media' | 'duration_seconds'>): Partial<MediaFigures> {
  const { legs, others, transcoded } = readMedia(call.media)
  if (legs.length === 0) return {}
  const all = [...legs, ...others]
  const silent = legs.filter(leg => leg.packets_received === 0).length
  const one_way = legs.length > 1 && silent > 0 && silent < legs.length && call.duration_seconds >= ONE_WAY_SECONDS
  const jitters = legs.flatMap(leg => leg.jitter_ms ?? [])
  const scores = legs.flatMap(leg => leg.mos ?? [])
  return {
    measured_calls: 1,
    no_media_calls: silent === legs.length ? 1 : 0,
    one_way_calls: one_way ? 1 : 0,
    transcoded_calls: transcoded ? 1 : 0,
    packets_received: sum(all.map(leg => leg.packets_received)),
    packets_lost: sum(all.map(leg => leg.packets_lost)),
    jitter_legs: jitters.length,
    jitter_us: sum(jitters.map(jitter => Math.round(jitter * 1000))),
    mos_legs: scores.length,
    mos_thousandths: sum(scores.map(mos => Math.round(mos * 1000))),
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/** Parses a record's media: both legs' summaries, those of its other legs, and whether the bridge transcoded. */
function readMedia(json: string | null): {
  readonly legs: readonly LegSummary[]
  readonly others: readonly LegSummary[]
  readonly transcoded: boolean
} {
  const media: unknown = json === null ? null : JSON.parse(json)
  if (typeof media !== 'object' || media === null) return { legs: [], others: [], transcoded: false }
  const legs = Object.values(media).flatMap(value => legOf(value) ?? [])
  const others =
    'others' in media && Array.isArray(media.others) ? media.others.flatMap(value => legOf(value) ?? []) : []
  return { legs, others, transcoded: 'mode' in media && media.mode === 'transcode' }
}

function legOf(value: unknown): LegSummary | null {
  if (typeof value !== 'object' || value === null || !('packets_received' in value)) return null
  const leg = value as Readonly<Record<string, unknown>>
  // A leg that received nothing has no quality. Its jitter and MOS would only dilute those of the others.
  const heard = number(leg['packets_received']) ?? 0
  return {
    packets_received: heard,
    packets_lost: number(leg['packets_lost']) ?? 0,
    jitter_ms: heard === 0 ? null : number(leg['jitter_ms']),
    mos: heard === 0 ? null : number(leg['mos']),
  }
}

const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null)
