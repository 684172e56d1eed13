import { listeningHosts, missingContacts, type ServedAt } from '../../core/domain/network/contacts.ts'
import { sipRefusal } from '../../core/domain/reasons/index.ts'
import { uriOf } from '../../core/domain/sip/address.ts'
import { tagOf } from '../../core/domain/sip/uri.ts'
import { hasToken, parseCSeq } from '../../core/domain/sip/values.ts'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { Authorizer, CREDENTIALS_HEADER } from '../../core/runtime/sip/authorizer.ts'
import { isUnknownDialog, openDialog } from './dialog.ts'
import { answerable, type DialogFacts, deliver, inboundInvite, type Surroundings } from './inbound.ts'
import {
  type Acknowledge,
  createLibrary,
  type DrachtioLibrary,
  type LibraryAnswer,
  type LibraryRequest,
} from './library.ts'
import { outgoing, requestView, responseView } from './messages.ts'
import { Pulse } from './pulse.ts'
import {
  type Acknowledging,
  type Dialog,
  type DialogKeeper,
  type Headers,
  type InboundInvite,
  type InboundRequest,
  type InviteOptions,
  type InviteProgress,
  type InviteResult,
  LinkLost,
  type LinkState,
  type OutboundInvite,
  RequestFailed,
  type RequestOptions,
  type SipResponse,
  type SipStack,
} from './types.ts'

interface ConnectStackOptions {
  readonly host: string
  readonly port: number
  readonly secret: string
  readonly log: Log
  readonly clock: Clock
  /** Whether a server other than our own edge supports reliable provisional responses correctly. */
  readonly reliable: boolean
  /** Where a server other than our own edge should listen. */
  readonly served: ServedAt
  /** Tracks the dialogs of a server other than our own edge. Our edge ends the dialogs of a lost node itself. */
  readonly keeper?: DialogKeeper
}

/** The methods that we take outside a dialog. The SIP server answers all others. */
const METHODS = [
  'invite',
  'options',
  'register',
  'message',
  'subscribe',
  'notify',
  'info',
  'publish',
  'refer',
  'update',
]
const RETRY_MAX_DELAY_MS = 1000
/** A SIP server waits 32 s (64*T1) and may then forget a transaction silently. Our own timeout is a little longer. */
const GIVE_UP_MS = 35_000
/** The timeout of a re-INVITE, which may wait for a person. */
const REINVITE_GIVE_UP_MS = 180_000
/** Matches the embedded edge. A drachtio-server crashes when a final response precedes the PRACK of a reliable one. */
const OWN_EDGE = /-strowger$/
const SILENT = 'the SIP server reported no response'
/** Peers take a 503 without Retry-After for a fault of ours (RFC 3261 §21.5.4), and may shut us out. */
const STARTING = sipRefusal('state_unavailable', { value: 'the platform starts' }).headers

interface Outbound extends RequestOptions {
  readonly stackDialogId?: string
  /** The answer to a challenge, for the request that it repeats. */
  readonly credentials?: Headers
  readonly repeats?: LibraryRequest
  readonly authorizer?: Authorizer | null
  readonly acknowledging?: Acknowledging
}

/** Connects in the background, and reconnects whenever the link is lost. */
export function connectStack(options: ConnectStackOptions): SipStack {
  return new Stack(options)
}

class Stack implements SipStack {
  readonly #library: DrachtioLibrary = createLibrary()
  readonly #log: Log
  readonly #clock: Clock
  readonly #dialogs = new Map<string, (request: LibraryRequest, response: LibraryAnswer) => void>()
  /** A dialog was confirmed by what has just been read. */
  #opening = false
  /** Called when the link is lost, because the library then never calls back for the requests in progress. */
  readonly #pending = new Set<() => void>()
  readonly #linkListeners = new Set<(up: boolean) => void>()
  readonly #surroundings: Surroundings
  #onInvite: (invite: InboundInvite) => void = invite => invite.refuse(503, { headers: STARTING })
  #onRequest: (request: InboundRequest) => void = request => request.respond(503, { headers: STARTING })
  #own_edge = false
  /** The refusal of our secret has been logged. It repeats at each attempt. */
  #refused = false
  /** Why the last attempt to connect failed; meaningless while the link is up. */
  #failure: 'absent' | 'refused' = 'absent'
  #missing_contacts: readonly string[] = []
  #hosts: readonly string[] = []
  readonly #served: ServedAt
  readonly #pulse: Pulse
  readonly #keeper: DialogKeeper | null
  #connected = false
  #closed = false

