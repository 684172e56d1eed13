import { parseCSeq } from '../../core/domain/sip/values.ts'
import type { InboundRequest } from './types.ts'

/** The statuses that say that a request was not the peer's. */
const STRANGER: ReadonlySet<number> = new Set([401, 403, 407])

/**
 * The CSeq numbers of a peer's requests in a dialog (RFC 3261 §12.2.2). A number counts once its request has been
 * answered, and not as a stranger's: otherwise a stranger could make the peer's own requests look old.
 */
export class Sequence {
  #newest: number

  /** `first`: the number of the request that made the dialog, when it is the peer's; else -1. */
  constructor(first: number) {
    this.#newest = first
  }

  isOld(request: Pick<InboundRequest, 'method' | 'header'>): boolean {
    return request.method !== 'ACK' && seqOf(request) < this.#newest
  }

  /** Returns the request, whose number counts when it is answered. */
  counted(request: InboundRequest): InboundRequest {
    return {
      ...request,
      respond: (status, options) => {
        if (!STRANGER.has(status)) this.#newest = Math.max(this.#newest, seqOf(request))
        request.respond(status, options)
      },
    }
  }
}

const seqOf = (request: Pick<InboundRequest, 'header'>): number => parseCSeq(request.header('cseq') ?? '')?.seq ?? 0
