import { type Refusal, refuse } from './reply.ts'

/** Parses the revision in If-Match: one quoted number, exactly as the ETag was sent (RFC 9110 §8.8.3.2). */
export function ifMatchOf(header: string | undefined): number | Refusal {
  if (header === undefined) return refuse('precondition_required')
  const digits = /^"(0|[1-9]\d{0,14})"$/.exec(header.trim())?.[1]
  return digits === undefined ? refuse('if_match_invalid', { value: header.slice(0, 60) }) : Number(digits)
}

export const etag = (revision: number): string => `"${revision}"`

/** `id` identifies the resource that has another revision than the request names. */
export const mismatch = (given: number, current: number, id: string): Refusal =>
  refuse(
    'revision_mismatch',
    { value: given, limit: current },
    { headers: { ETag: etag(current) }, extra: { changed_resources: [id] } },
  )
