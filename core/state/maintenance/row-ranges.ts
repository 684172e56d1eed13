import { type Compilable, sql } from 'kysely'
import type { RangePlaces, RowRange } from '../port.ts'

/** The query builder passes these symbols on among the values of the query. */
const placeOf = (name: keyof RowRange) => sql<number>`${Symbol(name)}`
const PLACES: RangePlaces = { after: placeOf('after'), last: placeOf('last'), limit: placeOf('limit') }

/**
 * Compiles a query of a range once, and returns what gives the values of each range. To compile the query of an export
 * takes as long as to read fifty rows.
 */
export function compiledForRanges(query: (range: RangePlaces) => Compilable<unknown>) {
  const { sql: text, parameters } = query(PLACES).compile()
  const valuesOf = (range: RowRange): unknown[] =>
    parameters.map(value => (typeof value === 'symbol' ? range[value.description as keyof RowRange] : value))
  return { sql: text, valuesOf }
}
