import type { CallContext } from '../b2bua/context.ts'
import type { AdmissionGate } from './gate.ts'

/** The services that admit and place new calls. */
export interface AdmissionContext extends CallContext {
  readonly gate: AdmissionGate
  /** Returns the account's current token; null when the project has no active account. */
  authToken(project_id: string): string | null
}
