import { enqueue } from '../../core/state/delivery/outbox.ts'
import type { Target } from '../../markup/interpreter/types.ts'
import type { Call } from '../b2bua/call.ts'

/**
 * A callback about what runs beside a script (a stream, a detection, a room), through the outbox: in order for one call
 * and URL, or for one `ordering`, and nothing of the call waits for it. Resolves when
 * it is kept.
 */
export function tell(
  call: Call,
  { url, method }: Target,
  parameters: Readonly<Record<string, string>>,
  ordering?: string,
): Promise<void> {
  return call
    .persist(trx =>
      enqueue(trx, {
        kind: 'status_callback',
        call_sid: call.sid,
        ...(ordering === undefined ? {} : { ordering }),
        project_id: call.project_id,
        url,
        method,
        parameters,
        now_ms: call.ctx.clock.now(),
      }),
    )
    .then(() => call.ctx.bus.ring('outbox'))
}
