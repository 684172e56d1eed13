import type { Log } from '../../core/runtime/log.ts'
import { createLibrary, type Library, type LibraryAnswer, type LibraryRequest } from './library.ts'
import {
  challengeHeaders,
  contactUri,
  outgoing,
  requestView,
  responseView,
  sendableStatus,
  statusText,
  tagOf,
} from './messages.ts'
import {
  Cancelled,
  type Dialog,
  type DialogHandler,
  type Headers,
  type InboundInvite,
  type InboundRequest,
  type InviteOptions,
  type InviteProgress,
  type InviteResult,
  LinkLost,
  type OutboundInvite,
  RequestFailed,
  type RequestOptions,
  type ResponseOptions,
  type SipResponse,
  type SipStack,
} from './types.ts'

export interface ConnectStackOptions {
  readonly host: string
  readonly port: number
  readonly secret: string
  readonly log: Log
}

/** What we take from outside a dialog; whatever else comes is answered by the SIP server. */
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
const PING_INTERVAL_MS = 15_000

/** Connects in the background and for good: after a loss it connects again by itself. */
export function connectStack(options: ConnectStackOptions): SipStack {
  return new Stack(options)
}

class Stack implements SipStack {
  readonly #library: Library = createLibrary()
  readonly #log: Log
  readonly #dialogs = new Map<string, (request: LibraryRequest, response: LibraryAnswer) => void>()
  /** What waits for the SIP server; told when the link is lost, because the library would never call back. */
  readonly #pending = new Set<() => void>()
  readonly #linkListeners = new Set<(up: boolean) => void>()
  #onInvite: (invite: InboundInvite) => void = invite => invite.refuse(503)
  #onRequest: (request: InboundRequest) => void = request => request.respond(503)
  #connected = false
  #closed = false

