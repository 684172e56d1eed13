import { Authorizer } from '../../../core/runtime/sip/authorizer.ts'
import type { ControlClient, Hold } from '../control/client.ts'
import type { SipDialog } from '../dialog/dialog.ts'
import type { SipMessage } from '../sip/message.ts'
import type { OutgoingRequest } from '../stack.ts'
import type { WheelTimer } from '../timers.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import { Unjudged } from './unjudged.ts'

// The state that the agent keeps between messages.

/** A dialog as the application sees it, with the id `Call-ID;from-tag=tag`. Forks of one INVITE share a leg. */
export class AgentLeg implements Hold {
  readonly id: string
  readonly role: 'uas' | 'uac'
  /** The request that created it: an INVITE or a SUBSCRIBE. */
  readonly kind: 'invite' | 'subscribe'
  dialog: SipDialog
  state: 'early' | 'confirmed' = 'early'
  /** The application that handles the leg. Its connection may be closed. */
  app: ControlClient
  ready_at = 0
  waiting: string[] | undefined = undefined
  /** An unanswered INVITE of the peer: the initial one or a re-INVITE. */
  incoming: PendingServer | undefined = undefined
  /** The peer's requests that the application has not answered. */
  readonly unjudged = new Unjudged()
  /** Our INVITE without a final response, or with a 2xx that the application has not acknowledged. */
  outgoing: PendingClient | undefined = undefined
  /** Our 2xx that waits for its ACK. */
  answer: UnacknowledgedAnswer | undefined = undefined
  /** The last 2xx that got an ACK, and the sources of its ACKs. */
  acknowledged: { readonly transaction_id: string; readonly seq: number; readonly hosts: string[] } | undefined =
    undefined
  /** The reliable 1xx that our 2xx has overtaken: its INVITE's CSeq, and the RSeq that its PRACK names. */
  overtaken: { readonly seq: number; readonly rseq: number } | undefined = undefined
  session: SessionTimer | undefined = undefined
  /** The peer's Allow contains UPDATE. */
  peer_updates = false
  /** Ends a subscription that is not refreshed. */
  expiry: WheelTimer | undefined = undefined
  /** The last SDP that we sent, kept for refreshes by a session timer. */
  sdp = ''
  /** The tags of all early dialogs of an outgoing INVITE that forked. */
  forks: Set<string> | undefined = undefined
  /** Answers challenges to the requests that we send by ourselves. */
  authorizer: Authorizer | undefined = undefined
  /** A BYE was sent or received. No new request may start. */
  ending = false

  constructor(id: string, role: 'uas' | 'uac', kind: 'invite' | 'subscribe', dialog: SipDialog, app: ControlClient) {
    this.id = id
    this.role = role
    this.kind = kind
    this.dialog = dialog
    this.app = app
  }

  /** Takes the credentials of an application's command. They replace earlier ones, with the realms answered since. */
  authorize(credentials: string | undefined): void {
    if (credentials !== undefined) this.authorizer = Authorizer.read(credentials) ?? this.authorizer
  }

  /** Ends the retransmission of our 2xx. */
  stopAnswering(): void {
    this.answer?.resend?.cancel()
    this.answer?.deadline.cancel()
    this.answer = undefined
  }
}

interface UnacknowledgedAnswer {
  readonly transaction: ServerTransaction
  readonly transaction_id: string
  readonly seq: number
  /** An ACK came from an address that is not known to be the caller's. */
  acknowledged_elsewhere: boolean
  resend: WheelTimer | undefined
  deadline: WheelTimer
}

export interface SessionTimer {
  interval_seconds: number
  readonly refresher: 'us' | 'peer'
  /** The monotonic time at which the session expires unless it is refreshed. */
  readonly expires_at: number
  timer: WheelTimer
  /** The smallest interval that the peer accepts; 0 when it named none. */
  min_se: number
  /** A refresh was refused as too short by a peer that did not say what is enough; the interval is twice as long. */
  doubled: boolean
  /** Our refresh by re-INVITE is in progress, so another re-INVITE would cross it. */
  refreshing: boolean
}

/** A request from the network that waits for an application's answer. */
export interface PendingServer {
  readonly id: string
  readonly transaction: ServerTransaction
  readonly app: ControlClient
  readonly leg: AgentLeg | undefined
  /** Our To tag; '' until the first response above 100. */
  to_tag: string
  early: AgentLeg | undefined
  deadline: WheelTimer | undefined
  /** An UPDATE that came before the INVITE was answered. Its answer uses the INVITE's transaction id. */
  update: ServerTransaction | undefined
  reliable: ReliableProvisional | undefined
  last_rseq: number
  readonly hold: Hold
}

/** A 1xx that is retransmitted until its PRACK arrives (RFC 3262 §3). */
interface ReliableProvisional {
  readonly rseq: number
  readonly text: string
  timer: WheelTimer | undefined
  deadline: WheelTimer
}

/** A request that an application has sent. */
export interface PendingClient {
  readonly id: string
  readonly method: string
  readonly app: ControlClient
  /** The dialog id for the application; '' for requests that create no dialog. */
  dialog_id: string
  leg: AgentLeg | undefined
  /** The credentials for its dialog, as the application handed them over. */
  readonly credentials: string | undefined
  readonly in_dialog: boolean
  readonly hold: Hold
  outgoing: OutgoingRequest | undefined
  provisional: boolean
  finished: boolean
  /** The state of the CANCEL: `held` until a 1xx arrives. */
  cancel: 'none' | 'held' | 'sent'
  cancel_text: string
  /** The ACK of the 2xx to our INVITE, and how to send it again. */
  ack: { text: string; tag: string; resend: () => void } | undefined
  answered_tag: string
  /** The RSeq numbers seen, with their To tag. */
  rseqs: Set<string> | undefined
  /** The early dialogs of reliable provisional responses, by the RSeq that the PRACK of each names. */
  reliable: { readonly rseq: number | undefined; readonly dialog: SipDialog }[] | undefined
  deadline: WheelTimer | undefined
}

export function dialogId(call_id: string, tag: string): string {
  return `${call_id};from-tag=${tag}`
}

/** Reports whether both tags of a peer's message match a leg (RFC 3261 §12.2.2). */
export function fits(leg: AgentLeg, request: SipMessage): boolean {
  const { dialog } = leg
  if (dialog.local_tag !== request.to_tag) return false
  return (
    dialog.remote_tag === request.from_tag || dialog.remote_tag === '' || (leg.forks?.has(request.from_tag) ?? false)
  )
}
