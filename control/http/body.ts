import type { IncomingMessage } from 'node:http'
import { type Refusal, refuse } from './reply.ts'

/**
 * The bytes of a request's body, or why they were not taken. Content codings are refused: what is limited is what is
 * read.
 */
export async function readBody(request: IncomingMessage, limit_bytes: number): Promise<Buffer | Refusal> {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    return refuse('unsupported_media_type', { value: `with Content-Encoding ${encoding}` })
  if (Number(request.headers['content-length'] ?? 0) > limit_bytes) return tooLarge(request, limit_bytes)
  const bytes = await bytesOf(request, limit_bytes)
  if (bytes === 'too many') return tooLarge(request, limit_bytes)
  return bytes ?? refuse('body_malformed', { value: 'it ended early' }, { headers: { Connection: 'close' } })
}

/** Null: the request ended before its body did. By events, because an async iterator costs as much as all the rest. */
function bytesOf(request: IncomingMessage, limit_bytes: number): Promise<Buffer | 'too many' | null> {
  return new Promise(resolve => {
    if (request.destroyed) return resolve(null)
    const chunks: Buffer[] = []
    let bytes = 0
    const settle = (outcome: Buffer | 'too many' | null): void => {
      request.off('data', take).off('end', whole).off('error', cut).off('close', cut)
      resolve(outcome)
    }
    const take = (chunk: Buffer): void => {
      bytes += chunk.length
      chunks.push(chunk)
      if (bytes <= limit_bytes) return
      settle('too many')
    }
    const whole = (): void => settle(Buffer.concat(chunks))
    const cut = (): void => settle(null)
    request.on('data', take).on('end', whole).on('error', cut).on('close', cut)
  })
}

/** What is read and thrown away of a body that is too large, so that its sender gets to read the answer. */
const DRAINED = { bytes: 16 * 1024 * 1024, ms: 10_000 }

/**
 * A connection that closes while bytes of the client are under way is reset, and the client never sees the answer
 * (RFC 9112 §9.6). So the rest is read first, up to a limit.
 */
async function tooLarge(request: IncomingMessage, limit: number): Promise<Refusal> {
  const drained = await drain(request)
  if (!drained) request.pause()
  return refuse('body_too_large', { limit }, drained ? {} : { headers: { Connection: 'close' } })
}

/** Whether the request came to its end. */
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
    if (request.readableEnded) settle(true)
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The media type of the request without its parameters, in lower case; empty when none is given. */
export const mediaType = (request: IncomingMessage): string =>
  (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** Text of a body; null when it is not UTF-8. */
export function textOf(bytes: Buffer): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/** A JSON object (RFC 8259), strictly UTF-8. Undefined when there is no body. */
export function jsonObjectOf(request: IncomingMessage, bytes: Buffer): object | undefined | Refusal {
  const type = mediaType(request)
  if (bytes.length === 0 && type === '') return undefined
  if (type !== 'application/json') return refuse('unsupported_media_type', { value: type === '' ? 'none' : type })
  if (bytes.length === 0) return undefined
  const text = textOf(bytes)
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

/** JSON with the keys of every object in order: equal for equal values, however the client wrote them. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`
}
