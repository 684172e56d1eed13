import { readSessionId, sessionIdHeaders } from '../../core/domain/sip/session-id.ts'
import type { Dialog, Headers, InboundInvite, InboundRequest, SipResponse } from '../drachtio/types.ts'

/**
 * The id of the session that one leg is a side of (RFC 7989 §6 and §7, decision 0974). It learns the peer's UUID from
 * what the peer sends, and adds Session-ID to all that signaling sends to the peer: every message of a leg passes here.
 */
export class SessionId {
  #uuid: string | null = null
  /** Returns the UUID of the leg at the other end; null when this peer may not know it, or nobody does. */
  readonly #other: () => string | null

  constructor(other: () => string | null) {
    this.#other = other
  }

  /** The UUID of the peer; null before it has sent one. */
  get uuid(): string | null {
    return this.#uuid
  }

  /** Session-ID of the next message to the peer; none while neither side is known. */
  get headers(): Headers {
    return sessionIdHeaders(this.#other(), this.#uuid)
  }

  /** Notes the peer's UUID. A peer of RFC 7329 repeats the other side's, and has none (RFC 7989 §11). */
  heard(message: { header(name: string): string | null }): void {
    const uuid = readSessionId(message.header('session-id'))
    if (uuid !== null && uuid !== this.#other()) this.#uuid = uuid
  }

  /** Notes the UUID in a response of the peer, and returns the headers of its ACK or PRACK. */
  readonly acknowledging = (response: SipResponse): Headers => {
    this.heard(response)
    return this.headers
  }

  /** Wraps a request of the peer. */
  request<T extends Pick<InboundRequest, 'header' | 'respond'>>(request: T): T {
    this.heard(request)
    return { ...request, respond: (status, options) => request.respond(status, this.#with(options)) }
  }

  /** Wraps the peer's INVITE. The dialog that its acceptance makes is not wrapped yet. */
  invite(invite: InboundInvite): InboundInvite {
    this.heard(invite)
    return {
      ...invite,
      progress: (status, options) => invite.progress(status, this.#with(options)),
      refuse: (status, options) => invite.refuse(status, this.#with(options)),
      accept: (options, handler) => invite.accept(this.#with(options), handler),
    }
  }

  /** Wraps the dialog with the peer. */
  dialog(dialog: Dialog): Dialog {
    const { id, call_id, remote_target, local_tag, remote_tag } = dialog
    return {
      id,
      call_id,
      remote_target,
      local_tag,
      remote_tag,
      request: async (method, options) => {
        const response = await dialog.request(method, { acknowledging: this.acknowledging, ...this.#with(options) })
        this.heard(response)
        return response
      },
      bye: headers => dialog.bye({ ...headers, ...this.headers }),
      get ended() {
        return dialog.ended
      },
    }
  }

  #with<T extends { readonly headers?: Headers }>(options: T | undefined): T & { readonly headers: Headers } {
    return { ...(options as T), headers: { ...options?.headers, ...this.headers } }
  }
}
