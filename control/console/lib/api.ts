import { ApiError, noAnswer, type Problem } from './problem.ts'
import { csrfToken, projectId, signedOut } from './session.ts'

interface Ask {
  readonly body?: unknown
  /** The revision that the write builds on. */
  readonly revision?: number
  readonly signal?: AbortSignal
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const API = '/console/api'

/**
 * Sends a request. Paths that begin with /v1 are the management API, as the signed-in member; others are the console's
 * API. Rejects with an ApiError. Each write has its own idempotency key.
 */
export async function ask<T>(method: Method, path: string, options: Ask = {}): Promise<T> {
  const response = await send(method, path, options)
  if (response.status === 204) return undefined as T
  return (await response.json()) as T
}

/** Answers that were asked for before the part of the page that reads them was drawn. Each serves one read. */
const ahead = new Map<string, Promise<unknown>>()
const keyOf = (path: string): string => `${projectId.peek()} ${path}`

/** Asks for what the page is about to read. */
export function readAhead(path: string): void {
  const answer = ask('GET', path)
  ahead.set(keyOf(path), answer)
  // Who reads it sees the error.
  answer.catch(() => undefined)
}

export function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const early = ahead.get(keyOf(path))
  ahead.delete(keyOf(path))
  return early ? (early as Promise<T>) : ask<T>('GET', path, signal === undefined ? {} : { signal })
}

/** Fetches the bytes of a recording or another file. */
export const readBytes = async (path: string): Promise<ArrayBuffer> => (await send('GET', path, {})).arrayBuffer()

async function send(method: Method, path: string, { body, revision, signal }: Ask): Promise<Response> {
  const headers: Record<string, string> = {}
  if (projectId.value !== '') headers['X-Project-ID'] = projectId.value
  if (method !== 'GET') {
    headers['X-CSRF-Token'] = csrfToken.value
    headers['Idempotency-Key'] = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`
  }
  if (revision !== undefined) headers['If-Match'] = `"${revision}"`
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  const response = await fetch(`${API}${path}`, {
    method,
    headers,
    credentials: 'same-origin',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch(error => {
    if (signal?.aborted) throw error
    throw noAnswer('The platform did not answer. It may be starting again; nothing was lost on this page.')
  })
  if (response.ok) return response
  const problem = await problemIn(response)
  if (problem.status === 401 && path !== '/session') signedOut('Your session is over. Sign in again to go on.')
  throw new ApiError(problem)
}

async function problemIn(response: Response): Promise<Problem> {
  const text = await response.text()
  try {
    return JSON.parse(text) as Problem
  } catch {
    const { status, statusText } = response
    return { type: '', title: statusText, status, detail: text.slice(0, 200), code: `http_${status}`, request_id: '' }
  }
}
