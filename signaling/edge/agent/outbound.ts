import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ControlClient } from '../control/client.ts'
import type { ControlServer } from '../control/server.ts'
import { newTag } from '../sip/ids.ts'
import { draftResponse } from '../sip/message.ts'
import { parseNameAddress, parseUri } from '../sip/uri.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { AgentCore } from './core.ts'
import type { Proxies } from './proxy.ts'
import type { ServerSide } from './uas.ts'

// Outbound-connection mode (drachtio-control-protocol.md §15). For each new request the edge connects to an
// application, either at a configured address or at one that an HTTP server returns.

/** By method: `tcp://host:port`, `tls://host:port` or an http(s) URL to query. `*` stands for all other methods. */
export type OutboundHandlers = Readonly<Record<string, string>>

const HTTP_TIMEOUT_MS = 4_000
const CONNECT_TIMEOUT_MS = 4_000
const ANSWER_BYTES = 65_536

export class OutboundMode {
  readonly #core: AgentCore
  readonly #handlers: OutboundHandlers
  readonly #parts: { server: ServerSide; proxies: Proxies; control: () => ControlServer | undefined }

  constructor(
    core: AgentCore,
    handlers: OutboundHandlers,
    parts: { server: ServerSide; proxies: Proxies; control: () => ControlServer | undefined },
  ) {
    this.#core = core
    this.#handlers = handlers
    this.#parts = parts
  }

  /** Handles a new request if its method has a handler; returns false otherwise. */
  takes(transaction: ServerTransaction): boolean {
    const url = this.#handlers[transaction.method] ?? this.#handlers['*']
    if (url === undefined) return false
    const direct = /^(tcp|tls):\/\/(.+):(\d+)$/.exec(url)
    if (direct) this.#connect(transaction, direct[2] ?? '', Number(direct[3]), direct[1] === 'tls')
    else {
      this.#ask(transaction, url).catch(error => {
        this.#core.log.warn({ err: error }, 'HTTP routing request failed')
        this.#refuse(transaction, 500)
      })
    }
    return true
  }

  #refuse(transaction: ServerTransaction, status: number, reason?: string): void {
    transaction.respond(draftResponse(transaction.request, status, newTag(), reason), status)
  }

  #connect(transaction: ServerTransaction, host: string, port: number, tls: boolean): void {
    const control = this.#parts.control()
    if (!control) return
    let delivered = false
    const give_up = (): void => {
      if (!delivered && !transaction.answered) this.#refuse(transaction, 480)
      delivered = true
    }
    // Like the reference, this does not verify the certificate. The secret of the control link authenticates the peer.
    const socket: Socket = tls ? connectTls({ host, port, rejectUnauthorized: false }) : connectTcp({ host, port })
    const timer = this.#core.clock.after(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('no handshake in time')))
    socket.on('error', error => this.#core.log.warn({ host, port, err: error }, 'connection to the application failed'))
    socket.on('close', () => {
      timer.cancel()
      give_up()
    })
    control.serve(socket, true, (client: ControlClient) => {
      timer.cancel()
      if (delivered || transaction.answered) return
      delivered = true
      this.#parts.server.offer(transaction, client)
    })
  }

  async #ask(transaction: ServerTransaction, url: string): Promise<void> {
    const response = await fetch(`${url}${url.includes('?') ? '&' : '?'}${queryFor(transaction)}`, {
      signal: AbortSignal.timeout(HTTP_TIMEOUT_MS),
      redirect: 'error',
    })
    const text = await response.text()
    if (!response.ok || text.length > ANSWER_BYTES) {
      this.#refuse(transaction, 500)
      return
    }
    if (!transaction.answered) this.#act(transaction, readAnswer(text))
  }

  #act(transaction: ServerTransaction, answer: RoutingAnswer | undefined): void {
    switch (answer?.action) {
      case 'connect':
        this.#connect(transaction, answer.host, answer.port, answer.tls)
        break
      case 'tag': {
        const app = this.#core.apps.pick(transaction.method.toLowerCase(), answer.tag)
        if (app) this.#parts.server.offer(transaction, app)
        else this.#refuse(transaction, 480)
        break
      }
      case 'reject':
        this.#refuse(transaction, answer.status, answer.reason)
        break
      case 'redirect': {
        const draft = draftResponse(transaction.request, 302, newTag(), 'Moved')
        for (const contact of answer.contacts) draft.add('Contact', contact.includes('<') ? contact : `<${contact}>`)
        transaction.respond(draft, 302)
        break
      }
      case 'proxy':
        this.#parts.proxies.start(
          transaction,
          {
            remain_in_dialog: answer.record_route,
            full_response: false,
            follow_redirects: answer.follow_redirects,
            simultaneous: answer.simultaneous,
            provisional_ms: undefined,
            final_ms: undefined,
            targets: answer.targets,
            headers: [],
          },
          undefined,
        )
        break
      default:
        this.#refuse(transaction, 500)
    }
  }
}

