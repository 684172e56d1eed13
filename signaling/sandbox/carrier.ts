import type { Socket } from 'node:dgram'
import type { Log } from '../../core/runtime/log.ts'
import { parseUri } from '../edge/sip/uri.ts'
import type { UserAgentCall } from '../edge/useragent/call.ts'
import { UserAgent } from '../edge/useragent/user-agent.ts'
import { behaviourOf } from './behaviours.ts'
import { CallOfSandbox } from './call.ts'
import { RtpSession } from './rtp.ts'
import { farEndOf } from './sdp.ts'

interface Carrier {
  readonly port: number
  /** The number of ringing and answered calls. */
  readonly calls: number
  close(): void
}

const MAX_CALLS = 2000

/**
 * The sandbox carrier: a SIP peer with real RTP that simulates the telephone network (design section 9). It shares only
 * the SIP stack with the edge: it reads no state and knows no trunks.
 */
export async function openCarrier(options: {
  readonly host: string
  readonly port: number
  /** Is bound to the port already; null: the carrier binds its own. */
  readonly socket: Socket | null
  readonly log: Log
}): Promise<Carrier> {
  const { host, port, socket, log } = options

  async function take(call: UserAgentCall): Promise<void> {
    const remote = farEndOf(call.offer)
    if (!remote) return call.reject(488)
    if (agent.calls.length > MAX_CALLS) return call.reject(503)
    const called = parseUri(call.invite?.uri ?? '')?.user ?? ''
    let over = false
    call.events.ended = () => {
      over = true
    }
    const rtp = await RtpSession.open(host)
    if (over) return rtp.close()
    log.debug({ called }, 'the sandbox carrier takes a call')
    new CallOfSandbox({ call, called, rtp, remote, address: host }).run(behaviourOf(called), err =>
      log.error({ err, called }, 'a behaviour of the sandbox carrier failed'),
    )
  }

  const agent = await UserAgent.open({
    // Only UDP, as in its carrier row: the supervisor has chosen a free UDP port.
    listeners: [{ protocol: 'udp', host, port, socket: socket ?? undefined }],
    log,
    user: 'sandbox',
    incoming(call) {
      take(call).catch(err => {
        log.error({ err }, 'the sandbox carrier could not take a call')
        call.reject(500)
      })
    },
  })
  return {
    port: agent.port('udp'),
    get calls() {
      return agent.calls.length
    },
    close() {
      for (const call of agent.calls) call.hangUp()
      agent.close()
    },
  }
}
