import { createRequire } from 'node:module'
import type { Socket } from 'node:net'

/**
 * Typings of what we use of drachtio-srf 5; its own lack half of it. Only the primitives are used: requests, responses
 * and the middleware chain. Its Dialog class is not (decision 0550).
 */

export interface LibraryMessage {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  get(name: string): string | undefined
  getParsedHeader(name: string): unknown
}

export interface LibraryRequest extends LibraryMessage {
  readonly method: string
  readonly uri: string
  readonly source: string
  readonly source_address: string
  readonly source_port: number
  readonly protocol: string
  readonly stackTxnId: string
  readonly stackDialogId: string | undefined
  on(event: 'response', listener: (response: LibraryResponse, ack: Acknowledge) => void): void
  on(event: 'cancel', listener: (cancel: LibraryMessage) => void): void
  on(event: 'update', listener: (request: LibraryRequest, response: LibraryAnswer) => void): void
  cancel(options: { headers?: Record<string, string> }, callback: (error: unknown) => void): void
}

/** For a final answer to INVITE: sends the ACK. For a reliable provisional one: sends the PRACK. */
type Acknowledge = (
  options?: { headers?: Record<string, string>; body?: string },
  callback?: (error: unknown) => void,
) => void

export interface LibraryResponse extends LibraryMessage {
  readonly status: number
  readonly reason: string
  readonly source_address: string
  readonly source_port: number
  readonly protocol: string
  readonly stackDialogId: string | undefined
  readonly req: LibraryRequest
}

/** The answer object that comes with a request. `meta` is filled once the SIP server has echoed what it sent. */
export interface LibraryAnswer {
  readonly finalResponseSent: boolean
  readonly stackDialogId: string | undefined
  send(
    status: number,
    reason: string,
    options: { headers?: Record<string, string>; body?: string },
    callback: (error: unknown, sent: LibraryMessage) => void,
    acknowledged?: (request: LibraryRequest) => void,
  ): void
}

interface LibraryRequestOptions {
  method: string
  uri?: string
  headers?: Record<string, string>
  body?: string
  proxy?: string
  auth?: { username: string; password: string }
  stackDialogId?: string
}

export interface Library {
  connect(options: { host: string; port: number; secret: string; reconnect: { retryMaxDelay: number } }): void
  disconnect(): void
  use(handler: (request: LibraryRequest, response: LibraryAnswer, next: () => void) => void): void
  /** Naming a method announces to the SIP server that we take its requests. */
  use(method: string, handler: (request: LibraryRequest, response: LibraryAnswer, next: () => void) => void): void
  /** `contacts`: where the server listens, `proto/host:port` with commas. */
  on(event: 'connect', listener: (error: Error | null, contacts?: string, version?: string) => void): void
  on(event: 'error', listener: (error: Error) => void): void
  on(event: 'close', listener: () => void): void
  readonly app: {
    /** Made by `connect`. */
    readonly client: { readonly wp: Wire }
    request(options: LibraryRequestOptions, callback: (error: Error | null, request: LibraryRequest) => void): void
  }
}

const require = createRequire(import.meta.url)
const inLibrary = createRequire(require.resolve('drachtio-srf'))

export const createLibrary = (): Library => new (require('drachtio-srf') as new () => Library)()

/** Status codes that the library can send (its own table: others make it throw). */
export const statusTexts = inLibrary('sip-status') as Record<number, string>

/** The library's end of the link, as far as it is used or changed here. */
export interface Wire {
  /** It connects no more. */
  closing?: boolean
  send(socket: Socket, message: string): string
  on(event: 'connect' | 'close' | 'msg', listener: (socket: Socket) => void): void
}

const { prototype: wire } = inLibrary('./wire-protocol') as { readonly prototype: Wire }
const { send } = wire

// The library calls the system for each message: those of one turn of the event loop leave with one call.
wire.send = function (socket, message) {
  if (socket.writableCorked === 0) {
    socket.cork()
    setImmediate(() => socket.uncork())
  }
  return send.call(this, socket, message)
}
