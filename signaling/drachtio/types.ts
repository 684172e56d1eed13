import type { Transport } from '../../core/domain/admission/index.ts'
import type { BodyReading } from '../../core/domain/sip/body.ts'
import type { Credentials } from '../../core/runtime/sip/authorizer.ts'

/**
 * SIP as the signaling node sees it: transactions and dialogs, independent of how the SIP server is reached. Promises
 * of this interface always settle: with the peer's response, with `LinkLost` when the link to the SIP server is lost,
 * or with a failure when the SIP server reports no response for longer than any transaction lasts.
 */

export type { Transport }

export interface Source {
  readonly address: string
  readonly port: number
  readonly transport: Transport
}

/** Header values by name. A value is one line. */
export type Headers = Readonly<Record<string, string>>

interface Message {
  readonly call_id: string
  /** Returns a header's value; the name is case-insensitive. Repeated headers are joined by commas. */
  header(name: string): string | null
  /** Names that begin with `X-` or `P-` are as received; others are in lower case. */
  readonly headers: Headers
  /** As received; empty when the message has no body. `content` reads it. */
  readonly body: string
  /** Reads the body by its Content-Type. `understood`: the types that can be handled; default: those of calls. */
  content(understood?: ReadonlySet<string>): BodyReading
  readonly source: Source
}

export interface SipRequest extends Message {
  readonly method: string
  readonly uri: string
  /** The host, as peers see it, of the listening point that a request outside a dialog came to. */
  readonly received_on?: string | undefined
}

export type { Credentials }

export interface SipResponse extends Message {
  readonly status: number
  readonly reason: string
}

export interface ResponseOptions {
  readonly reason?: string
  readonly headers?: Headers
  /** Each is sent as its own WWW-Authenticate header, which must not be joined by commas (RFC 3261 §7.3.1). */
  readonly challenges?: readonly string[]
  readonly body?: string
  /** Called when the SIP server has ended the transaction before, as at a CANCEL of a re-INVITE. */
  readonly unsent?: () => void
}

/** A request from the network that can be answered. A second final response is ignored. */
export interface InboundRequest extends SipRequest {
  respond(status: number, options?: ResponseOptions): void
}

/** Why the SIP server, not the peer, ended a dialog. */
export type ServerEnd = 'session_expired' | 'no_ack' | 'other'

/**
 * Handles the requests of a peer within a dialog. An ACK is not answered. `server_end` says why the SIP server ended
 * the dialog; it is null for a request of the peer.
 */
export type DialogHandler = (request: InboundRequest, facts: { readonly server_end: ServerEnd | null }) => void

/** Returns the headers of the ACK of a 2xx, or of the PRACK of a reliable provisional response. */
export type Acknowledging = (response: SipResponse) => Headers

export interface Dialog {
  readonly id: string
  readonly call_id: string
  /** The target of requests within this dialog: the peer's Contact at set-up. */
  readonly remote_target: string
  readonly local_tag: string
  readonly remote_tag: string
  /** @throws LinkLost. A dialog that the SIP server no longer knows answers 481. */
  request(
    method: string,
    options?: { headers?: Headers; body?: string; acknowledging?: Acknowledging },
  ): Promise<SipResponse>
  /** Ends the dialog; settles when the BYE is answered or has timed out. Later calls do nothing. */
  bye(headers?: Headers): Promise<void>
  readonly ended: boolean
}

export interface InboundInvite extends SipRequest {
  /** Sends a provisional response. With `reliable` (RFC 3262) it resolves when the PRACK has come. */
  progress(status: number, options?: ResponseOptions & { reliable?: boolean }): Promise<void>
  refuse(status: number, options?: ResponseOptions): void
  /** Sends 200 OK. `auth` answers challenges to our requests in the dialog. @throws Cancelled, CallerGone, LinkLost */
  accept(options: ResponseOptions & { readonly auth?: Credentials }, handler: DialogHandler): Promise<Dialog>
  /** The peer sent CANCEL, and the SIP server has answered. Calls the listener at once if this has already happened. */
  onCancel(listener: (headers: Headers) => void): void
  /** Sets the handler of requests in the early dialog: UPDATE, INFO, and PRACK. */
  onEarly(handler: DialogHandler): void
}

