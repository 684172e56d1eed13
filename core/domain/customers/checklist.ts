/** What a project must have before its calls reach carriers and cost money. */

/** Facts about a project that is to leave the sandbox. */
export interface LiveFacts {
  /** Enabled carriers outside the sandbox that have a target and a route. */
  readonly carriers: number
  /** Outbound price books in force for the project. */
  readonly price_books: number
  /** Numbers that the project holds. */
  readonly numbers: number
  /** Balance and credit that calls may still use, in minor units; null when the project pays later, without a limit. */
  readonly available_minor: number | null
}

export type OpenPoint = 'carrier' | 'price_book' | 'number' | 'balance'

/** Returns the points of the checklist that are still open, in the order in which an operator closes them. */
export function openPoints(facts: LiveFacts): OpenPoint[] {
  const open: OpenPoint[] = []
  if (facts.carriers === 0) open.push('carrier')
  if (facts.price_books === 0) open.push('price_book')
  if (facts.numbers === 0) open.push('number')
  if (facts.available_minor !== null && facts.available_minor <= 0) open.push('balance')
  return open
}
