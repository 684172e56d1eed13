import { type MediaEvent, type MediaHub, MediaRefusal } from '../b2bua/media.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'

export type RecordEndedEvent = Extract<MediaEvent, { event: 'record.ended' }>

/** How long a recording whose worker died waits for the next worker. */
const WORKER_LIMIT_MS = 60_000

/** Has a new worker inspect the file of a dead one; null when no worker could within the limit. */
export async function inspected(
  hub: Pick<MediaHub, 'request' | 'whenConnected'>,
  { sid: call_id, clock, log }: Pick<ScriptedCall, 'sid' | 'clock' | 'log'>,
  recording_id: string,
  file: string,
): Promise<Omit<RecordEndedEvent, 'event' | 'recording_id'> | null> {
  const deadline_ms = clock.monotonic_ms() + WORKER_LIMIT_MS
  const left_ms = (): number => deadline_ms - clock.monotonic_ms()
  while (left_ms() > 0 && (await hub.whenConnected(clock, left_ms()))) {
    try {
      const found = await hub.request('record.inspect', { file })
      return { ...found, reason: 'leg_closed', empty: false }
    } catch (err) {
      log.warn({ err, call_id, recording_id }, 'a recording of an earlier run could not be read')
      if (!(err instanceof MediaRefusal)) return null
      if (err.reason !== 'media_unavailable')
        return { reason: 'failed', duration_ms: 0, bytes: 0, sha256: null, empty: true }
    }
  }
  return null
}
