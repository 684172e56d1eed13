import { isIP } from 'node:net'
import { uriHost } from '../../../core/domain/identity/address.ts'
import { Draft, type SipMessage } from '../sip/message.ts'
import { inOwnMemory } from '../sip/own-memory.ts'
import { parseNameAddress, parseUri, uriIn } from '../sip/uri.ts'
import type { StreamConnection } from '../transport/connection.ts'
import type { Address, Listener, Protocol, Received, TransportDestination } from '../transport/types.ts'

// Dialog state (RFC 3261 §12): identifiers, sequence numbers, route set and target. A dialog drafts requests from them
// but sends nothing.

/**
 * Returns the Contact or From address of a listening point, such as `<sip:bob@192.0.2.1:5060;transport=tcp>`. `secure`:
 * with the scheme SIPS.
 */
export function listenerAddress(listener: Listener, user?: string, secure = false): string {
  return `<${listenerUri(listener, user, secure)}>`
}

/**
 * Returns our Contact in a dialog. Its scheme is SIPS only if one of the URIs that the request named is (RFC 3261
 * §8.1.1.8): other peers need not be able to reach a SIPS URI.
 */
export function contactFor(listener: Listener, named: readonly (string | undefined)[]): string {
  const secure = listener.protocol === 'tls' && named.some(value => parseUri(uriIn(value ?? ''))?.scheme === 'sips')
  return listenerAddress(listener, undefined, secure)
}

/** Returns our Contact in an answer. The request-URI and the first Record-Route, else the peer's Contact, decide. */
export const contactForAnswer = (listener: Listener, request: SipMessage): string =>
  contactFor(
    listener,
    // No other listening point can have a SIPS Contact, and reading addresses takes longer than the rest of an answer.
    listener.protocol === 'tls' ? [request.uri, request.list('record-route')[0] ?? request.contact?.uri] : [],
  )

/** Returns `sip:user@host:port` with the transport parameter of the listening point. */
function listenerUri(listener: Listener, user?: string, secure = false): string {
  const scheme = secure ? 'sips' : 'sip'
  const who = user === undefined || user === '' ? '' : `${user}@`
  const transport = listener.protocol === 'udp' || secure ? '' : `;transport=${listener.protocol}`
  return `${scheme}:${who}${uriHost(listener.advertised_host)}:${listener.port}${transport}`
}

/** Returns the Via value of a request that a listening point sends (RFC 3261 §18.1.1, RFC 3581 §3). */
export function viaFor(listener: Listener, branch: string): string {
  const sent_by = `${uriHost(listener.advertised_host)}:${listener.port}`
  const rport = listener.protocol === 'udp' ? ';rport' : ''
  return `SIP/2.0/${listener.protocol.toUpperCase()} ${sent_by}${rport};branch=${branch}`
}

/** How the peer's TLS certificate was verified. */
type Proved = Pick<TransportDestination, 'tls' | 'server_name'>

export class SipDialog {
  readonly call_id: string
  readonly local_tag: string
  remote_tag: string
  /** The From value of our requests, with our tag. */
  readonly local: string
  /** The To value of our requests, with the peer's tag. */
  remote: string
  local_seq: number
  /** The highest CSeq number received; -1 before the first. */
  remote_seq: number
  /** The URI of the peer's Contact. */
  target: string
  /** The Route values, in the order in which we send them. */
  routes: readonly string[]
  /** Our Contact value. */
  contact: string
  /** The protocol and the connection over which the peer called us or answered. */
  protocol: Protocol
  connection: StreamConnection | undefined
  /** The source of the peer's packets when its Contact does not match it (NAT). In-dialog requests go there. */
  source: Address | undefined
  /** The address with which the dialog was established. */
  peer: TransportDestination | undefined

  private constructor(facts: {
    call_id: string
    local_tag: string
    remote_tag: string
    local: string
    remote: string
    local_seq: number
    remote_seq: number
    target: string
    routes: readonly string[]
    contact: string
    protocol: Protocol
    connection: StreamConnection | undefined
    source: Address | undefined
    peer: TransportDestination | undefined
  }) {
    this.call_id = facts.call_id
    this.local_tag = facts.local_tag
    this.remote_tag = facts.remote_tag
    this.local = facts.local
    this.remote = facts.remote
    this.local_seq = facts.local_seq
    this.remote_seq = facts.remote_seq
    this.target = facts.target
    this.routes = facts.routes
    this.contact = facts.contact
    this.protocol = facts.protocol
    this.connection = facts.connection
    this.source = facts.source
    this.peer = facts.peer
  }

