import { storeCallback } from '../../core/state/delivery/outbox.ts'
import type { DocumentTarget } from '../../markup/interpreter/types.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'

/**
 * Queues a callback in the outbox about a stream, a detection or a room that runs concurrently with a script. Callbacks
 * are sent in order per call and URL, or per `ordering`; the call does not wait for them. Resolves when the callback is
 * stored.
 */
export function queueCallback(
  call: ScriptedCall,
  { url, method }: DocumentTarget,
  parameters: Readonly<Record<string, string>>,
  ordering?: string,
): Promise<void> {
  return call.persistCallbacks(trx =>
    storeCallback(trx, {
      kind: 'status_callback',
      call_sid: call.sid,
      ...(ordering === undefined ? {} : { ordering }),
      project_id: call.project_id,
      url,
      method,
      parameters,
      now_ms: call.clock.now(),
    }),
  )
}