type RoutingAnswer =
  | { action: 'connect'; host: string; port: number; tls: boolean }
  | { action: 'tag'; tag: string }
  | { action: 'reject'; status: number; reason: string | undefined }
  | { action: 'redirect'; contacts: string[] }
  | { action: 'proxy'; targets: string[]; record_route: boolean; follow_redirects: boolean; simultaneous: boolean }

// Parses the HTTP server's answer. Returns undefined unless it is one of the five known answers.
function readAnswer(text: string): RoutingAnswer | undefined {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  const answer = asRecord(json)
  const data = asRecord(answer?.['data'])
  if (!answer || !data) return undefined
  switch (answer['action']) {
    case 'route': {
      if (typeof data['tag'] === 'string') return { action: 'tag', tag: data['tag'] }
      const found =
        typeof data['uri'] === 'string' ? /^([^:;]+):(\d{1,5})(?:;transport=(tcp|tls))?$/.exec(data['uri']) : null
      return found
        ? { action: 'connect', host: found[1] ?? '', port: Number(found[2]), tls: found[3] === 'tls' }
        : undefined
    }
    case 'reject': {
      const { status, reason } = data
      if (typeof status !== 'number' || !Number.isInteger(status) || status < 300 || status > 699) return undefined
      return { action: 'reject', status, reason: typeof reason === 'string' ? reason : undefined }
    }
    case 'redirect':
      return { action: 'redirect', contacts: strings(data['contact']) }
    case 'proxy': {
      const targets = strings(data['destination'])
      return targets.length === 0
        ? undefined
        : {
            action: 'proxy',
            targets,
            record_route: data['recordRoute'] === true,
            follow_redirects: data['followRedirects'] !== false,
            simultaneous: data['simultaneous'] === true,
          }
    }
    default:
      return undefined
  }
}

function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

function strings(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value]
  return list.filter(
    (item): item is string => typeof item === 'string' && parseUri(parseNameAddress(item)?.uri ?? '') !== undefined,
  )
}

function queryFor(transaction: ServerTransaction): string {
  const { request, received } = transaction
  const uri = parseUri(request.uri)
  const user = (value: string | undefined): string => parseUri(parseNameAddress(value ?? '')?.uri ?? '')?.user ?? ''
  const pairs: [string, string][] = [
    ['method', request.method],
    ['domain', uri?.host ?? ''],
    ['protocol', received.protocol],
    ['source_address', received.source.host],
    ['fromUser', user(request.get('from'))],
    ['toUser', user(request.get('to'))],
    ['uriUser', uri?.user ?? ''],
    ['contentType', request.get('content-type') ?? ''],
    ['uri', request.uri],
    ...(uri?.params ?? []),
  ]
  return pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/%[0-9A-F]{2}/g, hex => hex.toLowerCase())
}
