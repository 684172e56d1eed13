import { dropWaitingRedirects, insertCommand, pendingCommands } from '../../core/state/calls/calls.ts'
import type { CallStatus, Trx } from '../../core/state/index.ts'
import { type Refusal, refuse } from '../http/reply.ts'
import type { LiveRequest } from './asked.ts'
import { liveChange } from './live-change.ts'

/** A document that a call runs from now on: by URL or inline. */
interface Document {
  readonly url?: string | null
  readonly method?: 'GET' | 'POST'
  readonly markup?: string | null
  readonly fallback_url?: string
  readonly fallback_method?: 'GET' | 'POST'
}

/** Whether an accepted end of the call waits for its node, and nothing may replace it. */
export const isEnding = async (trx: Trx, call_sid: string): Promise<boolean> =>
  (await pendingCommands(trx, call_sid)).some(({ kind }) => kind === 'hangup' || kind === 'cancel')

/** Lets the node of a call run another document, in place of those that were asked for and not yet begun. */
export async function runInstead(trx: Trx, call_sid: string, document: Document, now_ms: number): Promise<void> {
  await dropWaitingRedirects(trx, call_sid, now_ms)
  await insertCommand(trx, call_sid, 'redirect', document, now_ms)
}

/** What a transfer reads of its call. */
interface Transferred {
  readonly sid: string
  readonly status: CallStatus
  readonly origin: string
  readonly application_id: string | null
}

/**
 * Transfers a call that talks: its document ends, with whom it had dialled, and it dials `to` as a document would. So
 * the new leg passes admission like every other one, and has the limits and the price of one.
 */
export async function transferCall(
  { trx, now_ms }: LiveRequest,
  call: Transferred,
  { to, from }: { readonly to: string; readonly from: string | null },
): Promise<Refusal<'call_not_live' | 'state_conflict'> | null> {
  const ending = await isEnding(trx, call.sid)
  if ('refused' in liveChange('redirect', call.status, ending))
    return refuse('call_not_live', { value: call.sid, limit: ending ? 'being ended' : call.status })
  // Between a trunk and a carrier no document runs. There the PBX transfers, by REFER (RFC 3515).
  if (call.application_id === null && (call.origin === 'trunk' || call.origin === 'carrier'))
    return refuse('state_conflict', { name: `call ${call.sid}`, value: 'of a PBX, which transfers by REFER' })
  const caller_id = from === null ? '' : ` callerId="${from}"`
  const markup = `<Response><Dial${caller_id}><Number>${to}</Number></Dial></Response>`
  await runInstead(trx, call.sid, { markup }, now_ms)
  return null
}