  constructor(options: ConnectStackOptions) {
    this.#log = options.log
    this.#library.use((request, response) => this.#received(request, response))
    for (const method of METHODS) this.#library.use(method, (request, response) => this.#received(request, response))
    this.#library.on('connect', error => this.#linkUp(error))
    this.#library.on('error', error => this.#log.debug({ err: error }, 'link to the SIP server failed'))
    this.#library.on('close', () => this.#linkDown())
    this.#library.connect({
      host: options.host,
      port: options.port,
      secret: options.secret,
      enablePing: true,
      pingInterval: PING_INTERVAL_MS,
      reconnect: { retryMaxDelay: RETRY_MAX_DELAY_MS },
    })
  }

  get connected(): boolean {
    return this.#connected
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
    if (this.#connected) this.#library.disconnect()
    this.#linkDown()
  }

  invite(options: InviteOptions, progress: InviteProgress): OutboundInvite {
    let sent: LibraryRequest | null = null
    let cancelled: Headers | null = null
    const cancelNow = (headers: Headers): void => {
      // The answer to a CANCEL says nothing: the INVITE's own final answer does.
      this.#guard(() => sent?.cancel({ headers: outgoing(headers, { initial: false }) }, () => undefined))
    }
    const result = this.#waiting<InviteResult>(
      { kind: 'failed', detail: new LinkLost().message, link_lost: true },
      settle => {
        this.#send({ ...options, method: 'INVITE' }, true, (error, request) => {
          if (error) return settle({ kind: 'failed', detail: error.message, link_lost: false })
          sent = request
          progress.sent?.({ call_id: request.get('call-id') ?? '', source: requestView(request).source })
          request.on('update', (update, answer) => this.#deliver(update, answer, progress.handler))
          request.on('response', (response, ack) => {
            const view = responseView(response)
            const { stackDialogId } = response
            if (response.status < 200) {
              if (stackDialogId && view.header('rseq') !== null) {
                this.#dialogs.set(stackDialogId, (r, a) => this.#deliver(r, a, progress.handler))
                this.#guard(() => ack())
              }
              return progress.provisional?.(view)
            }
            if (response.status >= 300 || !stackDialogId) {
              if (stackDialogId) this.#dialogs.delete(stackDialogId)
              return settle({ kind: 'refused', response: view })
            }
            this.#guard(() => ack())
            const dialog = this.#dialog({
              id: stackDialogId,
              call_id: view.call_id,
              local_tag: tagOf(view.header('from')),
              remote_tag: tagOf(view.header('to')),
              remote_target: contactUri(view.header('contact')),
              handler: progress.handler,
              ...(options.auth ? { auth: options.auth } : {}),
            })
            settle({ kind: 'answered', dialog, response: view })
          })
          if (cancelled) cancelNow(cancelled)
        })
      },
    )
    return {
      result,
      cancel: (headers = {}) => {
        if (cancelled) return
        cancelled = headers
        if (sent) cancelNow(headers)
      },
    }
  }

  request(options: RequestOptions): Promise<SipResponse> {
    return this.#transaction({ ...options }, true)
  }

  #transaction(options: RequestOptions & { stackDialogId?: string }, initial: boolean): Promise<SipResponse> {
    return this.#waiting<SipResponse | Error>(new LinkLost(), settle => {
      this.#send(options, initial, (error, request) => {
        if (error) return settle(error)
        request.on('update', (update, answer) => this.#toDialog(update, answer))
        request.on('response', (response, ack) => {
          if (response.status < 200) return
          if (options.method === 'INVITE' && response.status < 300) this.#guard(() => ack())
          settle(responseView(response))
        })
      })
    }).then(outcome => {
      if (outcome instanceof Error) throw outcome
      return outcome
    })
  }

  #send(
    options: RequestOptions & { stackDialogId?: string },
    initial: boolean,
    callback: (error: Error | null, request: LibraryRequest) => void,
  ): void {
    const refuse = (error: Error): void => callback(error, undefined as never)
    if (!this.#connected) {
      refuse(new LinkLost())
      return
    }
    try {
      this.#library.app.request(
        {
          method: options.method,
          headers: outgoing(options.headers, { initial }),
          ...(options.stackDialogId && !options.auth ? {} : { uri: options.uri }),
          ...(options.body ? { body: options.body } : {}),
          ...(options.proxy ? { proxy: options.proxy } : {}),
          ...(options.auth ? { auth: { ...options.auth } } : {}),
          ...(options.stackDialogId ? { stackDialogId: options.stackDialogId } : {}),
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

  #received(request: LibraryRequest, answer: LibraryAnswer): void {
    const tagged = tagOf(request.get('to') ?? null) !== ''
    if (request.stackDialogId && this.#dialogs.has(request.stackDialogId)) this.#toDialog(request, answer)
    else if (request.source !== 'network' || request.method === 'ACK') return
    else if (tagged) this.#answerable(request, answer).respond(481)
    else if (request.method === 'INVITE') this.#onInvite(this.#inbound(request, answer))
    else this.#onRequest(this.#answerable(request, answer))
  }

  #toDialog(request: LibraryRequest, answer: LibraryAnswer): void {
    const handler = request.stackDialogId ? this.#dialogs.get(request.stackDialogId) : undefined
    if (handler) handler(request, answer)
    else if (request.method !== 'ACK') this.#answerable(request, answer).respond(481)
  }

  #deliver(request: LibraryRequest, answer: LibraryAnswer, handler: DialogHandler): void {
    const unsolicited = request.source !== 'network'
    const reason = request.get('reason')
    handler(this.#answerable(request, answer), { unsolicited, reason: reason ?? null })
  }

  #answerable(request: LibraryRequest, answer: LibraryAnswer): InboundRequest {
    return {
      ...requestView(request),
      respond: (status, options = {}) => {
        if (request.method === 'ACK' || request.source !== 'network') return
        this.#respond(request, answer, status, options, error => {
          if (error) this.#log.debug({ detail: String(error), method: request.method, status }, 'answer was not sent')
        })
      },
    }
  }

  #respond(
    request: LibraryRequest,
    answer: LibraryAnswer,
    status: number,
    options: ResponseOptions,
    callback: (error: unknown, dialog_id: string | undefined, to: string | null) => void,
    acknowledged?: (request: LibraryRequest) => void,
  ): void {
    const code = sendableStatus(status)
    try {
      answer.send(
        code,
        (options.reason ?? statusText(code)).replace(/[\r\n\0]+/g, ' '),
        {
          headers: { ...outgoing(options.headers, { initial: false }), ...challengeHeaders(options.challenges ?? []) },
          ...(options.body ? { body: options.body } : {}),
        },
        (error, sent) => callback(error ?? null, answer.stackDialogId, error ? null : (sent?.get('to') ?? null)),
        acknowledged,
      )
    } catch (error) {
      this.#log.error({ err: error, method: request.method, status }, 'could not answer')
      callback(error, undefined, null)
    }
  }

  #inbound(request: LibraryRequest, answer: LibraryAnswer): InboundInvite {
    const view = requestView(request)
    let cancelled: Headers | null = null
    let early: DialogHandler = incoming => incoming.respond(incoming.method === 'PRACK' ? 200 : 500)
    const cancelListeners = new Set<(headers: Headers) => void>()
    const pracks = new Set<() => void>()
    request.on('cancel', cancel => {
      cancelled = cancel.headers
      for (const listener of cancelListeners) listener(cancel.headers)
    })
    request.on('update', (update, updateAnswer) => this.#deliver(update, updateAnswer, early))
    const earlyDialog = (id: string | undefined): void => {
      if (!id || this.#dialogs.has(id)) return
      this.#dialogs.set(id, (r, a) => {
        if (r.method === 'PRACK') {
          for (const done of pracks) done()
          pracks.clear()
        }
        this.#deliver(r, a, early)
      })
    }
    let early_id: string | undefined
    return {
      ...view,
      progress: (status, options = {}) =>
        this.#waiting<void>(undefined, settle => {
          if (cancelled) return settle()
          const headers = options.reliable ? { ...options.headers, Require: '100rel' } : options.headers
          const answerOptions = { ...options, ...(headers ? { headers } : {}) }
          this.#respond(request, answer, status, answerOptions, (error, dialog_id) => {
            early_id = dialog_id || early_id
            earlyDialog(dialog_id)
            if (error || !options.reliable) settle()
            else pracks.add(settle)
          })
        }),
      refuse: (status, options = {}) => {
        if (early_id) this.#dialogs.delete(early_id)
        if (cancelled) return
        this.#respond(request, answer, status, options, error => {
          if (error) this.#log.debug({ detail: String(error), status }, 'refusal was not sent')
        })
      },
      accept: (options, handler) =>
        this.#waiting<Dialog | Error>(new LinkLost(), settle => {
          if (cancelled) return settle(new Cancelled())
          this.#respond(request, answer, 200, options, (error, dialog_id, to) => {
            if (error || !dialog_id) return settle(cancelled ? new Cancelled() : new RequestFailed(String(error)))
            settle(
              this.#dialog({
                id: dialog_id,
                call_id: view.call_id,
                local_tag: tagOf(to),
                remote_tag: tagOf(view.header('from')),
                remote_target: contactUri(view.header('contact')),
                handler,
              }),
            )
          })
        }).then(outcome => {
          if (outcome instanceof Error) throw outcome
          return outcome
        }),
      onCancel: listener => {
        if (cancelled) listener(cancelled)
        cancelListeners.add(listener)
      },
      onEarly: handler => {
        early = handler
      },
    }
  }

  #dialog(
    facts: Omit<Dialog, 'request' | 'bye' | 'ended'> & { handler: DialogHandler; auth?: RequestOptions['auth'] },
  ) {
    const { handler, auth, ...identity } = facts
    let ended = false
    const deliver = (request: LibraryRequest, answer: LibraryAnswer): void => {
      if (request.method === 'BYE') {
        // One that crosses ours: the peer is told that it is over, nobody else needs to hear it (RFC 5407 §3.2.1).
        if (ended) {
          this.#answerable(request, answer).respond(200)
          return
        }
        ended = true
        this.#dialogs.delete(facts.id)
      }
      this.#deliver(request, answer, handler)
    }
    // What came in the same read as the answer waits until whoever awaits the dialog has got it.
    let given = false
    setImmediate(() => {
      given = true
    })
    this.#dialogs.set(facts.id, (request, answer) => {
      if (given) deliver(request, answer)
      else setImmediate(() => deliver(request, answer))
    })
    const request: Dialog['request'] = (method, options = {}) =>
      this.#transaction(
        {
          method,
          uri: facts.remote_target,
          stackDialogId: facts.id,
          ...(options.headers ? { headers: options.headers } : {}),
          ...(options.body ? { body: options.body } : {}),
          ...(auth ? { auth } : {}),
        },
        false,
      ).catch(error => {
        if (error instanceof RequestFailed && /unable to find dialog/i.test(error.message)) return gone(facts.call_id)
        throw error
      })
    const dialog: Dialog = {
      ...identity,
      request,
      bye: async headers => {
        if (ended) return
        ended = true
        try {
          await request('BYE', headers ? { headers } : {})
        } catch (error) {
          this.#log.debug({ detail: String(error), sip_call_id: facts.call_id }, 'BYE was not answered')
        } finally {
          this.#dialogs.delete(facts.id)
        }
      },
      get ended() {
        return ended
      },
    }
    return dialog
  }

  /** A promise that is settled with `lost` when the link goes before `work` has settled it. */
  #waiting<T>(lost: T, work: (settle: (value: T) => void) => void): Promise<T> {
    return new Promise(resolve => {
      const settle = (value: T): void => {
        this.#pending.delete(onLost)
        resolve(value)
      }
      const onLost = (): void => settle(lost)
      this.#pending.add(onLost)
      work(settle)
    })
  }

  #linkUp(error: Error | null): void {
    if (error) {
      this.#log.error({ err: error }, 'the SIP server does not accept our secret')
      return
    }
    if (this.#closed) return
    this.#connected = true
    for (const listener of this.#linkListeners) listener(true)
  }

  #linkDown(): void {
    const was = this.#connected
    this.#connected = false
    this.#dialogs.clear()
    for (const lost of [...this.#pending]) lost()
    if (was) for (const listener of this.#linkListeners) listener(false)
  }

  #guard(work: () => void): void {
    try {
      work()
    } catch (error) {
      // The library asserts that its socket is there; when it is not, the link is lost and everything waiting is told.
      this.#log.debug({ err: error }, 'the link to the SIP server is gone')
    }
  }
}

const gone = (call_id: string): SipResponse => ({
  status: 481,
  reason: statusText(481),
  call_id,
  header: () => null,
  headers: {},
  body: '',
  source: { address: '', port: 0, transport: 'udp' },
})
