import type { CallContext } from '../b2bua/context.ts'
import type { AdmissionGate } from './gate.ts'

/** What new calls are admitted with. */
export interface AdmissionContext extends CallContext {
  readonly gate: AdmissionGate
  /** The account's token in force now; null when the project has no active account. */
  authToken(project_id: string): string | null
}