export interface InviteOptions {
  readonly uri: string
  /** The next hop, when it differs from `uri`. */
  readonly proxy?: string
  readonly headers: Headers
  readonly body: string
  /** Answers challenges to this request, and to those of the dialog that an INVITE makes. */
  readonly auth?: Credentials
}

export type InviteResult =
  | { readonly kind: 'answered'; readonly dialog: Dialog; readonly response: SipResponse }
  | { readonly kind: 'refused'; readonly response: SipResponse }
  /** The SIP server did not send the INVITE or reported no response, or the link to it was lost. */
  | { readonly kind: 'failed'; readonly detail: string; readonly link_lost: boolean }

export interface OutboundInvite {
  /** Cancels the INVITE; does nothing after the final response. An INVITE not sent yet is cancelled once it is sent. */
  cancel(headers?: Headers): void
  readonly result: Promise<InviteResult>
}

export interface InviteProgress {
  sent?(facts: { readonly call_id: string; readonly source: Source }): void
  provisional?(response: SipResponse): void
  acknowledging?: Acknowledging
  /** Handles the peer's requests in the early dialog, and in the confirmed one from its first moment. */
  handler: DialogHandler
}

export interface RequestOptions {
  readonly uri: string
  readonly method: string
  readonly headers?: Headers
  readonly body?: string
  readonly proxy?: string
  readonly auth?: Credentials
}

/**
 * `absent`: no server answers at the address. `refused`: the server rejects our secret. `silent`: the server keeps the
 * connection and does not answer.
 */
export const LINK_STATES = ['absent', 'refused', 'silent', 'connected'] as const
export type LinkState = (typeof LINK_STATES)[number]

/** Tracks the dialogs of a SIP server that keeps them when the node or the link is lost. */
export interface DialogKeeper {
  opened(dialog_id: string): void
  /** The dialog has also ended on the server. */
  closed(dialog_id: string): void
  linkLost(): void
}

export interface SipStack {
  readonly link: LinkState
  /** Whether `link` is `connected`, so that new calls can be placed. */
  readonly connected: boolean
  /** The addresses on which a server other than the embedded edge should listen and does not. */
  readonly missing_contacts: readonly string[]
  /**
   * Whether the server generates a response for a silent target within 5 s. A server that does not also hides the 100,
   * so a target that has sent only a 100 looks silent.
   */
  readonly limits_silence: boolean
  /** Whether the server verifies the certificates of TLS targets as each target requires. Only our edge does. */
  readonly verifies_targets: boolean
  /** The hosts of the server's listening points as peers see them; none while it was never connected. */
  readonly hosts?: readonly string[]
  /** Sets the handler of new INVITEs. */
  onInvite(handler: (invite: InboundInvite) => void): void
  /** Sets the handler of other requests outside a dialog: OPTIONS, REGISTER, MESSAGE … */
  onRequest(handler: (request: InboundRequest) => void): void
  /** Reports the link up after authentication, and down when it is lost. Its dialogs are gone by then. */
  onLink(listener: (up: boolean) => void): () => void
  invite(options: InviteOptions, progress: InviteProgress): OutboundInvite
  /** @throws LinkLost, RequestFailed */
  request(options: RequestOptions): Promise<SipResponse>
  /**
   * Sends BYE in a dialog that a lost node or a lost link left on the server; false when the server does not know it.
   * @throws LinkLost, RequestFailed
   */
  endLeft(dialog_id: string): Promise<boolean>
  /** Counts live dialogs and open transactions, for metrics. */
  counts(): { readonly dialogs: number; readonly transactions: number }
  close(): void
}

export class LinkLost extends Error {
  override readonly name = 'LinkLost'
  constructor() {
    super('the link to the SIP server is lost')
  }
}

/** The SIP server did not send the request, or reported no response. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed'
}

/** The SIP server has lost the connection or the transaction of an INVITE: nothing can be sent to the caller. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone'
}

/** The INVITE was cancelled before it could be answered. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled'
}
