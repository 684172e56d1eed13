import { type RecordingCallbackFacts, recordingParameters } from '../../domain/calls/parameters.ts'
import type { Trx } from '../db.ts'
import { queueProcedure } from '../port.ts'
import type { Enqueued } from '../procedures/running/callbacks.ts'

/**
 * Asynchronous callbacks become rows in the transaction of the change that they report. The control process delivers
 * them.
 */

interface RecordingCallback {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly events: readonly string[]
}

export async function enqueueRecordingCallback(
  trx: Trx,
  callback: RecordingCallback | null,
  facts: RecordingCallbackFacts & { readonly project_id: string; readonly now_ms: number },
): Promise<boolean> {
  if (!callback?.events.includes(facts.status)) return false
  await storeCallback(trx, {
    kind: 'recording_callback',
    call_sid: facts.call_sid,
    project_id: facts.project_id,
    url: callback.url,
    method: callback.method,
    parameters: recordingParameters(facts),
    now_ms: facts.now_ms,
  })
  return true
}

/** Queues a request in the outbox. Requests about one call to one URL leave in order. */
export const storeCallback = (trx: Trx, wanted: Enqueued): Promise<void> =>
  queueProcedure(trx, 'enqueue_callback', wanted)

export { callFactsOf } from '../procedures/running/callbacks.ts'
