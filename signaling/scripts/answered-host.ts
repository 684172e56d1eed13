import type { Call } from '../b2bua/call.ts'
import type { Leg } from '../b2bua/leg.ts'
import type { ScriptHost } from './script.ts'

/** What carries out a script on a leg that is answered: nothing is left to answer, to ring or to refuse. */
export const answeredHost = (
  call: Call,
  leg: Leg,
  hangup: () => void,
  direction: ScriptHost['direction'] = 'outbound',
): ScriptHost => ({
  call,
  leg,
  direction,
  answer: () => Promise.resolve(),
  reject: hangup,
  hangup,
  early: () => Promise.resolve(false),
  ring: () => undefined,
})
