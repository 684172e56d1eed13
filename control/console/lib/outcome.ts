import { counted } from '../../../core/domain/text/counted.ts'
import type { CallDetail, CallEvent, CallSummary } from './api-types.ts'
import type { Tone } from './tone.ts'

/** How a call went, as every list and page tells it. Pure: format.ts has what depends on the session. */

/** A call that was answered, and ended by the failure of its document, failed for everybody on the line. */
const documentFailed = ({ reason }: Pick<CallSummary, 'reason'>): boolean => reason === 'document_failed'

/** The status in a word; of a call whose document failed, that. */
export const statusOfCall = (call: Pick<CallSummary, 'status' | 'reason'>): string =>
  documentFailed(call) ? 'document-failed' : call.status

interface Outcome {
  readonly tone: Tone
  readonly text: string
  /** Number of the error that stopped the script. */
  readonly fault: number | null
}

/** Tells in sentences how a call went. `duration` and `words` are those of format.ts. */
export function outcomeOf(
  call: Pick<CallDetail, 'status' | 'reason' | 'events' | 'ended_at' | 'ended_by' | 'sip_code' | 'duration_seconds'>,
  { duration, words }: { duration: (seconds: number | null) => string; words: (name: string) => string },
): Outcome {
  // The last error is the one that ended the document; earlier ones were stepped over.
  const fault = call.events.findLast(({ kind }) => kind === 'error')
  const number = fault?.number ?? null
  const failed = fault
    ? ` ${documentFailed(call) ? 'Its script failed' : 'A step of its script failed'}: ${headlineOf(fault)}.`
    : ''
  if (call.ended_at === null)
    return { tone: fault ? 'warn' : 'note', text: `The call is ${plain(call.status)}.${failed}`, fault: number }
  const by =
    call.ended_by === null
      ? ''
      : call.ended_by === 'caller' || call.ended_by === 'called'
        ? `, hung up by the ${call.ended_by} side`
        : `, ended by the ${call.ended_by}`
  const reason = call.reason === null || documentFailed(call) ? '' : ` Reason: ${words(call.reason).toLowerCase()}.`
  const tone =
    documentFailed(call) || call.status === 'failed' ? 'bad' : fault || call.status !== 'completed' ? 'warn' : 'good'
  if (call.status === 'completed')
    return {
      tone,
      text: `Answered and talked ${duration(call.duration_seconds)}${by}.${failed}${reason}`,
      fault: number,
    }
  const code = call.sip_code === null ? '' : ` SIP ${call.sip_code}.`
  return { tone, text: `Ended as ${plain(call.status)}${by}.${code}${failed}${reason}`, fault: number }
}

type Facts = Readonly<Record<string, unknown>>
export const factsOf = (value: unknown): Facts =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Facts) : {}
const said = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')

/** `in-progress` → `in progress`. */
const plain = (name: string): string => name.replaceAll(/[_-]/g, ' ')

/** Describes an event in a few words, from the fields of its kind. */
export function headlineOf({ kind, number, detail }: Pick<CallEvent, 'kind' | 'number' | 'detail'>): string {
  const text = (name: string): string => said(detail[name])
  if (kind === 'http') {
    const { method, url } = factsOf(detail['request'])
    const { response_code, error_message } = factsOf(detail['response'])
    const answer = said(response_code) || said(error_message)
    return `${said(method) || 'Request'} ${said(url)}${answer && ` → ${answer}`}`
  }
  if (kind === 'script') return [text('verb') || 'Script', text('text')].filter(Boolean).join(': ')
  if (kind === 'state') {
    const { turns } = detail
    if (Array.isArray(turns)) return `Agent: ${counted(turns.length, 'turn')}`
    const what = plain(text('what') || text('status') || 'state')
    return `${what.charAt(0).toUpperCase()}${what.slice(1)}${text('text') && `: ${text('text')}`}`
  }
  return `${number === null ? '' : `${number}: `}${text('detail') || text('message') || plain(kind)}`
}
