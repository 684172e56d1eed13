import { tagOf } from '../../../core/domain/sip/uri.ts'
import type { Clock } from '../../../core/runtime/clock.ts'
import { HOLD_MS, type Hold } from '../control/client.ts'
import { unsolicitedMessage, type WireFacts } from '../control/wire.ts'
import { newTag } from '../sip/ids.ts'
import { Draft, type SipMessage } from '../sip/message.ts'
import type { EdgeLog, EdgeStack, SentRequest } from '../stack.ts'
import { isReliable, type Received } from '../transport/types.ts'
import type { Apps } from './apps.ts'
import { type AgentLeg, dialogId, fits, type PendingClient, type PendingServer } from './leg.ts'
import { requestInDialog } from './own-requests.ts'

// The shared state of the agent. Its users are requests from the network (uas.ts), requests of applications (uac.ts),
// session timers and the cleanup after lost applications.

interface AgentSettings {
  /** Grace period for calls whose application disconnected. */
  readonly orphan_grace_ms: number
  /** The refresher when neither the INVITE that requests a session timer nor the application names one. */
  readonly session_refresher: 'none' | 'uac' | 'uas'
  /** Returns the required option tags that are not supported in this method (RFC 3261 §8.2.2.3). */
  readonly unsupported: (method: string, required: readonly string[]) => readonly string[]
  /** The longest that a call may ring. */
  readonly ringing_ms: number
  /** Timer B of INVITEs for new calls. Undefined means 64×T1. */
  readonly no_response_ms: number | undefined
}

export class AgentCore {
  readonly stack: EdgeStack
  readonly apps: Apps
  readonly settings: AgentSettings
  readonly log: EdgeLog
  readonly legs = new Map<string, AgentLeg>()
  /** By transaction id. */
  readonly servers = new Map<string, PendingServer>()
  readonly clients = new Map<string, PendingClient>()

  constructor(stack: EdgeStack, apps: Apps, settings: AgentSettings) {
    this.stack = stack
    this.apps = apps
    this.settings = settings
    this.log = stack.log
  }

  get clock(): Clock {
    return this.stack.clock
  }

  /** 64×T1 of RFC 3261. */
  get patience_ms(): number {
    return 64 * this.stack.transactions.scale.t1
  }

  /** Finds the leg of a request from the peer by its Call-ID and both tags. */
  legOf(request: SipMessage): AgentLeg | undefined {
    const ours = this.legs.get(dialogId(request.call_id, request.to_tag))
    if (ours && ours.role === 'uac' && fits(ours, request)) return ours
    const theirs = this.legs.get(dialogId(request.call_id, request.from_tag))
    return theirs && theirs.role === 'uas' && fits(theirs, request) ? theirs : undefined
  }

  newHold(): Hold {
    return { ready_at: 0, waiting: undefined }
  }

  /**
   * Delays messages about this transaction or dialog for HOLD_MS, because the reply that introduces it was just sent.
   */
  introduced(hold: Hold): void {
    hold.ready_at = this.clock.monotonic_ms() + HOLD_MS
  }

  wireIn(message: SipMessage, received: Received): WireFacts {
    const { protocol, source } = received
    return { bytes: message.bytes, protocol, host: source.host, port: source.port, at: this.clock.now() }
  }

  /** The facts of a response, which goes to the source of the request. */
  wireBack({ protocol, source }: Received, text: string): WireFacts {
    return { bytes: text.length, protocol, host: source.host, port: source.port, at: this.clock.now() }
  }

  /**
   * The facts of a sent request. Like the reference, it shows our address for datagrams, the peer's for connections.
   */
  wireOut(sent: SentRequest): WireFacts {
    const { destination, listener, text } = sent
    const stream = isReliable(destination.protocol)
    return {
      bytes: text.length,
      protocol: destination.protocol,
      host: stream ? (destination.connection?.remote.host ?? destination.host) : listener.advertised_host,
      port: stream ? (destination.connection?.remote.port ?? destination.port) : listener.port,
      at: this.clock.now(),
    }
  }

  /** Returns the refusal of a request that requires what we do not support; undefined for any other. */
  refusalOfRequired(request: SipMessage): { status: number; headers: (readonly [string, string])[] } | undefined {
    if (!request.has('require')) return undefined
    const tags = this.settings.unsupported(request.method, request.list('require'))
    return tags.length === 0 ? undefined : { status: 420, headers: [['Unsupported', tags.join(', ')]] }
  }

  /** Forgets a leg and stops its timers. Open transactions run to their own end. */
  dropLeg(leg: AgentLeg): void {
    if (this.legs.get(leg.id) === leg) this.legs.delete(leg.id)
    leg.ending = true
    leg.session?.timer.cancel()
    leg.expiry?.cancel()
    leg.session = undefined
    leg.stopAnswering()
    leg.sdp = ''
  }

  /**
   * Hangs up on the server's initiative. Sends a BYE to the peer and reports it to the application as unsolicited.
   */
  hangUp(leg: AgentLeg, text: string): void {
    if (leg.ending) return
    this.dropLeg(leg)
    requestInDialog(this.stack, leg, 'BYE', draft => draft.add('Reason', `SIP;cause=200;text="${text}"`), {
      sent: sent => {
        if (leg.app.open) leg.app.sendHeld(unsolicitedMessage(this.wireOut(sent), leg.id, sent.text), leg)
      },
    })
  }

  /** Returns a local response that looks as if it came from the network (RFC 3261 §8.1.3.1). */
  fabricate(request: string, status: number, reason: string): string {
    const draft = Draft.response(status, reason)
    const head = request.slice(0, request.indexOf('\r\n\r\n')).split('\r\n')
    for (const line of head.slice(1)) {
      const colon = line.indexOf(':')
      const name = line.slice(0, colon)
      const value = line.slice(colon + 2)
      if (name === 'Via' || name === 'From' || name === 'Call-ID' || name === 'CSeq') draft.add(name, value)
      else if (name === 'To') draft.add('To', tagOf(value) !== '' ? value : `${value};tag=${newTag()}`)
    }
    return draft.serialize()
  }
}
