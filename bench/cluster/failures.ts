import { existsSync, readFileSync } from 'node:fs'

/** A call that failed, as its caller saw it. */
interface Failure {
  /** Its number among the calls of its load, from 1; null: SIPp does not say. */
  readonly call: number | null
  /** What it got, such as `503 state_unavailable` or `BYE`, and what it waited for. */
  readonly why: string
}

/** SIPp begins each entry of its log of errors with the date, the time and the seconds since 1970. */
const ENTRY = /^'?\d{4}-\d\d-\d\d\t[\d:.]+\t[\d.]+: /m
const CALL = /Call-Id '(\d+)-/
const UNEXPECTED = /while expecting '([^']*)' \(index \d+\), received '(?:SIP\/2\.0 (\d+)|([A-Z]+))/
const REASON = /^Reason: X-Strowger;.*text="([^"]+)"/m

/** Reads why calls failed from SIPp's log of errors. */
export function failuresIn(file: string): readonly Failure[] {
  if (!existsSync(file)) return []
  // Before the first entry is a headline.
  const [, ...entries] = readFileSync(file, 'utf8').split(ENTRY)
  // The others are about SIPp itself, and about what came for calls that had failed.
  const of_calls = entries.filter(text => /abort\w* call/i.test(text))
  return of_calls.map(text => ({ call: Number(CALL.exec(text)?.[1] ?? 0) || null, why: whyOf(text) }))
}

function whyOf(text: string): string {
  const [, expected, status, method] = UNEXPECTED.exec(text) ?? []
  if (expected === undefined) return (text.split('\n')[0] ?? '').replace(/Call-Id '[^']*'/i, 'a call').slice(0, 100)
  const reason = REASON.exec(text)?.[1]
  return `${status ?? method}${reason === undefined ? '' : ` ${reason}`} instead of ${expected}`
}
