import type { IncomingMessage } from 'node:http'
import type { ParameterizedContext } from 'koa'
import { type Refusal, refuse } from './reply.ts'

interface Body {
  /** Media type without its parameters, in lower case; empty when the request names none. */
  readonly type: string
  readonly bytes: Buffer
}

/** Reads the body of a request, or returns the refusal to answer with. */
export type BodyReader = (ctx: ParameterizedContext) => Promise<Body | Refusal>

const TYPES = ['application/json', 'application/x-www-form-urlencoded']
/** The type of a body without a Content-Type (RFC 9110 §8.3). */
const UNTYPED = 'application/octet-stream'
const done = async (): Promise<void> => undefined

/**
 * Reads bodies with koa-body as text of one character per byte. That keeps the exact bytes: the callers check UTF-8 and
 * JSON themselves. `binary` is Node's own latin1 decoder; iconv-lite's `latin1` takes three times as long.
 */
export function createBodyReader(limit_bytes: number): BodyReader {
  let parser: Promise<Parser> | null = null
  return async ctx => {
    const { req } = ctx
    const { headers } = req
    const encoding = headers['content-encoding']
    // koa-body would decompress a body, and apply the limit to the result.
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
      return refuse('unsupported_media_type', { value: `with Content-Encoding ${encoding}` })
    delete headers['content-encoding']
    if (Number(headers['content-length'] ?? 0) > limit_bytes) return tooLarge(req, limit_bytes)
    const type = bodyType(req)
    // koa-body leaves other types unread. The callers refuse them, after the checks of size and emptiness.
    headers['content-type'] = TYPES.includes(type) ? type : UNTYPED
    parser ??= createParser(limit_bytes)
    const parse = await parser.catch(error => {
      // The loader of the bundle tries again, say when there is a file descriptor.
      parser = null
      throw error
    })
    try {
      await parse(ctx, done)
    } catch (error) {
      const { type: kind = '' } = error as { readonly type?: string }
      if (kind === 'entity.too.large') return tooLarge(req, limit_bytes)
      if (!CUT_SHORT.has(kind)) throw error
      return refuse('body_malformed', { value: 'it ended early' }, { headers: { Connection: 'close' } })
    }
    const { body } = ctx.request as { readonly body?: unknown }
    return { type, bytes: typeof body === 'string' ? Buffer.from(body, 'latin1') : EMPTY }
  }
}

type Parser = (ctx: ParameterizedContext, next: () => Promise<void>) => Promise<void>

/** Loads koa-body with the first body: it takes 12 MB (docs/http.md). */
async function createParser(limit_bytes: number): Promise<Parser> {
  const { HttpMethodEnum, koaBody } = await import('koa-body')
  return koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: [...TYPES, UNTYPED],
    encoding: 'binary',
    textLimit: limit_bytes,
    parsedMethods: [HttpMethodEnum.POST, HttpMethodEnum.PUT, HttpMethodEnum.PATCH, HttpMethodEnum.DELETE],
  })
}

const EMPTY = Buffer.alloc(0)
/** The errors of raw-body for a connection that closed before the end of the body. */
const CUT_SHORT: ReadonlySet<string> = new Set(['request.aborted', 'request.size.invalid', 'stream.not.readable'])

/** How much of an oversized body is read and discarded, so that the client can read the answer. */
const DRAINED = { bytes: 16 * 1024 * 1024, ms: 10_000 }

/**
 * Refuses an oversized body. The rest of it is read first, up to a limit: closing a connection with unread bytes resets
 * it, and the client never sees the answer (RFC 9112 §9.6).
 */
async function tooLarge(request: IncomingMessage, limit: number): Promise<Refusal> {
  const drained = await drain(request)
  if (!drained) request.pause()
  return refuse('body_too_large', { limit }, drained ? {} : { headers: { Connection: 'close' } })
}

/** Discards the rest of a request. Reports whether its end arrived within the limits. */
function drain(request: IncomingMessage): Promise<boolean> {
  return new Promise(resolve => {
    if (request.destroyed) return resolve(false)
    if (Number(request.headers['content-length'] ?? 0) > DRAINED.bytes) return resolve(false)
    let bytes = 0
    const settle = (ended: boolean): void => {
      clearTimeout(timer)
      request.off('data', drop).off('end', whole).off('error', cut).off('close', cut)
      resolve(ended)
    }
    const drop = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > DRAINED.bytes) settle(false)
    }
    const whole = (): void => settle(true)
    const cut = (): void => settle(false)
    const timer = setTimeout(cut, DRAINED.ms)
    request.on('data', drop).on('end', whole).on('error', cut).on('close', cut)
    // raw-body pauses the request when it stops at the limit.
    request.resume()
    if (request.readableEnded) settle(true)
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Returns the media type of a request in lower case, without parameters; empty when there is none. */
export const bodyType = (request: IncomingMessage): string =>
  (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** Decodes a body; null when it is not UTF-8. */
export function utf8Of(bytes: Buffer): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/** Parses a body as a JSON object (RFC 8259) in strict UTF-8. Undefined when there is no body. */
export function jsonObjectOf({ type, bytes }: Body): object | undefined | Refusal {
  if (bytes.length === 0 && type === '') return undefined
  if (type !== 'application/json') return refuse('unsupported_media_type', { value: type === '' ? 'none' : type })
  if (bytes.length === 0) return undefined
  const text = utf8Of(bytes)
  if (text === null) return refuse('body_malformed', { value: 'it is not UTF-8' })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refuse('body_malformed', { value: 'it does not parse' })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse('body_malformed', { value: 'it is not an object' })
  return value
}