  constructor(options: ConnectStackOptions) {
    this.#log = options.log
    this.#clock = options.clock
    this.#served = options.served
    this.#keeper = options.keeper ?? null
    this.#surroundings = {
      log: options.log,
      reliable: () => options.reliable || this.#own_edge,
      dialogs: this.#dialogs,
      waiting: (lost, work) => this.#waiting({ lost, limit: { ms: GIVE_UP_MS, outcome: lost } }, work),
      dialog: facts => this.#dialog(facts),
      handOver: authorizer => this.#handOver(authorizer),
    }
    this.#library.use((request, response) => this.#received(request, response))
    for (const method of METHODS) this.#library.use(method, (request, response) => this.#received(request, response))
    this.#library.on('connect', (error, contacts = '', version = '') => this.#linkUp(error, contacts, version))
    this.#library.on('error', (error: NodeJS.ErrnoException) => {
      // A reset after a refusal must not change the failure to `absent`.
      if (error.syscall === 'connect' || error.syscall === 'getaddrinfo') this.#failure = 'absent'
      this.#log.debug({ err: error }, 'link to the SIP server failed')
    })
    this.#library.on('close', () => this.#linkDown())
    this.#library.connect({
      host: options.host,
      port: options.port,
      secret: options.secret,
      reconnect: { retryMaxDelay: RETRY_MAX_DELAY_MS },
    })
    this.#pulse = new Pulse({
      wire: this.#library.app.client.wp,
      clock: options.clock,
      authenticated: () => this.#connected,
      lost: socket => {
        this.#log.error('the SIP server does not answer: closing the link and connecting again')
        socket.destroy()
      },
    })
  }

  get link(): LinkState {
    if (this.#pulse.silent) return 'silent'
    return this.#connected ? 'connected' : this.#failure
  }

  get connected(): boolean {
    return this.link === 'connected'
  }

  get missing_contacts(): readonly string[] {
    return this.#missing_contacts
  }

  get limits_silence(): boolean {
    return this.#own_edge
  }

  get hosts(): readonly string[] {
    return this.#hosts
  }

  get verifies_targets(): boolean {
    return this.#own_edge
  }

  onInvite(handler: (invite: InboundInvite) => void): void {
    this.#onInvite = handler
  }

  onRequest(handler: (request: InboundRequest) => void): void {
    this.#onRequest = handler
  }

  onLink(listener: (up: boolean) => void): () => void {
    this.#linkListeners.add(listener)
    return () => this.#linkListeners.delete(listener)
  }

  counts() {
    return { dialogs: this.#dialogs.size, transactions: this.#pending.size }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#pulse.stop()
    this.#library.app.client.wp.closing = true
    if (this.#connected) this.#library.disconnect()
    this.#linkDown()
  }

  invite(options: InviteOptions, progress: InviteProgress): OutboundInvite {
    let sent: LibraryRequest | null = null
    let cancelled: Headers | null = null
    let limit: Timer | null = null
    let giveUp = (): void => undefined
    let given_up = false
    let over = false
    const authorizer = options.auth ? new Authorizer(options.auth) : null
    const challenged = authorizer?.request()
    /** Early dialogs of forks with a reliable provisional response (RFC 3262). They end with the final response. */
    const early = new Set<string>()
    const cancelNow = (headers: Headers): void => {
      // The response to a CANCEL is ignored: the INVITE's final response decides.
      this.#guard(() => sent?.cancel({ headers: outgoing(headers, { initial: false }) }, () => undefined))
    }
    const result = this.#waiting<InviteResult>(
      { lost: () => ({ kind: 'failed', detail: new LinkLost().message, link_lost: true }) },
      settle => {
        giveUp = () => {
          given_up = true
          settle({ kind: 'failed', detail: SILENT, link_lost: false })
        }
        // The timeout bounds the sending of the INVITE, and the time after our CANCEL. The owner bounds the ringing.
        limit = this.#clock.after(GIVE_UP_MS, giveUp)
        const send = (wanted: Outbound): void =>
          this.#send(wanted, (error, request) => {
            if (!cancelled) limit?.cancel()
            if (error) return settle({ kind: 'failed', detail: error.message, link_lost: false })
            sent = request
            progress.sent?.({ call_id: request.get('call-id') ?? '', source: requestView(request).source })
            request.on('update', (update, answer) => deliver(this.#log, update, answer, progress.handler))
            request.on('response', (response, ack) => {
              const view = responseView(response)
              const { stackDialogId } = response
              if (response.status < 200) {
                if (stackDialogId && view.header('rseq') !== null) {
                  early.add(stackDialogId)
                  this.#dialogs.set(stackDialogId, (r, a) => deliver(this.#log, r, a, progress.handler))
                  this.#acknowledge(view, ack, progress.acknowledging)
                }
                return progress.provisional?.(view)
              }
              for (const id of early) this.#dialogs.delete(id)
              const { body = '' } = request
              const again =
                cancelled || given_up ? null : challenged?.answer(view, { method: 'INVITE', uri: options.uri, body })
              if (again) return send({ ...wanted, credentials: again, repeats: request })
              if (response.status >= 300 || !stackDialogId) {
                return settle({ kind: 'refused', response: view })
              }
              this.#acknowledge(view, ack, progress.acknowledging)
              const dialog = this.#dialog({
                id: stackDialogId,
                call_id: view.call_id,
                local_tag: tagOf(view.header('from') ?? ''),
                remote_tag: tagOf(view.header('to') ?? ''),
                remote_target: uriOf(view.header('contact')),
                handler: progress.handler,
                remote_seq: -1,
                authorizer,
              })
              if (given_up) void dialog.bye()
              else settle({ kind: 'answered', dialog, response: view })
            })
            if (cancelled || given_up) cancelNow(cancelled ?? {})
          })
        send({ ...options, method: 'INVITE', authorizer })
      },
    )
    void result.then(() => {
      over = true
      limit?.cancel()
    })
    return {
      result,
      cancel: (headers = {}) => {
        if (cancelled || over) return
        cancelled = headers
        limit?.cancel()
        limit = this.#clock.after(GIVE_UP_MS, giveUp)
        if (sent) cancelNow(headers)
      },
    }
  }

  request(options: RequestOptions): Promise<SipResponse> {
    return this.#transaction(options, options.auth ? new Authorizer(options.auth) : null)
  }

  async endLeft(dialog_id: string): Promise<boolean> {
    try {
      const { status } = await this.#transaction({ method: 'BYE', uri: '', stackDialogId: dialog_id }, null)
      return status !== 481
    } catch (error) {
      if (isUnknownDialog(error)) return false
      throw error
    }
  }

  #transaction(options: Outbound, authorizer: Authorizer | null): Promise<SipResponse> {
    const ms = options.method === 'INVITE' ? REINVITE_GIVE_UP_MS : GIVE_UP_MS
    return this.#waiting<SipResponse | Error>(
      { lost: () => new LinkLost(), limit: { ms, outcome: () => new RequestFailed(SILENT) } },
      settle => {
        const challenged = authorizer?.request()
        const { method } = options
        const send = (wanted: Outbound): void =>
          this.#send(wanted, (error, request) => {
            if (error) return settle(error)
            request.on('update', (update, answer) => this.#toDialog(update, answer))
            request.on('response', (response, ack) => {
              if (response.status < 200) return
              const view = responseView(response)
              if (method === 'INVITE' && response.status < 300) this.#acknowledge(view, ack, options.acknowledging)
              const again = challenged?.answer(view, { method, uri: request.uri, body: request.body ?? '' })
              if (again) send({ ...wanted, credentials: again, repeats: request })
              else settle(view)
            })
          })
        send({ ...options, authorizer })
      },
    ).then(outcome => {
      if (outcome instanceof Error) throw outcome
      return outcome
    })
  }

  #send(options: Outbound, callback: (error: Error | null, request: LibraryRequest) => void): void {
    const refuse = (error: Error): void => callback(error, undefined as never)
    if (!this.#connected) {
      refuse(new LinkLost())
      return
    }
    const { stackDialogId, repeats } = options
    try {
      this.#library.app.request(
        {
          method: options.method,
          headers: {
            ...outgoing({ ...options.headers, ...options.credentials }, { initial: !stackDialogId }),
            ...(repeats && !stackDialogId ? sameRequest(repeats) : {}),
            ...(stackDialogId || options.method === 'INVITE' ? this.#handOver(options.authorizer ?? null) : {}),
          },
          ...(stackDialogId ? { stackDialogId } : { uri: options.uri }),
          ...(options.body ? { body: options.body } : {}),
          ...(options.proxy ? { proxy: options.proxy } : {}),
        },
        (error, request) => {
          if (error) refuse(new RequestFailed(error.message))
          else callback(null, request)
        },
      )
    } catch (error) {
      refuse(new RequestFailed(error instanceof Error ? error.message : String(error)))
    }
  }

  #acknowledge(response: SipResponse, ack: Acknowledge, headers: Acknowledging | undefined): void {
    const own = outgoing(headers?.(response), { initial: false })
    this.#guard(() => ack({ headers: own }))
  }

  /** Another SIP server would send the header to the peer. */
  #handOver(authorizer: Authorizer | null): Record<string, string> {
    return authorizer && this.#own_edge ? { [CREDENTIALS_HEADER]: authorizer.forEdge() } : {}
  }

  #received(request: LibraryRequest, answer: LibraryAnswer): void {
    const tagged = tagOf(request.get('to') ?? '') !== ''
    if (request.stackDialogId && this.#dialogs.has(request.stackDialogId)) this.#inDialog(request, answer)
    else if (request.source !== 'network' || request.method === 'ACK') return
    else if (tagged) answerable(this.#log, request, answer).respond(481)
    else if (request.method === 'INVITE') this.#invited(request, answer)
    else this.#onRequest(answerable(this.#log, request, answer))
  }

  #invited(request: LibraryRequest, answer: LibraryAnswer): void {
    if (this.#surroundings.reliable() || !hasToken(request.get('require'), '100rel'))
      this.#onInvite(inboundInvite(this.#surroundings, request, answer))
    else answerable(this.#log, request, answer).respond(420, { headers: { Unsupported: '100rel' } })
  }

  /**
   * Requests that were read together with the confirmation of a dialog wait until the code that awaits the dialog has
   * it, also those of other dialogs: the called side may hang up as soon as the caller has its 200, and the call is
   * answered by then.
   */
  #inDialog(request: LibraryRequest, answer: LibraryAnswer): void {
    if (this.#opening) setImmediate(() => this.#toDialog(request, answer))
    else this.#toDialog(request, answer)
  }

  #toDialog(request: LibraryRequest, answer: LibraryAnswer): void {
    const handler = request.stackDialogId ? this.#dialogs.get(request.stackDialogId) : undefined
    if (handler) handler(request, answer)
    else if (request.method !== 'ACK') answerable(this.#log, request, answer).respond(481)
  }

  #dialog(facts: DialogFacts & { readonly authorizer: Authorizer | null }): Dialog {
    const { authorizer, ...known } = facts
    this.#opening = true
    setImmediate(() => {
      this.#opening = false
    })
    return openDialog(known, {
      log: this.#log,
      opened: take => {
        if (!this.#own_edge) this.#keeper?.opened(facts.id)
        this.#dialogs.set(facts.id, take)
      },
      closed: () => {
        this.#dialogs.delete(facts.id)
        this.#keeper?.closed(facts.id)
      },
      request: wanted => this.#transaction({ ...wanted, stackDialogId: facts.id }, authorizer),
    })
  }

  /** Returns a promise that always settles: by `work`, with `lost` when the link is lost, or at its limit. */
  #waiting<T>(
    end: { readonly lost: () => T; readonly limit?: { readonly ms: number; readonly outcome: () => T } },
    work: (settle: (value: T) => void) => void,
  ): Promise<T> {
    return new Promise(resolve => {
      const { lost, limit } = end
      const settle = (value: T): void => {
        timer?.cancel()
        this.#pending.delete(onLost)
        resolve(value)
      }
      const onLost = (): void => settle(lost())
      const timer = limit ? this.#clock.after(limit.ms, () => settle(limit.outcome())) : null
      this.#pending.add(onLost)
      work(settle)
    })
  }

  #linkUp(error: Error | null, contacts: string, version: string): void {
    if (error) {
      this.#failure = 'refused'
      if (!this.#refused) this.#log.error('the SIP server rejects our secret; further attempts are not logged')
      this.#refused = true
      return
    }
    if (this.#closed) return
    this.#refused = false
    this.#failure = 'absent'
    this.#own_edge = OWN_EDGE.test(version)
    this.#hosts = listeningHosts(contacts)
    this.#missing_contacts = this.#own_edge ? [] : missingContacts(contacts, this.#served)
    if (this.#missing_contacts.length > 0)
      this.#log.error(
        { missing: this.#missing_contacts, contacts },
        'the SIP server does not listen where peers call us',
      )
    this.#connected = true
    for (const listener of this.#linkListeners) listener(true)
  }

  #linkDown(): void {
    const was = this.#connected
    this.#connected = false
    this.#dialogs.clear()
    this.#keeper?.linkLost()
    for (const lost of [...this.#pending]) lost()
    if (was) for (const listener of this.#linkListeners) listener(false)
  }

  #guard(work: () => void): void {
    try {
      work()
    } catch (error) {
      // The library asserts that it has a socket. Without one the link is lost, and the pending requests settle.
      this.#log.debug({ err: error }, 'the link to the SIP server is gone')
    }
  }
}

/** A challenged request is sent again as the same request: same Call-ID and From, the next CSeq (RFC 3261 §22.2). */
const sameRequest = (request: LibraryRequest): Record<string, string> => ({
  From: request.get('from') ?? '',
  'Call-ID': request.get('call-id') ?? '',
  CSeq: `${(parseCSeq(request.get('cseq') ?? '')?.seq ?? 0) + 1} ${request.method}`,
})
