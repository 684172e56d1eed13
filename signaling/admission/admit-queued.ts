import type { WayName } from '../../core/domain/admission/index.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import type { Reason } from '../../core/domain/reasons/index.ts'
import { admitQueuedCall, type CallRow, type Decided } from '../../core/state/calls/running-calls.ts'
import type { NodeServices } from '../b2bua/services.ts'
import type { AdmissionContext } from './context.ts'
import type { Ask } from './gate.ts'
import type { OwnNumberLine } from './lines.ts'

/** Admits calls that have a row, and says what their admission bounds. */

/** Counts a refused call, and wakes the delivery of callbacks when the decision has queued any. */
export function notAdmitted(ctx: NodeServices, reason: Reason, queued: number): void {
  ctx.metrics.refusals.inc({ reason })
  if (queued > 0) ctx.bus.ring('outbox')
}

/**
 * Admits a call that has a row. A refusal ends the call, except for the reason `waits_for`: then the call stays queued,
 * because the condition is temporary.
 */
export async function admitQueued(
  ctx: AdmissionContext,
  row: CallRow,
  asks: readonly Omit<Ask, 'call_sid'>[],
  waits_for: Reason | null = null,
): Promise<Decided> {
  const wanted = ctx.gate.stamped(asks.map(ask => ({ ...ask, call_sid: row.sid })))
  const { decided, queued } = await admitQueuedCall(ctx.state.db, { ...wanted, waits_for })
  if (!decided.admitted && decided.reason !== waits_for) notAdmitted(ctx, decided.reason, queued)
  return decided
}

export const limitsOf = (decided: Decided, own_seconds: number | null) => {
  const admitted = decided.admitted ? decided : null
  const given = admitted?.max_duration_seconds ?? null
  const own = own_seconds !== null && (given === null || own_seconds < given)
  return {
    max_duration_seconds: own ? own_seconds : given,
    max_duration_reason: own ? ('max_duration' as const) : (admitted?.max_duration_reason ?? null),
    paid_until_seconds: decided.paid_until_seconds,
    recording: decided.recording?.mode === 'all' && decided.recording.consented ? decided.recording : null,
  }
}

/** Returns the admission requests of a call to a number: to the network, or for both sides of one that stays here. */
export const asksOf = (
  way: WayName,
  ask: Omit<Ask, 'call_sid' | 'part' | 'way'>,
  line: OwnNumberLine | null,
): Omit<Ask, 'call_sid'>[] =>
  line
    ? [
        { ...ask, part: 'on_net', way: null },
        {
          ...ask,
          // In E.164: the number's route may be a trunk of another country.
          called: line.number.e164,
          caller: parseNumber(ask.caller, DEFAULT_COUNTRY)?.e164 ?? ask.caller,
          part: 'inbound',
          way: null,
          service: line.service,
          own_targets: null,
        },
      ]
    : [{ ...ask, part: 'outbound', way }]
