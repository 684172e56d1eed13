import type { Generated } from 'kysely'
import type { Instant } from './configuration.ts'

/** A call of the general API's sandbox: it never leaves, its state follows from its number and its age. */
export interface SimulatedCallTable {
  position: Generated<number>
  /** UUID. */
  id: string
  project_id: string
  to_number: string
  message: string
  created_at: Instant
}
