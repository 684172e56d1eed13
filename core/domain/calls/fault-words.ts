import { CALL_NUMBERS } from './call-numbers.ts'

interface KeptEvent {
  readonly kind: string
  readonly number: number | null
  /** JSON of the event: where the document is, and what is wrong. */
  readonly detail: string
}

/** Reports whether an event tells of a fault that has a number: an error, or a warning about what was skipped. */
export const isFault = ({ kind, number }: Pick<KeptEvent, 'kind' | 'number'>): boolean =>
  number !== null && (kind === 'error' || kind === 'warning')

/** Says what was wrong with a document, as its call kept it: `Error 12100 in line 3 of https://…: ….` */
export function faultWords({ kind, number, detail }: KeptEvent): string {
  const {
    url,
    line,
    detail: text,
  } = JSON.parse(detail) as { url?: string | null; line?: number | null; detail?: string }
  const what = `${kind === 'error' ? 'Error' : 'Warning'} ${number}`
  const place = [...(line ? [`in line ${line}`] : []), ...(url ? [`of ${url}`] : [])]
  return `${[what, ...place].join(' ')}: ${(text ?? CALL_NUMBERS[number ?? 0] ?? 'no more is known').replace(/\.$/, '')}.`
}
