import type { ControlClient, Hold } from '../control/client.ts'
import type { Dialog } from '../dialog/dialog.ts'
import type { SipMessage } from '../sip/message.ts'
import type { OutgoingRequest } from '../stack.ts'
import type { WheelTimer } from '../timers.ts'
import type { ServerTransaction } from '../transaction/server.ts'

// What the agent remembers between messages.

/** A dialog as the application knows it, by `Call-ID;from-tag=tag`. Forks of one INVITE share a leg. */
export class Leg implements Hold {
  readonly id: string
  readonly role: 'uas' | 'uac'
  /** What created it: an INVITE or a SUBSCRIBE. */
  readonly kind: 'invite' | 'subscribe'
  dialog: Dialog
  state: 'early' | 'confirmed' = 'early'
  /** The application that handles it; closed when it is gone. */
  app: ControlClient
  ready_at = 0
  waiting: string[] | undefined = undefined
  /** Unanswered INVITE from the peer: the initial one or a re-INVITE. */
  incoming: PendingServer | undefined = undefined
  /** INVITE of ours without a final response, or with a 2xx that the application has not acknowledged. */
  outgoing: PendingClient | undefined = undefined
  /** Our 2xx that waits for its ACK. */
  answer: UnacknowledgedAnswer | undefined = undefined
  session: SessionTimer | undefined = undefined
  /** The peer's Allow has UPDATE. */
  peer_updates = false
  /** End of a subscription that is not refreshed. */
  expiry: WheelTimer | undefined = undefined
  /** Last SDP that we sent, kept while a session timer may need it. */
  sdp = ''
  /** Tags of all early dialogs of an outgoing INVITE, when there are several (forks). */
  forks: Set<string> | undefined = undefined
  /** BYE was sent or received: nothing new may start. */
  ending = false
  cdr: { start: boolean; stop: boolean } | undefined = undefined

  constructor(id: string, role: 'uas' | 'uac', kind: 'invite' | 'subscribe', dialog: Dialog, app: ControlClient) {
    this.id = id
    this.role = role
    this.kind = kind
    this.dialog = dialog
    this.app = app
  }
}

interface UnacknowledgedAnswer {
  readonly transaction: ServerTransaction
  readonly transaction_id: string
  readonly seq: number
  resend: WheelTimer | undefined
  deadline: WheelTimer
}

export interface SessionTimer {
  interval_seconds: number
  readonly refresher: 'us' | 'peer'
  /** Monotonic time at which the session is over unless it was refreshed. */
  readonly expires_at: number
  timer: WheelTimer
  /** What the peer has asked for at least; 0 when it has not. */
  min_se: number
  /** Our refresh is under way: another exchange would cross it. */
  refreshing: boolean
}

/** A request from the network that an application has to answer. */
export interface PendingServer {
  readonly id: string
  readonly transaction: ServerTransaction
  readonly app: ControlClient
  readonly leg: Leg | undefined
  /** Our To tag; '' until the first response above 100. */
  to_tag: string
  early: Leg | undefined
  deadline: WheelTimer | undefined
  /** UPDATE that came before the INVITE was answered; it is answered under the INVITE's transaction id. */
  update: ServerTransaction | undefined
  reliable: ReliableProvisional | undefined
  last_rseq: number
  readonly hold: Hold
}

/** A 1xx that is repeated until its PRACK arrives (RFC 3262 §3). */
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
  /** Dialog id for the application; '' for requests that make none. */
  dialog_id: string
  leg: Leg | undefined
  readonly in_dialog: boolean
  readonly hold: Hold
  outgoing: OutgoingRequest | undefined
  provisional: boolean
  finished: boolean
  /** CANCEL that the application asked for; `held` until a 1xx arrives. */
  cancel: 'none' | 'held' | 'sent'
  cancel_text: string
  /** ACK of our 2xx, to be repeated: text and how it went. */
  ack: { text: string; tag: string; resend: () => void } | undefined
  answered_tag: string
  /** RSeq numbers seen, by To tag. */
  rseqs: Set<string> | undefined
  deadline: WheelTimer | undefined
  cdr: { stop: boolean } | undefined
}

export function dialogId(call_id: string, tag: string): string {
  return `${call_id};from-tag=${tag}`
}

/** Whether a message from the peer belongs to a leg, by both tags (RFC 3261 §12.2.2). */
export function fits(leg: Leg, request: SipMessage): boolean {
  const { dialog } = leg
  if (dialog.local_tag !== request.to_tag) return false
  return (
    dialog.remote_tag === request.from_tag || dialog.remote_tag === '' || (leg.forks?.has(request.from_tag) ?? false)
  )
}
