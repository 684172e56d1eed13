import type { CallMessage } from '../domain/ladder/message.ts'

/**
 * The link between the SIP edge and the signaling node of its machine. The edge opens no database: the node tells it
 * what it must know and keeps its messages. The edge listens at this socket in the run folder, and the node connects.
 */
export const EDGE_SOCKET = 'edge.sock'

/** What the edge must know of the configuration. It holds no secret. */
export interface EdgeFacts {
  /** Sources that identify a trunk. Ranges of digest trunks are none: strangers there could guess for ever. */
  readonly trunk_sources: readonly { readonly cidr: string; readonly standing: string }[]
  readonly carriers: readonly {
    readonly id: string
    readonly cidrs: readonly string[]
    /** SIP URIs of its targets. */
    readonly targets: readonly string[]
  }[]
  /** Realms of digest credentials; `host` is the signaling FQDN of the trunk that has them. */
  readonly realms: readonly { readonly realm: string; readonly host: string | null }[]
}

/** From the edge. */
export type FromEdge =
  /** `again`: the node before may have kept some of these messages without confirming them. */
  | {
      readonly kind: 'messages'
      readonly id: number
      readonly again: boolean
      readonly messages: readonly CallMessage[]
    }
  /** Everything that the edge held when it was asked to drain is kept. */
  | { readonly kind: 'drained' }
  /** Asks for the messages of calls that nobody ended, and of further Call-IDs. */
  | { readonly kind: 'left'; readonly id: number; readonly sip_call_ids: readonly string[] }
  /** Asks which calls these Call-IDs belong to. */
  | { readonly kind: 'calls'; readonly id: number; readonly sip_call_ids: readonly string[] }

/** To the edge. */
export type ToEdge =
  /** On connection, and after each change. */
  | { readonly kind: 'facts'; readonly facts: EdgeFacts }
  | { readonly kind: 'kept'; readonly id: number }
  /** The messages could not be written, and will not be. */
  | { readonly kind: 'lost'; readonly id: number }
  /** The node is about to stop: hand over what there is. */
  | { readonly kind: 'drain' }
  | { readonly kind: 'left'; readonly id: number; readonly messages: readonly CallMessage[] }
  | { readonly kind: 'calls'; readonly id: number; readonly calls: readonly (readonly [string, string])[] }
  /** The state could not answer. */
  | { readonly kind: 'unanswered'; readonly id: number }