  /** Creates the dialog of a request that we answer (RFC 3261 §12.1.1). */
  static asServer(request: SipMessage, received: Received, local_tag: string): SipDialog {
    const own = ownFrom(request)
    const routes = request.list('record-route').map(route => own(asRoute(route)))
    const target = own(request.contact?.uri ?? sourceUri(received))
    const to = request.get('to') ?? ''
    return new SipDialog({
      call_id: own(request.call_id),
      local_tag: local_tag,
      remote_tag: own(request.from_tag),
      local: own(request.to_tag === '' ? `${to};tag=${local_tag}` : to),
      remote: own(request.get('from') ?? ''),
      local_seq: request.cseq.seq,
      remote_seq: request.cseq.seq,
      target,
      routes,
      contact: contactForAnswer(received.listener, request),
      protocol: received.protocol,
      connection: received.connection,
      source: routes.length === 0 ? natSource(target, received.source, received.protocol === 'udp') : undefined,
      peer: { protocol: received.protocol, host: received.source.host, port: received.source.port },
    })
  }

  /** Creates the dialog of a request that we sent (RFC 3261 §12.1.2), before any response. */
  static asClient(facts: {
    call_id: string
    local_tag: string
    local: string
    remote: string
    seq: number
    contact: string
    uri: string
  }): SipDialog {
    return new SipDialog({
      call_id: facts.call_id,
      local_tag: facts.local_tag,
      remote_tag: '',
      local: facts.local,
      remote: facts.remote,
      local_seq: facts.seq,
      remote_seq: -1,
      target: facts.uri,
      routes: [],
      contact: facts.contact,
      protocol: 'udp',
      connection: undefined,
      source: undefined,
      peer: undefined,
    })
  }

  /** Returns the dialog as it is now, for requests that other forks must not redirect. */
  copy(): SipDialog {
    return new SipDialog(this)
  }

  /** Takes the tag, target and route set of a response that makes the dialog early or confirmed. */
  establish(
    response: SipMessage,
    from: Address,
    via: { protocol: Protocol; connection: StreamConnection | undefined } & Proved,
  ): void {
    // Each fork has its own CSeq numbers.
    if (this.remote_tag !== response.to_tag) this.remote_seq = -1
    const own = ownFrom(response)
    this.remote_tag = own(response.to_tag)
    this.remote = own(response.get('to') ?? this.remote)
    this.routes = response
      .list('record-route')
      .map(route => own(asRoute(route)))
      .reverse()
    this.protocol = via.protocol
    this.connection = via.connection
    const { protocol, tls, server_name } = via
    this.peer = { protocol, host: from.host, port: from.port, tls, server_name }
    const target = response.contact?.uri
    if (target === undefined || !parseUri(target)) return
    this.target = own(target)
    this.source = this.routes.length === 0 ? natSource(target, from, false) : undefined
  }

  /** Refreshes the target from a request or response of the peer (RFC 3261 §12.2.1.2, §12.2.2). */
  refreshTarget(message: SipMessage, from: Address, udp_server: boolean): void {
    const target = message.contact?.uri
    if (target === undefined || !parseUri(target)) return
    this.target = ownFrom(message)(target)
    if (this.routes.length === 0) this.source = natSource(target, from, udp_server)
  }

  /** Reports whether a message comes from the address with which the dialog was established. */
  isFrom(source: Address): boolean {
    return this.peer?.host === source.host
  }

  nextSeq(): number {
    this.local_seq++
    return this.local_seq
  }

