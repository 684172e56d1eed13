import { added, additionKey, newKey } from './additions.ts'
import { ApiError, noAnswer, type Problem } from './problem.ts'
import { type Revised, revisionOf, writeInTurn } from './revisions.ts'
import { csrfToken, onlyProject, projectId, signedOut } from './session.ts'

interface Ask {
  readonly body?: unknown
  /** The row whose revision the write builds on. */
  readonly on?: Revised
  readonly signal?: AbortSignal
  /** The request names no project. */
  readonly bare?: boolean
  /**
   * The request adds something, such as money: when its answer is lost and the person sends it again, it is added once.
   * Not for an answer with a secret, which a replay lacks.
   */
  readonly once?: boolean
}

interface Sent extends Omit<Ask, 'on' | 'once'> {
  readonly revision?: number
  readonly key?: string
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const API = '/console/api'

/**
 * Sends a request. Paths that begin with /v1 are the management API, as the signed-in member; others are the console's
 * API. Rejects with an ApiError. Each write has its own idempotency key; what is added once keeps it until an answer.
 */
export async function ask<T>(method: Method, path: string, { on, once, ...options }: Ask = {}): Promise<T> {
  if (once) {
    const addition = JSON.stringify([projectId.peek(), path, options.body])
    const answer = await bodyOf<T>(await send(method, path, { ...options, key: additionKey(addition, Date.now()) }))
    added(addition)
    return answer
  }
  if (!on) return bodyOf<T>(await send(method, path, options))
  return writeInTurn(on, async revision => {
    const response = await send(method, path, { ...options, revision })
    return { answer: await bodyOf<T>(response), revision: revisionOf(response.headers.get('ETag')) }
  })
}

const bodyOf = async <T>(response: Response): Promise<T> =>
  response.status === 204 ? (undefined as T) : ((await response.json()) as T)

/** An answer that was asked for before the part of the page that reads it was drawn. It serves one read. */
interface Early {
  readonly answer: Promise<unknown>
  /** Once it has come. */
  came?: { readonly body: unknown }
}

const ahead = new Map<string, Early>()
const keyOf = (path: string): string => `${projectId.peek()} ${path}`

/**
 * Asks for what the page is about to read. The browser may have asked already (`first-reads.ts`): it then takes that
 * answer, to a request without headers of ours. Only one of several projects needs a name. Resolves when the answer has
 * come, or failed: who reads it sees the error.
 */
export async function readAhead(path: string): Promise<void> {
  const early: Early = { answer: ask('GET', path, { bare: onlyProject() }) }
  ahead.set(keyOf(path), early)
  await early.answer.then(
    body => {
      early.came = { body }
    },
    () => undefined,
  )
}

/** Takes an early answer that has come, so that what reads it is drawn with it at once. */
export function takeEarly<T>(path: string): T | undefined {
  const came = ahead.get(keyOf(path))?.came
  if (came) ahead.delete(keyOf(path))
  return came?.body as T | undefined
}

/** Whether the answer to the next read of a path was asked for before. */
export const isAhead = (path: string): boolean => ahead.has(keyOf(path))

export function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const early = ahead.get(keyOf(path))?.answer
  ahead.delete(keyOf(path))
  return early ? (early as Promise<T>) : ask<T>('GET', path, signal === undefined ? {} : { signal })
}

/** Fetches the bytes of a recording or another file. */
export const readBytes = async (path: string): Promise<ArrayBuffer> => (await send('GET', path, {})).arrayBuffer()

async function send(method: Method, path: string, { body, revision, key, signal, bare }: Sent): Promise<Response> {
  const headers: Record<string, string> = {}
  if (projectId.value !== '' && !bare) headers['X-Project-ID'] = projectId.value
  if (method !== 'GET') {
    headers['X-CSRF-Token'] = csrfToken.value
    headers['Idempotency-Key'] = key ?? newKey()
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
