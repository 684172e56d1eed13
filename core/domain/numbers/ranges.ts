/** A range of consecutive numbers of one length, in E.164. */
export interface NumberRange {
  readonly start: string
  readonly end: string
}

export const holds = ({ start, end }: NumberRange, e164: string): boolean =>
  e164.length === start.length && e164 >= start && e164 <= end

/** Returns what is left of a range without one of its numbers: nothing, one range, or the two around it. */
export function without(range: NumberRange, e164: string): NumberRange[] {
  if (!holds(range, e164)) return [range]
  const before = { start: range.start, end: moved(e164, -1n) }
  const after = { start: moved(e164, 1n), end: range.end }
  return [...(e164 === range.start ? [] : [before]), ...(e164 === range.end ? [] : [after])]
}

/** E.164 numbers do not begin with zero, so that the arithmetic keeps their digits. */
const moved = (e164: string, by: bigint): string => `+${BigInt(e164.slice(1)) + by}`
