import { bytesOf, type Draft, decodedText, draftResponse, type SipMessage } from '../sip/message.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { Received } from '../transport/types.ts'

type Headers = Readonly<Record<string, string | readonly string[]>>

/** The headers and the body that an owner adds to a message. Bodies are ordinary text. */
export interface MessageParts {
  readonly headers?: Headers
  readonly body?: string
  /** Default `application/sdp`. */
  readonly content_type?: string
}

/** A request from the peer that waits for an answer. */
export class IncomingRequest {
  readonly message: SipMessage
  readonly received: Received
  readonly #transaction: ServerTransaction
  readonly #tag: string
  readonly #contact: string | undefined

  constructor(transaction: ServerTransaction, tag: string, contact?: string) {
    this.#transaction = transaction
    this.message = transaction.request
    this.received = transaction.received
    this.#tag = tag
    this.#contact = contact
  }

  get body(): string {
    return decodedText(this.message.body)
  }

  answer(status: number, parts: MessageParts & { readonly reason?: string } = {}): void {
    const draft = draftResponse(this.message, status, this.#tag, parts.reason)
    if (this.#contact !== undefined && status < 300) draft.add('Contact', this.#contact)
    addParts(draft, parts)
    this.#transaction.respond(draft, status)
  }
}

/** Adds an owner's headers and body to a message. */
export function addParts(draft: Draft, parts: MessageParts): void {
  for (const [name, value] of Object.entries(parts.headers ?? {})) {
    for (const one of typeof value === 'string' ? [value] : value) {
      if (name.toLowerCase() === 'contact') draft.set(name, bytesOf(one))
      else draft.add(name, bytesOf(one))
    }
  }
  if (parts.body === undefined || parts.body === '') return
  draft.add('Content-Type', parts.content_type ?? 'application/sdp')
  draft.body = bytesOf(parts.body)
}
