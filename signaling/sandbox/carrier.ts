import type { Log } from '../../core/runtime/log.ts'
import { newTag } from '../edge/sip/ids.ts'
import { draftResponse } from '../edge/sip/message.ts'
import { parseUri } from '../edge/sip/uri.ts'
import { SipStack } from '../edge/stack.ts'
import type { ServerTransaction } from '../edge/transaction/server.ts'
import { behaviourOf } from './behaviours.ts'
import { CallOfSandbox, keyOf } from './call.ts'
import { RtpSession } from './rtp.ts'
import { remoteOf } from './sdp.ts'

export interface Carrier {
  readonly port: number
  /** Calls that are ringing or answered now. */
  readonly calls: number
  close(): void
}

const MAX_CALLS = 2000

/**
 * The sandbox carrier: a SIP peer with real RTP that plays the telephone network (design section 9). It shares the SIP
 * stack with the edge, and nothing else with the platform: it reads no state and knows no trunk.
 */
export async function openCarrier(options: {
  readonly host: string
  readonly port: number
  readonly log: Log
}): Promise<Carrier> {
  const { host, log } = options
  const calls = new Map<string, CallOfSandbox>()
  const byInvite = new Map<ServerTransaction, CallOfSandbox>()

  const refuse = (transaction: ServerTransaction, status: number): void => {
    transaction.respond(draftResponse(transaction.request, status, newTag()), status)
  }

  async function invited(invite: ServerTransaction): Promise<void> {
    const { request } = invite
    invite.respond(draftResponse(request, 100, ''), 100)
    const remote = remoteOf(request.body)
    if (!remote) return refuse(invite, 488)
    if (calls.size >= MAX_CALLS) return refuse(invite, 503)
    const rtp = await RtpSession.open(host)
    const called = parseUri(request.uri)?.user ?? ''
    const ended = (): void => {
      calls.delete(call.key)
      byInvite.delete(invite)
    }
    const call = new CallOfSandbox({ stack, invite, called, rtp, remote, address: host, ended })
    calls.set(call.key, call)
    byInvite.set(invite, call)
    log.debug({ called, sip_call_id: request.callId }, 'call')
    call.run(behaviourOf(called), err => log.error({ err, called }, 'behaviour failed'))
  }

  const stack = await SipStack.open({
    listeners: [
      { protocol: 'udp', host, port: options.port },
      { protocol: 'tcp', host, port: options.port },
    ],
    log,
    user: {
      request(transaction) {
        const { request } = transaction
        if (request.toTag !== '') {
          const call = calls.get(keyOf(request))
          if (call) call.within(transaction)
          else refuse(transaction, 481)
        } else if (request.method === 'INVITE') {
          invited(transaction).catch(err => {
            log.error({ err }, 'call could not be taken')
            refuse(transaction, 500)
          })
        } else refuse(transaction, request.method === 'OPTIONS' ? 200 : 405)
      },
      ack(message) {
        calls.get(keyOf(message))?.acknowledged()
      },
      cancel(cancel, invite) {
        refuse(cancel, invite ? 200 : 481)
        if (invite) byInvite.get(invite)?.canceled()
      },
    },
  })

  return {
    port: stack.transport.listeners[0]?.port ?? 0,
    get calls() {
      return calls.size
    },
    close() {
      for (const call of [...calls.values()]) {
        call.refuse(503)
        call.hangUp()
      }
      stack.close()
    },
  }
}
