import { boundedMap } from '../../../core/domain/bounded-map.ts'
import type { ControlClient } from '../control/client.ts'
import type { CommandMessage } from '../control/command.ts'
import { plainReply, proxyResponseReply } from '../control/wire.ts'
import { listenerUri } from '../dialog/dialog.ts'
import { newTag } from '../sip/ids.ts'
import { Draft, draftResponse, type SipMessage } from '../sip/message.ts'
import { parseNameAddress, parseUri, splitList } from '../sip/uri.ts'
import type { OutgoingRequest, SentRequest } from '../stack.ts'
import type { WheelTimer } from '../timers.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { Listener, Received } from '../transport/types.ts'
import type { AgentCore } from './core.ts'

// The `proxy` command (drachtio-control-protocol.md §16.1) forwards a request to targets instead of answering it.

interface ProxyPlan {
  readonly remain_in_dialog: boolean
  readonly full_response: boolean
  readonly follow_redirects: boolean
  readonly simultaneous: boolean
  readonly provisional_ms: number | undefined
  readonly final_ms: number | undefined
  readonly targets: readonly string[]
  /** Headers to add. */
  readonly headers: CommandMessage['headers']
}

const MAX_TARGETS = 20
const MAX_DIALOGS = 20_000

/** Parses the fields after the transaction id of the command. */
export function readPlan(fields: readonly string[], message: CommandMessage): ProxyPlan {
  const [remain, full, redirects, order, provisional, final, ...targets] = fields
  return {
    remain_in_dialog: remain === 'remainInDialog',
    full_response: full === 'fullResponse',
    follow_redirects: redirects === 'followRedirects',
    simultaneous: order === 'simultaneous',
    provisional_ms: duration(provisional ?? ''),
    final_ms: duration(final ?? ''),
    targets: targets.filter(target => target !== '').slice(0, MAX_TARGETS),
    headers: message.headers,
  }
}

function duration(text: string): number | undefined {
  const found = /^(\d{1,7})(ms|s)$/.exec(text)
  if (!found) return undefined
  return Number(found[1]) * (found[2] === 's' ? 1000 : 1)
}

type Branch = {
  readonly target: string
  outgoing: OutgoingRequest | undefined
  provisional: boolean
  done: boolean
  timer: WheelTimer | undefined
  cancelled: boolean
}

export class Proxies {
  readonly #core: AgentCore
  readonly #runs = new Map<ServerTransaction, ProxyRun>()
  /** The Call-IDs of dialogs whose later requests are relayed. */
  readonly #dialogs = boundedMap<string, true>(MAX_DIALOGS)

  constructor(core: AgentCore) {
    this.#core = core
  }

  /** Handles an application's `proxy` command. */
  command(app: ControlClient, request_id: string, transaction_id: string, plan: ProxyPlan): void {
    const pending = this.#core.servers.get(transaction_id)
    if (!pending || pending.transaction.answered) {
      app.send(plainReply(request_id, 'NOK', `Unknown transaction id: ${transaction_id}`))
      return
    }
    pending.deadline?.cancel()
    this.#core.servers.delete(pending.id)
    if (!plan.full_response) app.send(plainReply(request_id, 'OK', 'done'))
    this.start(pending.transaction, plan, plan.full_response ? { app, request_id } : undefined)
  }

  start(
    transaction: ServerTransaction,
    plan: ProxyPlan,
    report: { app: ControlClient; request_id: string } | undefined,
  ): void {
    const run = new ProxyRun(this.#core, transaction, plan, report, () => this.#runs.delete(transaction))
    this.#runs.set(transaction, run)
    if (plan.remain_in_dialog) this.#dialogs.set(transaction.request.call_id, true)
    run.start()
  }

  /** Cancels a request that is being proxied. Returns false when it is not. */
  cancel(invite: ServerTransaction): boolean {
    const run = this.#runs.get(invite)
    if (!run || invite.answered) return false
    invite.respond(draftResponse(invite.request, 487, newTag()), 487)
    run.cancel()
    return true
  }

  /** Relays a request in a proxied dialog. Returns false when it belongs to none. */
  relay(message: SipMessage, _received: Received, transaction: ServerTransaction | undefined): boolean {
    const routes = message.list('route')
    const first = parseUri(parseNameAddress(routes[0] ?? '')?.uri ?? '')
    if (!first || !this.#dialogs.get(message.call_id)) return false
    if (!this.#core.stack.transport.isOwn(first.host, first.port ?? 5060)) return false
    if (message.max_forwards === 0) {
      transaction?.respond(draftResponse(message, 483, newTag()), 483)
      return true
    }
    const rest = routes.slice(1)
    const hop = parseNameAddress(rest[0] ?? '')?.uri ?? message.uri
    if (message.method === 'BYE') this.#dialogs.delete(message.call_id)
    const build = (): Draft => forward(message, message.uri, [], rest)
    this.#core.stack.request(message.method, { uri: hop }, build, {
      response: response => {
        if (response.status === 100 || !transaction) return
        const text = backward(response)
        if (transaction.answered) transaction.repeat(text)
        else transaction.respondText(text, response.status)
      },
      timeout: () => transaction?.respond(draftResponse(message, 408, newTag()), 408),
      unreachable: () => transaction?.respond(draftResponse(message, 503, newTag()), 503),
    })
    return true
  }
}

class ProxyRun {
  readonly #core: AgentCore
  readonly #transaction: ServerTransaction
  readonly #plan: ProxyPlan
  readonly #report: { app: ControlClient; request_id: string } | undefined
  readonly #ended: () => void
  readonly #waiting: string[]
  readonly #branches: Branch[] = []
  #tried = 0
  #best: { status: number; text: string } | undefined
  #finished = false

