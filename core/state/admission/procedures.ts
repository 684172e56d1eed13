import { place } from '../place-call.ts'
import { extend, release } from './settle.ts'
import type { Query } from './steps.ts'
import { take } from './take.ts'

/** The procedures by the names that callers use; inputs come from core/state/{leases,reservations,calls}.ts alone. */
export const PROCEDURES: Readonly<Record<string, (query: Query, input: never) => unknown>> = {
  take_admission: take,
  extend_reservation: extend,
  release_admission: release,
  place_call: place,
}
