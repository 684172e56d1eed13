import type { SipMessage } from '../../signaling/edge/sip/message.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { againAfter } from './busy.ts'
import type { Test } from './harness/index.ts'
import { digestAnswer } from './phone.ts'
import { UNHEARD_PORT } from './ports.ts'
import { PATIENCE_MS } from './wait.ts'

/** SIP peers in this process, on real sockets. They handle many calls at once and may decide each call in code. */

export interface Agent {
  readonly ua: UserAgent
  readonly ip: string
  readonly port: number
  /** Received INVITEs, with the monotonic time in ms. */
  readonly invites: readonly { readonly at_ms: number; readonly uri: string; readonly call: UserAgentCall }[]
}

export const sdpOf = (ip: string): string =>
  [
    ...['v=0', `o=- 1 1 IN IP4 ${ip}`, 's=-', `c=IN IP4 ${ip}`, 't=0 0'],
    ...[`m=audio ${UNHEARD_PORT} RTP/AVP 0`, ''],
  ].join('\r\n')

/** Opens a peer that answers OPTIONS. `take` handles each call; by default the peer answers 200 at once. */
export async function openAgent(
  t: Test,
  options: {
    readonly ip: string
    readonly port?: number
    readonly take?: (call: UserAgentCall) => void
    readonly protocols?: readonly ('udp' | 'tcp')[]
  },
): Promise<Agent> {
  const { ip } = options
  const invites: { at_ms: number; uri: string; call: UserAgentCall }[] = []
  const ua = await UserAgent.open({
    listeners: (options.protocols ?? ['udp']).map(protocol => ({ protocol, host: ip, port: options.port ?? 0 })),
    user: 'agent',
    incoming(call) {
      invites.push({ at_ms: performance.now(), uri: call.invite?.uri ?? '', call })
      if (options.take) options.take(call)
      else call.answer({ body: sdpOf(ip) })
    },
  })
  t.teardown(() => ua.close())
  return { ua, ip, port: ua.port(options.protocols?.[0] ?? 'udp'), invites }
}

export interface Placed {
  readonly call: UserAgentCall
  /** The status of the final response; 0 when none came. */
  readonly status: number
  readonly response: SipMessage | undefined
  readonly at_ms: number
}

type Headers = Readonly<Record<string, string>>

interface PlaceOptions {
  readonly to: { readonly host: string; readonly port: number }
  readonly caller: string
  /** A function makes them for each attempt, counted from 1: a nonce may be used again with its next count. */
  readonly headers?: Headers | ((attempt: number) => Headers)
  readonly transport?: 'udp' | 'tcp'
  /** SDP; by default two-way audio. */
  readonly body?: string
  /** Gets each provisional response. */
  readonly progress?: (response: SipMessage) => void
  /** Takes the first answer, also one that the platform was too busy to decide. */
  readonly once?: true
}

/**
 * Places a call and waits for its final response. `to` is the next hop. Like a telephone, it calls again while the
 * platform is too busy to decide.
 */
export async function place(agent: Agent, uri: string, options: PlaceOptions): Promise<Placed> {
  const deadline_ms = performance.now() + PATIENCE_MS
  for (let attempt = 1; ; attempt++) {
    const placed = await placeOnce(agent, uri, options, attempt)
    const again_ms = againAfter(placed.response)
    if (options.once || again_ms === null || performance.now() > deadline_ms) return placed
    await new Promise(resolve => setTimeout(resolve, again_ms))
  }
}

function placeOnce(agent: Agent, uri: string, options: PlaceOptions, attempt: number): Promise<Placed> {
  const { headers = {} } = options
  return new Promise(resolve => {
    const at_ms = performance.now()
    const done = (response: SipMessage | undefined): void =>
      resolve({ call, status: response?.status ?? 0, response, at_ms })
    const call: UserAgentCall = agent.ua.call(uri, {
      from: `<sip:${options.caller}@${agent.ip}>`,
      hop: `sip:${options.to.host}:${options.to.port}${options.transport === 'tcp' ? ';transport=tcp' : ''}`,
      body: options.body ?? sdpOf(agent.ip),
      headers: typeof headers === 'function' ? headers(attempt) : headers,
      events: {
        ...(options.progress ? { progress: options.progress } : {}),
        ...{ answered: done, failed: done },
      },
    })
  })
}

/** Returns an Authorization value for the first challenge of this algorithm in a 401. */
export function authorize(
  response: SipMessage | undefined,
  facts: {
    readonly username: string
    readonly password: string
    readonly uri: string
    readonly method: string
    readonly algorithm?: 'MD5' | 'SHA-256'
    /** How often its nonce has been used with this answer. */
    readonly uses?: number
  },
): string {
  const { uses = 1, algorithm = 'MD5', ...rest } = facts
  const nc = uses.toString(16).padStart(8, '0')
  const challenge =
    (response?.lines('www-authenticate') ?? []).find(line => line.includes(`algorithm=${algorithm}`)) ?? ''
  const value = (name: string): string => new RegExp(`${name}="([^"]*)"`).exec(challenge)?.[1] ?? ''
  return digestAnswer({
    ...rest,
    method: facts.method as 'INVITE',
    algorithm,
    nc,
    realm: value('realm'),
    nonce: value('nonce'),
  })
}