  constructor(
    core: AgentCore,
    transaction: ServerTransaction,
    plan: ProxyPlan,
    report: { app: ControlClient; request_id: string } | undefined,
    ended: () => void,
  ) {
    this.#core = core
    this.#transaction = transaction
    this.#plan = plan
    this.#report = report
    this.#ended = ended
    this.#waiting = [...plan.targets]
  }

  start(): void {
    const { request } = this.#transaction
    if (request.max_forwards === 0) {
      this.#transaction.respond(draftResponse(request, 483, newTag()), 483)
      this.#end()
      return
    }
    if (this.#plan.simultaneous) while (this.#waiting.length > 0) this.#next()
    else this.#next()
    if (this.#branches.length === 0) this.#exhausted()
  }

  cancel(): void {
    this.#waiting.length = 0
    for (const branch of this.#branches) this.#cancelBranch(branch)
  }

  #next(): boolean {
    const target = this.#waiting.shift()
    if (target === undefined || ++this.#tried > MAX_TARGETS) return false
    const branch: Branch = {
      target,
      outgoing: undefined,
      provisional: false,
      done: false,
      timer: undefined,
      cancelled: false,
    }
    this.#branches.push(branch)
    const { request } = this.#transaction
    const { wheel } = this.#core.stack.transactions
    const own = parseUri(request.uri)
    const ours = own !== undefined && this.#core.stack.transport.isOwn(own.host, own.port ?? 5060)
    const build = (listener: Listener): Draft => {
      const draft = forward(request, ours ? target : request.uri, this.#plan.headers, request.list('route'))
      if (this.#plan.remain_in_dialog) {
        const name = request.method === 'REGISTER' ? 'Path' : 'Record-Route'
        draft.headers.unshift(
          new Draft('').add(
            name,
            `<${listenerUri(listener, undefined, own?.scheme === 'sips' && listener.protocol === 'tls')};lr>`,
          ).headers[0] as (typeof draft.headers)[0],
        )
      }
      return draft
    }
    if (this.#plan.provisional_ms !== undefined && request.method === 'INVITE') {
      branch.timer = wheel.after(this.#plan.provisional_ms, () => this.#tooSlow(branch))
    }
    branch.outgoing = this.#core.stack.request(request.method, { uri: target }, build, {
      response: (response, from, sent) => this.#response(branch, response, from, sent),
      timeout: () => this.#failed(branch, 408),
      unreachable: () => this.#failed(branch, 503),
    })
    return true
  }

  #response(branch: Branch, response: SipMessage, from: { host: string; port: number }, sent: SentRequest): void {
    const { status } = response
    if (status < 200) {
      this.#provisional(branch)
      if (status > 100 && !this.#transaction.answered) this.#transaction.respondText(backward(response), status)
      return
    }
    const text = backward(response)
    if (status < 300) {
      // A retransmitted or further 2xx to an INVITE goes to the caller too (RFC 3261 §16.7).
      if (this.#transaction.answered) {
        if (this.#transaction.state === 'accepted') this.#transaction.repeat(text)
        return
      }
      branch.done = true
      branch.timer?.cancel()
      this.#transaction.respondText(text, status)
      this.#tell(response, from, sent)
      this.#waiting.length = 0
      for (const other of this.#branches) if (other !== branch) this.#cancelBranch(other)
      this.#end()
      return
    }
    if (branch.done) return
    branch.done = true
    branch.timer?.cancel()
    this.#tell(response, from, sent)
    if (status < 400 && this.#plan.follow_redirects) {
      for (const contact of response.list('contact')) {
        const uri = parseNameAddress(contact)?.uri
        if (uri !== undefined) this.#waiting.push(uri)
      }
    } else this.#keepBest(status, text)
    if (status >= 600) {
      this.#waiting.length = 0
      for (const other of this.#branches) this.#cancelBranch(other)
    }
    this.#continue()
  }

  #provisional(branch: Branch): void {
    const { wheel } = this.#core.stack.transactions
    if (branch.provisional) return
    branch.provisional = true
    branch.timer?.cancel()
    if (branch.cancelled) this.#sendCancel(branch)
    else if (this.#plan.final_ms !== undefined)
      branch.timer = wheel.after(this.#plan.final_ms, () => this.#tooSlow(branch))
  }

  #tooSlow(branch: Branch): void {
    if (branch.done) return
    this.#cancelBranch(branch)
    this.#failed(branch, 408)
  }

  #failed(branch: Branch, status: number): void {
    if (branch.done) return
    branch.done = true
    branch.timer?.cancel()
    this.#keepBest(status, draftResponse(this.#transaction.request, status, newTag()).serialize())
    this.#continue()
  }

  #continue(): void {
    if (this.#finished) return
    if (this.#next()) return
    if (this.#branches.every(branch => branch.done)) this.#exhausted()
  }

  #exhausted(): void {
    const { request } = this.#transaction
    if (!this.#transaction.answered) {
      if (this.#best) this.#transaction.respondText(this.#best.text, this.#best.status)
      else this.#transaction.respond(draftResponse(request, 480, newTag()), 480)
    }
    this.#end()
  }

  // RFC 3261 §16.7 step 6: prefers a 6xx, then the lowest class. Within 4xx a 401 or 407 wins, because the caller can
  // act on it.
  #keepBest(status: number, text: string): void {
    const rank = (code: number): number => (code >= 600 ? 0 : code === 401 || code === 407 ? 399 : code)
    if (!this.#best || rank(status) < rank(this.#best.status)) this.#best = { status, text }
  }

  #cancelBranch(branch: Branch): void {
    if (branch.done || branch.cancelled || this.#transaction.method !== 'INVITE') return
    branch.cancelled = true
    branch.outgoing?.settle()
    if (branch.provisional) this.#sendCancel(branch)
  }

  #sendCancel(branch: Branch): void {
    const sent = branch.outgoing?.sent
    if (sent) this.#core.stack.cancel(sent)
  }

  #tell(response: SipMessage, from: { host: string; port: number }, sent: SentRequest): void {
    if (!this.#report) return
    const { protocol } = sent.destination
    const wire = { bytes: response.bytes, protocol, host: from.host, port: from.port, at: this.#core.clock.now() }
    this.#report.app.send(proxyResponseReply(this.#report.request_id, wire, response.raw))
  }

  #end(): void {
    if (this.#finished) return
    this.#finished = true
    this.#report?.app.send(plainReply(this.#report.request_id, 'OK', 'done'))
    this.#ended()
  }
}

// Drafts the forwarded request (RFC 3261 §16.6): one hop less, the given routes and the added headers.
function forward(request: SipMessage, uri: string, added: CommandMessage['headers'], routes: readonly string[]): Draft {
  const draft = Draft.request(request.method, uri)
  for (const h of request.headers) {
    if (h.kind.id === 'max-forwards' || h.kind.id === 'route' || h.kind.id === 'content-length') continue
    if (h.kind.id === 'via') for (const value of splitList(h.value)) draft.add('Via', value)
    else draft.add(h.kind.name, h.value)
  }
  for (const route of routes) draft.add('Route', route)
  // RFC 3261 §16.6 step 3: a request without Max-Forwards gets 70.
  draft.add('Max-Forwards', String(Math.min(request.max_forwards ?? 71, 71) - 1))
  for (const h of added) {
    if (ADDED_NEVER.has(h.id)) continue
    draft.set(h.name, h.value)
  }
  draft.body = request.body
  return draft
}

const ADDED_NEVER = new Set([
  'via',
  'route',
  'record-route',
  'from',
  'to',
  'call-id',
  'cseq',
  'content-length',
  'max-forwards',
])

// Serializes the response for the caller, without our Via (RFC 3261 §16.7 step 3).
function backward(response: SipMessage): string {
  const draft = Draft.response(response.status, response.reason)
  let first = true
  for (const h of response.headers) {
    if (h.kind.id === 'content-length') continue
    if (h.kind.id !== 'via') {
      draft.add(h.kind.name, h.value)
      continue
    }
    for (const value of splitList(h.value)) {
      if (!first) draft.add('Via', value)
      first = false
    }
  }
  draft.body = response.body
  return draft.serialize()
}
