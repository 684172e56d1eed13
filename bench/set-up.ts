import type { UserAgent } from '../signaling/edge/useragent/user-agent.ts'
import type { Made } from './up.ts'

// Calls that a benchmark places through a running platform, by a trunk of its own.

/** The sandbox carrier answers and says nothing: what it takes to speak is no part of a set-up. */
const CALLED = '+2348030000008'

interface Caller {
  readonly host: string
  readonly sip_port: number
  readonly caller: string
}

/** The offer of a peer that takes no part in the sound. */
export const offerOf = (host: string): string =>
  `v=0\r\no=- 1 1 IN IP4 ${host}\r\ns=-\r\nc=IN IP4 ${host}\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n`

/** Places a call and reports whether it is answered with 200. Hangs up at once. */
export function isAnswered(agent: UserAgent, { host, sip_port, caller }: Caller): Promise<boolean> {
  return new Promise(resolve => {
    const call = agent.call(`sip:${CALLED}@127.0.0.1:${sip_port}`, {
      from: `<sip:${caller}@${host}>`,
      body: offerOf(host),
      events: {
        failed: () => resolve(false),
        answered() {
          call.hangUp()
          resolve(true)
        },
      },
    })
  })
}

/** Asks /v1 of a platform: POST with a body, else GET. @throws when it refuses */
// biome-ignore lint/suspicious/noExplicitAny: answers have several shapes, and callers read one or two fields.
export async function ask(made: Made, path: string, body?: object, headers: Record<string, string> = {}): Promise<any> {
  const response = await fetch(`${made.base_url}/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${made.api_key}`, 'content-type': 'application/json', ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

/** Creates a trunk whose peer calls from this address. */
export const addTrunk = (made: Made, source: string) =>
  ask(
    made,
    '/trunks',
    {
      name: 'Bench',
      direction: 'both',
      auth_mode: 'ip_allow_list',
      sources: [source],
      targets: [],
      codecs: ['PCMU', 'PCMA'],
      media_security: 'rtp',
      require_tls: false,
      source_validation: 'relaxed',
    },
    { 'idempotency-key': 'trunk' },
  )

const PAUSE_MS = 20

/**
 * Measures the set-up of calls, one after the other, while `goesOn` says so of their number. Returns milliseconds; a
 * call that is refused takes forever.
 */
export async function setUps(agent: UserAgent, from: Caller, goesOn: (calls: number) => boolean): Promise<number[]> {
  const taken_ms: number[] = []
  while (goesOn(taken_ms.length)) {
    const begun = performance.now()
    const answered = await isAnswered(agent, from)
    taken_ms.push(answered ? performance.now() - begun : Number.POSITIVE_INFINITY)
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
  }
  return taken_ms
}

/** The value below which this part of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}