  /** Drafts a request in the dialog, without Via and Content-Length. */
  draft(method: string, seq: number): Draft {
    const first = this.routes[0]
    const strict = first !== undefined && !isLoose(first)
    const draft = Draft.request(method, strict ? (parseNameAddress(first)?.uri ?? this.target) : this.target)
    if (strict) {
      // RFC 3261 §12.2.1.1: a strict router gets its own URI as the request-URI and the target as the last Route.
      for (const route of this.routes.slice(1)) draft.add('Route', route)
      draft.add('Route', `<${this.target}>`)
    } else {
      for (const route of this.routes) draft.add('Route', route)
    }
    return draft
      .add('Max-Forwards', '70')
      .add('From', this.local)
      .add('To', this.remote)
      .add('Call-ID', this.call_id)
      .add('CSeq', `${seq} ${method}`)
  }

  /** Returns where requests go: an open connection or known source address, otherwise the URI to locate. */
  nextHop():
    | { readonly destination: TransportDestination }
    | { readonly uri: string; readonly peer: TransportDestination | undefined } {
    while (this.connection?.successor && !this.connection.takes_requests) this.connection = this.connection.successor
    const route = this.routes[0]
    if (route !== undefined) {
      const uri = parseNameAddress(route)?.uri ?? this.target
      const parsed = parseUri(uri)
      if (parsed && this.connection?.takes_requests && parsed.host === this.connection.remote.host) {
        return { destination: this.#overConnection(this.connection) }
      }
      return { uri, peer: this.peer }
    }
    if (this.connection?.takes_requests) return { destination: this.#overConnection(this.connection) }
    if (this.source && !this.#mayListenElsewhere()) {
      return { destination: { protocol: this.protocol, host: this.source.host, port: this.source.port } }
    }
    return { uri: this.target, peer: this.peer }
  }

  // Nothing listens at the port from which a peer connected, but a host name in its Contact may lead to one that does.
  // A browser listens nowhere.
  #mayListenElsewhere(): boolean {
    const { connection } = this
    const dials = connection?.protocol === 'tcp' || connection?.protocol === 'tls'
    return dials && connection.inbound && isAtName(this.target)
  }

  #overConnection(connection: StreamConnection): TransportDestination {
    const { host, port } = connection.remote
    return { protocol: connection.protocol, host, port, connection }
  }
}

/** Reports whether a URI has a host name, which can be looked up. */
export const isAtName = (uri: string): boolean => isIP(parseUri(uri)?.host ?? '') === 0

/** Longer messages are not kept for the parts that a dialog has of them. */
const LONG_MESSAGE = 4096

/** Returns what makes a part of a message a text of its own. */
const ownFrom = ({ raw }: SipMessage): ((part: string) => string) => (raw.length <= LONG_MESSAGE ? same : inOwnMemory)

const same = (part: string): string => part

/** The target of a peer that names no Contact, which RFC 3261 §8.1.1.8 asks for: where its request came from. */
const sourceUri = ({ source, protocol }: Received): string =>
  `sip:${uriHost(source.host)}:${source.port}${protocol === 'udp' ? '' : `;transport=${protocol}`}`

// A peer whose Contact differs from the source of its packets is behind a NAT that it does not know of. Requests then
// go to that source. The port is compared only for a peer that called us over UDP.
function natSource(target: string, source: Address, compare_port: boolean): Address | undefined {
  const uri = parseUri(target)
  if (!uri) return source
  if (uri.host.toLowerCase() !== source.host.toLowerCase()) return source
  return compare_port && (uri.port ?? 5060) !== source.port ? source : undefined
}

/**
 * A Route of our requests from a Record-Route. Proxies of some IMS cores leave the brackets out, and some peers close
 * them before the parameters. The parameters, `lr` among them, are the URI's all the same, since Record-Route has none
 * of its own that anybody uses (RFC 3261 §20.30).
 */
function asRoute(recorded: string): string {
  if (!recorded.includes('<')) return `<${recorded}>`
  if (recorded.endsWith('>') || isLoose(recorded)) return recorded
  const given = parseNameAddress(recorded)
  if (!given?.params.has('lr')) return recorded
  const params = [...given.params].map(([name, value]) => (value === '' ? `;${name}` : `;${name}=${value}`))
  return `<${given.uri}${params.join('')}>`
}

function isLoose(route: string): boolean {
  const uri = parseNameAddress(route)?.uri
  return uri === undefined || (parseUri(uri)?.params.has('lr') ?? true)
}
