import { createServer, type IncomingMessage } from 'node:http'
import type { Test } from './harness/index.ts'
import { until } from './wait.ts'

/** A request that a customer's web server received. */
export interface WebRequest {
  readonly method: string
  /** The URL as its sender wrote it. */
  readonly url: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  /** Query and form fields together. */
  readonly fields: URLSearchParams
  readonly body: Buffer
}

interface WebAnswer {
  readonly status?: number
  readonly type?: string
  readonly body?: string | Buffer
}

type Answered = WebAnswer | string

/** The answer to requests for a path, or a function that returns it. */
export type Page = Answered | ((request: WebRequest) => Answered | Promise<Answered>)

/** The requests that all servers of this process have received, for the invariants. */
export const webRequests: WebRequest[] = []

export interface WebServer {
  readonly url: string
  readonly requests: readonly WebRequest[]
  /** Returns the first request to `path`; waits for one. */
  seen(path: string): Promise<WebRequest>
}

/** Reads the whole body of a request; null when the sender disconnects midway, which is not the server's fault. */
export async function bodyOf(incoming: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of incoming) chunks.push(chunk)
  } catch {
    return null
  }
  return Buffer.concat(chunks)
}

/** Starts a customer's web server on loopback. It answers each path with its page: markup, audio or other content. */
export async function webServer(t: Test, pages: Readonly<Record<string, Page>>): Promise<WebServer> {
  const requests: WebRequest[] = []
  const server = createServer(async (incoming, outgoing) => {
    const body = await bodyOf(incoming)
    if (body === null) return
    const url = new URL(incoming.url ?? '/', 'http://test')
    const fields = new URLSearchParams([...url.searchParams, ...new URLSearchParams(body.toString())])
    const request = {
      method: incoming.method ?? '',
      url: `http://${incoming.headers.host}${incoming.url}`,
      path: url.pathname,
      headers: incoming.headers,
      fields,
      body,
    }
    requests.push(request)
    webRequests.push(request)
    const page = pages[url.pathname] ?? { status: 404 }
    const made = typeof page === 'function' ? await page(request) : page
    const answer: WebAnswer = typeof made === 'string' ? { body: made } : made
    outgoing.writeHead(answer.status ?? 200, { 'content-type': answer.type ?? 'text/xml' }).end(answer.body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => server.close(resolve).closeAllConnections()))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    requests,
    seen: path => until(`a request to ${path}`, () => requests.find(item => item.path === path)),
  }
}
