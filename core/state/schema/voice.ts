import type { Generated } from 'kysely'
import type { Instant } from './configuration.ts'

/** A call of the general API's sandbox. It is never placed. Its state follows from its number and age. */
export interface SimulatedCallTable {
  position: Generated<number>
  /** UUID. */
  id: string
  project_id: string
  to_number: string
  message: string
  created_at: Instant
}
