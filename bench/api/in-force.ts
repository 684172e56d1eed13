import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { type Made, startUp } from '../up.ts'

const CALLED = '+2348030000001'
/** The pause between retries. The edge stops answering a stranger that retries too often. */
const PAUSE_MS = 20

interface InForce {
  /**
   * Milliseconds from the answer to a write (a trunk's new source) to the 200 of the first admitted INVITE from that
   * source, including the call's setup. One figure per round.
   */
  readonly in_force_ms: readonly number[]
  /** The setup time alone: the same call again, from the source that is already in force. */
  readonly setup_ms: readonly number[]
}

/** Measures how soon a write takes effect in a platform with all its processes. */
export async function measureInForce(rounds: number): Promise<InForce> {
  const { made, sip_port, stop } = await startUp('in-force', { STROWGER_LOG: 'error' })
  try {
    return await measured(made, sip_port, rounds)
  } finally {
    await stop()
  }
}

async function measured(made: Made, sip_port: number, rounds: number): Promise<InForce> {
  const trunk = {
    name: 'Bench',
    direction: 'both',
    auth_mode: 'ip_allow_list',
    sources: ['127.0.0.61/32'],
    targets: [],
    codecs: ['PCMU', 'PCMA'],
    media_security: 'rtp',
    require_tls: false,
    source_validation: 'relaxed',
  }
  const created = await ask(made, '/trunks', trunk, { 'idempotency-key': 'trunk' })
  const path = `/trunks/${created.trunk.id}`
  const in_force_ms: number[] = []
  const setup_ms: number[] = []
  for (let round = 1; round <= rounds; round += 1) {
    const host = `127.0.1.${round}`
    const agent = await UserAgent.open({ listeners: [{ protocol: 'udp', host, port: 0 }] })
    const { revision } = await ask(made, path)
    const headers = { 'if-match': `"${revision}"`, 'idempotency-key': `source-${round}` }
    await ask(made, `${path}/ip-credentials`, { cidr: `${host}/32` }, headers)
    const written_at = performance.now()
    const from = { host, sip_port, caller: made.numbers[0] ?? '' }
    while (!(await admitted(agent, from))) await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    const first_at = performance.now()
    if (!(await admitted(agent, from))) throw new Error(`${host} was admitted, and then was not`)
    in_force_ms.push(first_at - written_at)
    setup_ms.push(performance.now() - first_at)
    agent.close()
  }
  return { in_force_ms, setup_ms }
}

/** Places a call and reports whether it is answered with 200. Hangs up at once. */
function admitted(
  agent: UserAgent,
  { host, sip_port, caller }: { readonly host: string; readonly sip_port: number; readonly caller: string },
): Promise<boolean> {
  const body = `v=0\r\no=- 1 1 IN IP4 ${host}\r\ns=-\r\nc=IN IP4 ${host}\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n`
  return new Promise(resolve => {
    const call = agent.call(`sip:${CALLED}@127.0.0.1:${sip_port}`, {
      from: `<sip:${caller}@${host}>`,
      body,
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

// biome-ignore lint/suspicious/noExplicitAny: answers have several shapes, and callers read one or two fields.
async function ask(made: Made, path: string, body?: object, headers: Record<string, string> = {}): Promise<any> {
  const response = await fetch(`${made.base_url}/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${made.api_key}`, 'content-type': 'application/json', ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

export const medianOf = (figures: readonly number[]): number =>
  [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)] ?? Number.NaN
