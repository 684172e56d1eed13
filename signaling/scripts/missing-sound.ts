import { parseTarget } from '../../core/domain/webhooks/target.ts'
import { recordExchange } from '../../core/state/calls/calls.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'

/** Records in the exchanges of a call that a sound could not be had. `url` is empty for speech. */
export function missingSound(
  call: Pick<ScriptedCall, 'sid' | 'clock' | 'persist'>,
  { url, number, detail }: { readonly url: string; readonly number: number; readonly detail: string },
): void {
  const parsed = parseTarget(url)
  const shown = parsed.ok ? parsed.target.url : ''
  const reply = { ok: false, status: null, duration_ms: 0, number, detail }
  const exchange = { call_sid: call.sid, method: 'GET', url: shown, parameters: {}, secret: [], reply } as const
  const now_ms = call.clock.now()
  void call.persist(trx => recordExchange(trx, exchange, now_ms))
}
