import { isDeepStrictEqual } from 'node:util'
import { match, type Result, same, strict } from 'tcompare'

/** Returns null when the values compare equal, else what differs. */
type Comparison = (found: unknown, wanted: unknown) => string | null

const differenceOf = ({ match, diff }: Result): string | null => (match ? null : diff)

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** True only when tcompare's `match` certainly succeeds. tcompare formats both values before it answers. */
function certainlyMatches(found: unknown, pattern: unknown): boolean {
  if (found === pattern) return true
  if (typeof found === 'string')
    return pattern instanceof RegExp
      ? new RegExp(pattern).test(found)
      : typeof pattern === 'string' && pattern !== '' && found.includes(pattern)
  if (Array.isArray(found) && Array.isArray(pattern))
    return found.length === pattern.length && pattern.every((item, at) => certainlyMatches(found[at], item))
  if (!isPlain(found) || !isPlain(pattern)) return false
  return Object.keys(pattern).every(key => Object.hasOwn(found, key) && certainlyMatches(found[key], pattern[key]))
}

/** Deep equality; `'1'` equals `1`. */
export const differsLoosely: Comparison = (found, wanted) =>
  isDeepStrictEqual(found, wanted) ? null : differenceOf(same(found, wanted))

/** Deep equality without conversions. */
export const differs: Comparison = (found, wanted) =>
  isDeepStrictEqual(found, wanted) ? null : differenceOf(strict(found, wanted))

/**
 * A pattern may leave out properties of objects. A regular expression matches text, a string matches text that contains
 * it, a class matches its instances.
 */
export const mismatches: Comparison = (found, pattern) =>
  certainlyMatches(found, pattern) ? null : differenceOf(match(found, pattern))
