import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { ParameterizedContext } from 'koa'

/** What a representation says of its version; an empty text is an absent header. */
interface Validators {
  readonly etag: string
  readonly last_modified: string
}

/** The outcome of the preconditions of a GET or HEAD: send the answer, send 304, or send 412. */
type Condition = 'met' | 'not_modified' | 'failed'

/**
 * Evaluates the preconditions of a GET or HEAD against the representation that answers it, in the order of RFC 9110
 * §13.2.2. A date that cannot be read is ignored, and so is one beside the tags that replace it (§13.1.3, §13.1.4).
 */
function conditionOf(headers: IncomingHttpHeaders, { etag, last_modified }: Validators): Condition {
  const changed_ms = Date.parse(last_modified)
  const [match, unmodified] = [headers['if-match'], httpDate(headers['if-unmodified-since'])]
  if (match !== undefined) {
    // If-Match compares strongly: a weak tag never matches (§8.8.3.2).
    if (match.trim() !== '*' && (etag.startsWith('W/') || !tagsOf(match).includes(etag))) return 'failed'
  } else if (unmodified !== null && changed_ms > unmodified) return 'failed'
  const [none, since] = [headers['if-none-match'], httpDate(headers['if-modified-since'])]
  if (none !== undefined)
    return none.trim() === '*' || tagsOf(none).map(opaque).includes(opaque(etag)) ? 'not_modified' : 'met'
  return since !== null && changed_ms <= since ? 'not_modified' : 'met'
}

const opaque = (tag: string): string => tag.replace(/^W\//, '')

const tagsOf = (list: string): string[] => list.match(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g) ?? []

/** Reads an HTTP date in any of its three forms (RFC 9110 §5.6.7), in ms; null when it is none. */
function httpDate(text: string | undefined): number | null {
  if (text === undefined || !/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? .* ?\d\d:\d\d:\d\d/.test(text)) return null
  const at_ms = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(at_ms) ? null : at_ms
}

/** Statuses whose content the preconditions are about. They precede the range, so 206 and 416 count too. */
const CONDITIONAL = new Set([200, 206, 416])

/**
 * Applies the request's preconditions to the answer in `ctx`, which has been written and not been sent. Makes it a 304,
 * or returns false when a precondition failed: the caller writes the refusal. An answer without an ETag has none.
 */
export function preconditionsHold(ctx: ParameterizedContext): boolean {
  const read = ctx.method === 'GET' || ctx.method === 'HEAD'
  if (!read || !ctx.res.hasHeader('ETag') || !CONDITIONAL.has(ctx.status)) return true
  const etag = ctx.response.get('ETag')
  const condition = conditionOf(ctx.req.headers, { etag, last_modified: ctx.response.get('Last-Modified') })
  if (condition === 'met') return true
  const { body } = ctx
  if (body instanceof Readable) body.destroy()
  ctx.body = null
  for (const about_content of ['Content-Type', 'Content-Length', 'Content-Range', 'Content-Encoding'])
    ctx.remove(about_content)
  if (condition === 'not_modified') ctx.status = 304
  return condition === 'not_modified'
}
