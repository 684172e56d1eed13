import { type Reason, sipRefusal } from '../../core/domain/reasons/index.ts'
import type { CallRegistry } from '../b2bua/registry.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'

/** As many as the hops of a SIP request (RFC 3261 §8.1.1.6). */
const DEEPEST = 70

/**
 * Why a script may not call an application of its project: the call would be in a circle, because a call above it has
 * the same called side, or the calls above it are too many. Such calls cross no carrier, which would end them.
 */
export function goesRound(
  calls: Pick<CallRegistry, 'get'>,
  parent: Pick<ScriptedCall, 'row_now'>,
  to: string,
): { readonly sip_code: number; readonly detail: string } | null {
  let depth = 1
  for (let above: typeof parent | undefined = parent; above; depth++) {
    if (above.row_now.to_number === to) return refusal('loop_detected', to)
    if (depth >= DEEPEST) return refusal('too_many_hops', to)
    const sid: string | null = above.row_now.parent_call_sid
    above = sid === null ? undefined : calls.get(sid)
  }
  return null
}

const refusal = (reason: Reason, value: string) => ({
  sip_code: sipRefusal(reason, { value }).code,
  detail: `${reason}: ${value}`,
})
