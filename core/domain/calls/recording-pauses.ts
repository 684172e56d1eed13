/** A pause of a recording, as its timeline shows it. */
interface RecordingPause {
  /** Where it begins in the file. */
  readonly at_ms: number
  /** How long it lasted; null while it lasts. With `skip` the file has nothing of it. */
  readonly length_ms: number | null
  /** What the file has of it: nothing, or silence. */
  readonly behavior: PauseBehavior
  /** `api`: a request. `document`: `<PauseRecording>`. `key`: keys of a sensitive `<Gather>` were typed. */
  readonly by: PausedBy
}

export type PauseBehavior = 'skip' | 'silence'
export type PausedBy = 'api' | 'document' | 'key'

/** The pauses of a recording, in the order of their beginnings. */
export type Timeline = readonly RecordingPause[]

/** Parses a stored timeline. An unreadable one counts as empty. */
export function readTimeline(json: string | null): Timeline {
  if (json === null) return []
  try {
    const value: unknown = JSON.parse(json)
    return Array.isArray(value) ? (value as Timeline) : []
  } catch {
    return []
  }
}

/** The most pauses that a timeline tells. Later ones are carried out too. */
const MAX_PAUSES = 1000

/**
 * Adds a pause that begins now, `elapsed_ms` after the beginning of the recording. One that lasts becomes that of `by`,
 * and stays as it is.
 */
export function paused(
  timeline: Timeline,
  { behavior, by }: Pick<RecordingPause, 'behavior' | 'by'>,
  elapsed_ms: number,
): Timeline {
  const last = timeline.at(-1)
  if (last?.length_ms === null) return [...timeline.slice(0, -1), { ...last, by }]
  if (timeline.length >= MAX_PAUSES) return timeline
  return [...timeline, { at_ms: Math.max(0, elapsed_ms - skippedMs(timeline)), length_ms: null, behavior, by }]
}

/** Ends the pause that lasts. */
export function resumed(timeline: Timeline, elapsed_ms: number): Timeline {
  const last = timeline.at(-1)
  if (!last || last.length_ms !== null) return timeline
  const length_ms = Math.max(0, elapsed_ms - skippedMs(timeline) - last.at_ms)
  return [...timeline.slice(0, -1), { ...last, length_ms }]
}

const skippedMs = (timeline: Timeline): number =>
  timeline.reduce((sum, { behavior, length_ms }) => sum + (behavior === 'skip' ? (length_ms ?? 0) : 0), 0)

/** Replaces what the clock of a call says by what the file has, once that is known. */
export const measured = (
  timeline: Timeline,
  found: readonly { readonly at_ms: number; readonly length_ms: number }[],
): Timeline =>
  timeline.map((pause, index) => {
    const exact = found[index]
    return exact ? { ...pause, at_ms: exact.at_ms, length_ms: exact.length_ms } : pause
  })
