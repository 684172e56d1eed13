import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import {
  type CommandMessage,
  commandHeader,
  parseCommandMessage,
  splitPayload,
} from '../../signaling/edge/control/command.ts'
import { FrameReader, frame } from '../../signaling/edge/control/framing.ts'
import {
  dialogMessage,
  plainReply,
  requestSentReply,
  responseSentReply,
  type WireFacts,
} from '../../signaling/edge/control/wire.ts'
import { newUuid } from '../../signaling/edge/sip/ids.ts'

/** A SIP message that the application asked the server to send. */
interface Sent {
  readonly transaction_id: string
  readonly dialog_id: string
  readonly message: CommandMessage
  /** The message as it would go out. */
  readonly text: string
}

/**
 * The control side of a drachtio-server, with a test in place of the network. It sends nothing by itself, does not
 * report what it drops, and keeps its dialogs when the application disconnects. A test can thus reproduce each defect
 * of the real server.
 */
export class DrachtioPeer {
  readonly #server: Server
  readonly #version: string
  readonly #sent: Sent[] = []
  readonly #news = new EventEmitter()
  /** The texts of requests from `bring`, by transaction. */
  readonly #requests = new Map<string, string>()
  readonly #sockets = new Set<Socket>()
  #application: Socket | null = null
  secret = 'secret'
  /** When true, accepts SIP to send and never reports the result. */
  mute = false
  /** When true, keeps its connections and answers nothing, as if stopped by SIGSTOP. */
  frozen = false
  /** The addresses that it reports as its listeners. */
  contacts = 'udp/192.0.2.1:5060,tcp/192.0.2.1:5060'
  /** Dialogs outlive the application's connection, as on the real server. */
  readonly dialogs = new Set<string>()

  private constructor(version: string) {
    this.#version = version
    this.#server = createServer(socket => this.#serve(socket))
  }

