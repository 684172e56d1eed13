import { readCallRequest } from '../../core/domain/calls/request.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import type { Diverter } from '../../core/domain/sip/diversion.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'

/**
 * Returns who diverted a call that one of our numbers sends on: our number in front of those who did so before it.
 * `hidden`: the called party does not see our number.
 */
export function divertedBy(
  call: Pick<ScriptedCall, 'row_now'>,
  number: string,
  reason: string,
  hidden = false,
): Diverter[] {
  const own = parseNumber(number, DEFAULT_COUNTRY)?.e164
  const before = readCallRequest(call.row_now.request).diverters ?? []
  return own === undefined ? [...before] : [{ number: own, reason, counter: 1, hidden }, ...before]
}
