import { timingSafeEqual } from 'node:crypto'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Clock } from '../../../core/runtime/clock.ts'
import type { EdgeLog } from '../stack.ts'
import { ListenError } from '../transport/listen.ts'
import { ControlClient } from './client.ts'
import { type CommandMessage, parseCommandMessage, splitPayload } from './command.ts'
import { plainReply } from './wire.ts'

// The control port: accepts connections of applications, authenticates them and dispatches their commands.

interface ControlOptions {
  readonly host: string
  readonly port: number
  readonly secret: string
  /** Serve the control port over TLS with this key and certificate (PEM). */
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer } | undefined
  readonly version: string
  readonly clock: Clock
  readonly log: EdgeLog
  /** The longest command, in bytes. */
  readonly command_bytes: number
  /** Bytes that may wait for an application that does not read. */
  readonly unsent_bytes: number
  /** How long a connection may stay open without authenticating. */
  readonly handshake_ms: number
  /** Applications that connect before this resolves wait for it. */
  readonly ready: Promise<void>
  readonly hostPorts: () => { readonly advertised: string; readonly bound: string }
  readonly commands: ControlCommands
}

/** The handlers of commands, and of applications that join and leave. */
interface ControlCommands {
  readonly joined: (client: ControlClient) => void
  readonly left: (client: ControlClient) => void
  readonly response: (
    client: ControlClient,
    request_id: string,
    transaction_id: string,
    message: CommandMessage,
  ) => void
  readonly cancel: (client: ControlClient, request_id: string, transaction_id: string, message: CommandMessage) => void
  readonly request: (
    client: ControlClient,
    request_id: string,
    dialog_id: string,
    next_hop: string,
    message: CommandMessage,
  ) => void
}

export class ControlServer {
  readonly #options: ControlOptions
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #port = 0

  private constructor(options: ControlOptions) {
    this.#options = options
  }

  static async open(options: ControlOptions): Promise<ControlServer> {
    const control = new ControlServer(options)
    const server = options.tls
      ? createTlsServer({ key: options.tls.key, cert: options.tls.cert })
      : createTcpServer({ noDelay: true })
    server.on(options.tls ? 'secureConnection' : 'connection', (socket: Socket) => control.#accept(socket))
    await new Promise<void>((resolve, reject) => {
      const failed = (cause: Error): void => reject(new ListenError('control', options.host, options.port, cause))
      server.once('error', failed)
      server.listen(options.port, options.host, () => {
        server.off('error', failed)
        resolve()
      })
    })
    const address = server.address()
    control.#port = typeof address === 'object' && address ? address.port : 0
    control.#server = server
    return control
  }

  get port(): number {
    return this.#port
  }

  get connection_count(): number {
    return this.#sockets.size
  }

  close(): void {
    this.#server?.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    const left = (): void => {
      this.#sockets.delete(socket)
      socket.destroy()
    }
    socket.once('error', left)
    void this.#options.ready.then(() => {
      if (socket.destroyed) return
      socket.off('error', left)
      this.#serve(socket)
    })
  }

  #serve(socket: Socket): void {
    const { clock, log, commands, command_bytes, unsent_bytes } = this.#options
    const late = clock.after(this.#options.handshake_ms, () => {
      if (client.authenticated) return
      log.warn({ remote: client.remote }, 'control connection did not authenticate in time')
      client.close()
    })
    const client: ControlClient = new ControlClient({
      socket,
      clock,
      command_bytes,
      unsent_bytes,
      payload: (from, payload) => this.#payload(from, payload),
      closed: (from, why) => {
        late.cancel()
        this.#sockets.delete(socket)
        log.info({ remote: from.remote, why }, 'control connection closed')
        if (from.authenticated) commands.left(from)
      },
    })
  }

  #payload(client: ControlClient, payload: string): void {
    if (payload === '') return
    try {
      this.#command(client, payload)
    } catch (error) {
      this.#options.log.error({ err: error }, 'unexpected exception in a control command')
      const [id] = payload.split('|', 1)
      client.send(plainReply(id ?? '', 'NOK', 'Server error: internal error'))
    }
  }

  #command(client: ControlClient, payload: string): void {
    const { fields, text } = splitPayload(payload)
    const [id = '', type, first = '', second = '', third = ''] = fields
    if (type === undefined) {
      this.#end(client, id, 'Invalid message format')
      return
    }
    if (type === 'authenticate') {
      this.#authenticate(client, id, first, second)
      return
    }
    if (!client.authenticated) {
      this.#end(client, id, 'not authenticated')
      return
    }
    switch (type) {
      case 'ping':
        client.send(plainReply(id, 'OK', 'pong'))
        break
      case 'route':
        if (first !== '') client.verbs.add(first)
        client.send(plainReply(id, 'OK'))
        break
      case 'remove_route':
        client.verbs.delete(first)
        client.send(plainReply(id, 'OK'))
        break
      case 'sip':
        this.#sip(client, id, first, second, third, text)
        break
      default:
        this.#end(client, id, 'Unknown message type')
    }
  }

  #authenticate(client: ControlClient, id: string, secret: string, tags: string): void {
    const { secret: wanted, version, hostPorts, commands, log } = this.#options
    if (!sameSecret(secret, wanted)) {
      log.warn({ remote: client.remote }, 'control connection with a wrong secret')
      this.#end(client, id, 'incorrect secret')
      return
    }
    const { advertised, bound } = hostPorts()
    client.tags = tags === '' ? [] : tags.split(',')
    client.send(plainReply(id, 'OK', advertised, version, bound))
    if (client.authenticated) return
    client.authenticated = true
    commands.joined(client)
  }

  #sip(
    client: ControlClient,
    id: string,
    transaction_id: string,
    dialog_id: string,
    next_hop: string,
    text: string,
  ): void {
    const message = parseCommandMessage(text)
    const { commands } = this.#options
    if (!message) {
      const end = text.indexOf('\r\n')
      client.send(plainReply(id, 'NOK', `invalid request-uri: ${oneField(end < 0 ? text : text.slice(0, end))}`))
    } else if (message.status !== 0) {
      if (transaction_id === '') this.#end(client, id, 'transaction id missing')
      else commands.response(client, id, transaction_id, message)
    } else if (message.method === 'CANCEL') commands.cancel(client, id, transaction_id, message)
    else commands.request(client, id, dialog_id, next_hop, message)
  }

  #end(client: ControlClient, id: string, why: string): void {
    client.send(plainReply(id, 'NO', why))
    client.close()
  }
}

function oneField(text: string): string {
  return text.replaceAll(/[|\r\n]/g, ' ').slice(0, 200)
}

function sameSecret(given: string, wanted: string): boolean {
  const a = Buffer.from(given)
  const b = Buffer.from(wanted)
  return a.length === b.length && timingSafeEqual(a, b)
}
