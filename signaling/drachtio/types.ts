/**
 * SIP as the signaling node sees it: transactions and dialogs, nothing of how a SIP server is reached. Promises of this
 * interface always settle: with the peer's answer, or with `LinkLost` when the link to the SIP server is gone,
 * or with a failure when the SIP server tells of no answer for longer than any transaction lasts.
 */

export type Transport = 'udp' | 'tcp' | 'tls' | 'ws' | 'wss'

export interface Source {
  readonly address: string
  readonly port: number
  readonly transport: Transport
}

/** Values are one line each. */
export type Headers = Readonly<Record<string, string>>

interface Message {
  readonly call_id: string
  /** First matching header without regard to case; repeated ones are joined by a comma. */
  header(name: string): string | null
  /** Names as received where they begin `X-` or `P-`, else in lower case. */
  readonly headers: Headers
  /** Empty when there was none. */
  readonly body: string
  readonly source: Source
}

export interface SipRequest extends Message {
  readonly method: string
  readonly uri: string
}

export interface SipResponse extends Message {
  readonly status: number
  readonly reason: string
}

export interface ResponseOptions {
  readonly reason?: string
  readonly headers?: Headers
  /** One WWW-Authenticate header each: the one header that may not be joined by commas (RFC 3261 §7.3.1). */
  readonly challenges?: readonly string[]
  readonly body?: string
}

/** A request from the network that wants an answer; a second final answer is ignored. */
export interface InboundRequest extends SipRequest {
  respond(status: number, options?: ResponseOptions): void
}

/** Why the SIP server ended a dialog by itself. */
export type ServerEnd = 'session_expired' | 'no_ack' | 'other'

/**
 * What a peer sends within a dialog. An ACK wants no answer. `server_end`: the SIP server ended the dialog by itself;
 * null for a request of the peer.
 */
export type DialogHandler = (request: InboundRequest, facts: { readonly server_end: ServerEnd | null }) => void

export interface Dialog {
  readonly id: string
  readonly call_id: string
  /** Where requests within this dialog go: the peer's Contact at set-up. */
  readonly remote_target: string
  readonly local_tag: string
  readonly remote_tag: string
  /** @throws LinkLost. A dialog that the SIP server no longer knows answers 481. */
  request(method: string, options?: { headers?: Headers; body?: string }): Promise<SipResponse>
  /** Ends the dialog; settles when the BYE is answered or given up. Later calls do nothing. */
  bye(headers?: Headers): Promise<void>
  readonly ended: boolean
}

export interface InboundInvite extends SipRequest {
  /** A provisional answer; reliable (RFC 3262) when `reliable`: then it resolves when the PRACK has come. */
  progress(status: number, options?: ResponseOptions & { reliable?: boolean }): Promise<void>
  refuse(status: number, options?: ResponseOptions): void
  /** 200 OK. @throws Cancelled, LinkLost */
  accept(options: ResponseOptions, handler: DialogHandler): Promise<Dialog>
  /** The peer gave up; the SIP server has answered. Called at once when it has already happened. */
  onCancel(listener: (headers: Headers) => void): void
  /** Requests in the early dialog (UPDATE, INFO, PRACK with a body) before a final answer. */
  onEarly(handler: DialogHandler): void
}

export interface InviteOptions {
  readonly uri: string
  /** Where the packet goes when not to `uri`. */
  readonly proxy?: string
  readonly headers: Headers
  readonly body: string
  readonly auth?: { readonly username: string; readonly password: string }
}

export type InviteResult =
  | { readonly kind: 'answered'; readonly dialog: Dialog; readonly response: SipResponse }
  | { readonly kind: 'refused'; readonly response: SipResponse }
  /** The SIP server would not send it, or the link to it is lost. */
  | { readonly kind: 'failed'; readonly detail: string; readonly link_lost: boolean }

export interface OutboundInvite {
  /**
   * Until the final answer. May be called before the INVITE has left; then it never leaves, or is cancelled at once.
   */
  cancel(headers?: Headers): void
  readonly result: Promise<InviteResult>
}

export interface InviteProgress {
  sent?(facts: { readonly call_id: string; readonly source: Source }): void
  provisional?(response: SipResponse): void
  /** Requests of the peer in the early dialog, and in the confirmed one from its first moment. */
  handler: DialogHandler
}

export interface RequestOptions {
  readonly uri: string
  readonly method: string
  readonly headers?: Headers
  readonly body?: string
  readonly proxy?: string
  readonly auth?: { readonly username: string; readonly password: string }
}

/**
 * `absent`: nobody is reached at its address. `refused`: it does not take our secret. `silent`: it has the connection,
 * and answers nothing.
 */
export const LINK_STATES = ['absent', 'refused', 'silent', 'connected'] as const
export type LinkState = (typeof LINK_STATES)[number]

/** Told of the dialogs of a SIP server that keeps them when the node or the link is lost. */
export interface DialogKeeper {
  opened(dialog_id: string): void
  /** The dialog has ended on the server too. */
  closed(dialog_id: string): void
  linkLost(): void
}

export interface SipStack {
  readonly link: LinkState
  /** `link` is `connected`: new calls can be placed. */
  readonly connected: boolean
  /** Where a server other than the embedded edge should listen and does not. */
  readonly missing_contacts: readonly string[]
  /**
   * A target that stays silent is answered for within 5 s. A server that does not, shows no 100 either: there a target
   * that has said no more than that cannot be told from a silent one.
   */
  readonly limits_silence: boolean
  /** It proves the certificates of TLS targets, as each target asks for. No other server does that for each target. */
  readonly verifies_targets: boolean
  /** New INVITEs. */
  onInvite(handler: (invite: InboundInvite) => void): void
  /** Everything else outside a dialog: OPTIONS, REGISTER, MESSAGE … */
  onRequest(handler: (request: InboundRequest) => void): void
  /** Up after authentication; down when lost: by then every dialog of the link is gone. */
  onLink(listener: (up: boolean) => void): () => void
  invite(options: InviteOptions, progress: InviteProgress): OutboundInvite
  /** @throws LinkLost, RequestFailed */
  request(options: RequestOptions): Promise<SipResponse>
  /**
   * Sends BYE in a dialog that a lost node or a lost link left on the server; false when the server does not know it.
   * @throws LinkLost, RequestFailed
   */
  endLeft(dialog_id: string): Promise<boolean>
  /** Live dialogs and open transactions, for metrics. */
  counts(): { readonly dialogs: number; readonly transactions: number }
  close(): void
}

export class LinkLost extends Error {
  override readonly name = 'LinkLost'
  constructor() {
    super('the link to the SIP server is lost')
  }
}

/** The SIP server would not send it. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed'
}

/** The INVITE was cancelled before it could be answered. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled'
}
