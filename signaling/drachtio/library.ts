import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { type LibraryText, libraryName, readLibraryText } from './library-text.ts'

/**
 * Types for the part of drachtio-srf 5 that we use; its own types lack half of it. We use only the primitives:
 * requests, responses and the middleware chain. We do not use its Dialog class (docs/drachtio.md).
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
  /** HOST:PORT of the listening point, for a request outside a dialog. */
  readonly receivedOn?: string
  readonly stackTxnId: string
  readonly stackDialogId: string | undefined
  on(event: 'response', listener: (response: LibraryResponse, ack: Acknowledge) => void): void
  on(event: 'cancel', listener: (cancel: LibraryMessage) => void): void
  on(event: 'update', listener: (request: LibraryRequest, response: LibraryAnswer) => void): void
  cancel(options: { headers?: Record<string, string> }, callback: (error: unknown) => void): void
}

/** Sends the ACK for a final response to INVITE, or the PRACK for a reliable provisional response. */
export type Acknowledge = (
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

/** The response object that comes with a request. */
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
  stackDialogId?: string
}

export interface DrachtioLibrary {
  connect(options: { host: string; port: number; secret: string; reconnect: { retryMaxDelay: number } }): void
  disconnect(): void
  use(handler: (request: LibraryRequest, response: LibraryAnswer, next: () => void) => void): void
  /** Registers a handler, and announces to the SIP server that we take requests of this method. */
  use(method: string, handler: (request: LibraryRequest, response: LibraryAnswer, next: () => void) => void): void
  /** `contacts`: where the server listens, as a comma-separated list of `proto/host:port`. */
  on(event: 'connect', listener: (error: Error | null, contacts?: string, version?: string) => void): void
  on(event: 'error', listener: (error: Error) => void): void
  on(event: 'close', listener: () => void): void
  readonly app: {
    /** `connect` creates it. */
    readonly client: { readonly wp: Wire }
    request(options: LibraryRequestOptions, callback: (error: Error | null, request: LibraryRequest) => void): void
  }
}

const require = createRequire(import.meta.url)
const inLibrary = createRequire(require.resolve('drachtio-srf'))

export const createLibrary = (): DrachtioLibrary => new (require('drachtio-srf') as new () => DrachtioLibrary)()

/** The library's own table of status codes. It throws for a code that is not in it. */
export const statusTexts = inLibrary('sip-status') as Record<number, string>

/** The part of the library's connection class that we use or patch. */
export interface Wire {
  /** Set to stop it from reconnecting. */
  closing?: boolean
  send(socket: Socket, message: string): string
  on(event: 'connect' | 'close' | 'msg', listener: (socket: Socket) => void): void
}

const { prototype: wire } = inLibrary('./wire-protocol') as { readonly prototype: Wire }
const { send } = wire

// The library makes a system call per message. Corking sends the messages of one turn of the event loop together.
wire.send = function (socket, message) {
  if (socket.writableCorked === 0) {
    socket.cork()
    setImmediate(() => socket.uncork())
  }
  return send.call(this, socket, message)
}

const parser = inLibrary('./sip-parser/parser') as {
  parseSipMessage: (text: string) => LibraryText | undefined
  getHeaderName: (name: string) => string
}
parser.parseSipMessage = readLibraryText
parser.getHeaderName = libraryName

const { prototype: message } = inLibrary('./sip-parser/message') as {
  readonly prototype: {
    readonly headers: Readonly<Record<string, string>>
    getHeaderName(name: string): string | undefined
    toJSON(): undefined
  }
}
/** The library compares all names in lower case, for each header that is asked for. */
message.getHeaderName = function (name) {
  if (Object.hasOwn(this.headers, name)) return name
  const id = name.toLowerCase()
  for (const known in this.headers) if (known.length === id.length && known.toLowerCase() === id) return known
  return undefined
}
// The library writes each message as JSON for a log, also when that is off.
message.toJSON = () => undefined
