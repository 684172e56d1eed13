import { Agent, type IncomingMessage, request } from 'node:http'
import { pendingWaits } from './wait.ts'

interface Wish {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | URLSearchParams | undefined
}

/** An answer whose body was read. */
interface Heard {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
}

/**
 * Connections end here before the server ends them (5 s), which would break a request that is on its way. A process
 * that is stopped for two seconds ends them that much later, and sends that much later on one that it has just taken.
 */
const RESTS_MS = 1000
const agent = new Agent({ keepAlive: true, timeout: RESTS_MS })

const MOVED: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const MOST_MOVES = 5

/**
 * Sends a request of a test and reads its answer, as `fetch` does: a GET follows redirections, and the answer comes
 * uncompressed. The streams of `fetch` cost up to a seventh of the CPU time of a test that mostly asks the API.
 */
export async function requested(url: string, wish: Wish): Promise<Heard> {
  const wait = { what: `the answer to ${wish.method} ${url}` }
  pendingWaits.add(wait)
  try {
    return await answered(url, wish)
  } finally {
    pendingWaits.delete(wait)
  }
}

async function answered(url: string, wish: Wish): Promise<Heard> {
  let at = new URL(url)
  for (let moves = 0; ; moves++) {
    const answer = await sent(at, wish)
    const { location } = answer.headers
    const status = answer.statusCode ?? 0
    if (location === undefined || !MOVED.has(status) || wish.method !== 'GET' || moves === MOST_MOVES)
      return { status, headers: headersOf(answer), bytes: await bytesOf(answer) }
    answer.resume()
    at = new URL(location, at)
  }
}

function sent(url: URL, { method, headers = {}, body }: Wish): Promise<IncomingMessage> {
  const form = body instanceof URLSearchParams
  const bytes = form ? body.toString() : body
  const own = {
    'Accept-Encoding': 'identity',
    ...(form ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}),
    // Node.js itself gives the body of a DELETE no length.
    ...(bytes === undefined ? {} : { 'Content-Length': Buffer.byteLength(bytes) }),
  }
  return new Promise((resolve, reject) => {
    request(url, { agent, method, headers: { ...own, ...headers } }, resolve)
      .on('error', reject)
      .end(bytes)
  })
}

async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  return headers
}
