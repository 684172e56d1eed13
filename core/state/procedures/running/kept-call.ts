import type { AdmissionRequest } from '../admission/request.ts'
import type { AdmitInput } from './admit.ts'
import type { NewCall } from './rows.ts'

/** Returns the call row to store, which depends on the side that refuses. */
export const keptCall = (
  { call, callers }: AdmitInput,
  { decided, part }: { readonly decided: { readonly admitted: boolean }; readonly part: AdmissionRequest['part'] },
): NewCall => (callers && !decided.admitted && part !== 'inbound' ? callers : call)