  static async open(version = 'v0.9.10-1-g9c2dd4cb6a'): Promise<DrachtioPeer> {
    const peer = new DrachtioPeer(version)
    peer.#server.listen(0, '127.0.0.1')
    await once(peer.#server, 'listening')
    return peer
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Returns the next matching message, including earlier ones. Returns each message once. */
  async next(fits: (message: CommandMessage) => boolean): Promise<Sent> {
    for (;;) {
      const at = this.#sent.findIndex(({ message }) => fits(message))
      const [found] = at < 0 ? [] : this.#sent.splice(at, 1)
      if (found) return found
      await once(this.#news, 'sent')
    }
  }

  /** Waits until the server refuses another application because of its secret. */
  async refused(): Promise<void> {
    await once(this.#news, 'refused')
  }

  /** Delivers a request from the network; `protocol` is the server's name for it. Returns the transaction id. */
  bring(protocol: string, text: string, dialog_id = ''): string {
    const id = newUuid()
    this.#requests.set(id, text)
    this.#write(dialogMessage({ ...WIRE, protocol }, id, dialog_id, text))
    return id
  }

  /**
   * Delivers a response from the network to a request of the application, by default from one peer. The dialog's id has
   * our tag alone, as the real server's, so that forks share it.
   */
  answer(to: Sent, status: number, headers: readonly string[] = [], body = '', tag = 'answering'): void {
    const answer = answerText(to.text, `SIP/2.0 ${status} Any`, headers, body, tag)
    const makes_dialog = to.message.method === 'INVITE'
    const dialog_id = to.dialog_id || (makes_dialog ? dialogIdOf(to.text) : '')
    if (makes_dialog && status >= 200 && status < 300) this.dialogs.add(dialog_id)
    this.#write(dialogMessage(WIRE, to.transaction_id, dialog_id, answer))
  }

  /** Closes all connections; new ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #serve(socket: Socket): void {
    const reader = new FrameReader(1_000_000)
    this.#sockets.add(socket)
    // What is written in one turn can be read in one.
    socket.setNoDelay(true)
    socket.on('data', chunk => {
      for (const payload of reader.push(chunk.toString('latin1'))) if (payload) this.#command(socket, payload)
    })
    socket.on('close', () => this.#sockets.delete(socket))
    // An application may reset its connection when it exits. `close` follows and handles that.
    socket.on('error', () => undefined)
  }

  #command(socket: Socket, payload: string): void {
    if (this.frozen) return
    const { fields, text } = splitPayload(payload)
    const [id = '', type, first = '', second = ''] = fields
    if (type === 'authenticate') {
      if (first !== this.secret) {
        socket.end(frame(plainReply(id, 'NO', 'incorrect secret')))
        this.#news.emit('refused')
        return
      }
      this.#application = socket
      this.#write(plainReply(id, 'OK', this.contacts, this.#version, this.contacts))
    } else if (type === 'sip' && this.mute) return
    else if (type === 'sip') this.#send(id, first, second, text)
    else this.#write(plainReply(id, 'OK', ...(type === 'ping' ? ['pong'] : [])))
  }

  #send(id: string, transaction_id: string, dialog_id: string, command: string): void {
    const message = parseCommandMessage(command)
    if (!message) throw new Error(`not SIP: ${command}`)
    if (message.status > 0) {
      const text = answerText(this.#requests.get(transaction_id) ?? '', message.start_line, [], message.body)
      const made = dialogIdOf(text)
      if (message.status >= 200 && message.status < 300) this.dialogs.add(made)
      this.#write(responseSentReply(id, WIRE, transaction_id, made, text))
      this.#keep({ transaction_id, dialog_id: made, message, text })
    } else if (dialog_id !== '' && !this.dialogs.has(dialog_id)) {
      this.#write(plainReply(id, 'NOK', 'Server error: unable to find dialog for dialog id provided'))
    } else {
      const sent = { transaction_id: transaction_id || newUuid(), dialog_id, message, text: requestText(message) }
      this.#write(requestSentReply(id, WIRE, sent.transaction_id, sent.text))
      this.#keep(sent)
    }
  }

  #keep(sent: Sent): void {
    this.#sent.push(sent)
    this.#news.emit('sent')
  }

  #write(payload: string): void {
    this.#application?.write(frame(payload), 'latin1')
  }
}

const WIRE: WireFacts = { bytes: 500, protocol: 'udp', host: '198.51.100.7', port: 5060, at: 0 }

const lineOf = (text: string, name: string): string => new RegExp(`^${name}: (.*)$`, 'im').exec(text)?.[1]?.trim() ?? ''

const dialogIdOf = (text: string): string =>
  `${lineOf(text, 'call-id')};from-tag=${/;tag=([^;\s]+)/.exec(lineOf(text, 'from'))?.[1] ?? ''}`

function requestText(message: CommandMessage): string {
  const from = commandHeader(message, 'from') ?? '<sip:192.0.2.1>'
  return [
    `${message.method} ${message.uri} SIP/2.0`,
    `Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK${newUuid()}`,
    `From: ${from.includes(';tag=') ? from : `${from};tag=${newUuid()}`}`,
    `To: ${commandHeader(message, 'to') ?? `<${message.uri}>`}`,
    `Call-ID: ${commandHeader(message, 'call-id') ?? newUuid()}`,
    `CSeq: ${commandHeader(message, 'cseq') ?? `1 ${message.method}`}`,
    'Content-Length: 0',
    '\r\n',
  ].join('\r\n')
}

function answerText(
  request: string,
  start: string,
  headers: readonly string[],
  body: string,
  tag = 'answering',
): string {
  const to = lineOf(request, 'to')
  return [
    start,
    `Via: ${lineOf(request, 'via')}`,
    `From: ${lineOf(request, 'from')}`,
    `To: ${to.includes(';tag=') ? to : `${to};tag=${tag}`}`,
    `Call-ID: ${lineOf(request, 'call-id')}`,
    `CSeq: ${lineOf(request, 'cseq')}`,
    'Contact: <sip:peer@198.51.100.7>',
    ...headers,
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}
