import type { CallMessage } from '../domain/ladder/message.ts'

/**
 * The link between the SIP edge and the signaling node of its machine. The edge opens no database: the node sends it
 * the configuration and stores its messages. The edge listens on this socket in the run folder, and the node connects.
 */
export const EDGE_SOCKET = 'edge.sock'

/** The part of the configuration that the edge needs. It contains no secrets. */
export interface EdgeFacts {
  /** Sources that identify a trunk. Ranges of digest trunks do not: strangers there could guess passwords for ever. */
  readonly trunk_sources: readonly { readonly cidr: string; readonly standing: string }[]
  readonly carriers: readonly {
    readonly id: string
    readonly cidrs: readonly string[]
    /** SIP URIs of the carrier's targets. */
    readonly targets: readonly string[]
  }[]
  /** Realms of digest credentials; `host` is the signaling FQDN of their trunk. */
  readonly realms: readonly { readonly realm: string; readonly host: string | null }[]
}

/** Where the edge of a machine hears those of the others. */
export interface MachineAt {
  readonly machine_id: string
  readonly host: string
  readonly port: number
}

/** The machines whose edges lend each other their flows. */
export interface MachineLinks {
  readonly own: MachineAt
  /** The key of the links between them, in hex. */
  readonly key: string
  readonly others: readonly MachineAt[]
  /** Without signaling here, the machines that take the calls of this edge, in no order. */
  readonly homes: readonly string[]
  /** Without an edge here, the machines whose edges serve this one's signaling, in no order. */
  readonly fronts: readonly string[]
}

/** What a signaling node tells those of the other machines every 2 s, over the links of their edges. */
export interface Beat {
  readonly node_id: string
  /** It has just written to the database. */
  readonly has_state: boolean
  /** The nodes that it has just heard. */
  readonly hears: readonly string[]
  /** It stops in order: nobody may miss it. */
  readonly leaves?: boolean
}

/** Carries notes between the signaling nodes of machines, over the links of their edges. It may lose some. */
export interface MachinePost {
  send(machine_id: string, text: string): void
  /** Sets the only listener. `from` is the machine's id. */
  onNote(listener: (from: string, text: string) => void): void
}

/** Failed tries of a source in a window that shut it out: at one edge, and, as the nodes count, at all together. */
export const FAILED_TRIES = { most: 5, window_ms: 60_000, block_ms: 900_000 } as const

/** Whose requests a guard counts and drops: an address, by one transport. */
export interface GuardedSource {
  readonly protocol: 'udp' | 'tcp' | 'tls' | 'ws' | 'wss'
  readonly host: string
}

/** Messages from the edge to the node. */
export type FromEdge =
  /** SIP messages to store. `again`: the previous node may have stored some of them without confirming. */
  | {
      readonly kind: 'messages'
      readonly id: number
      readonly again: boolean
      readonly messages: readonly CallMessage[]
    }
  /** Of a node of another machine. */
  | { readonly kind: 'beat'; readonly beat: Beat }
  /** Another machine's node says something to this one. */
  | { readonly kind: 'note'; readonly from: string; readonly text: string }
  /** A source failed to authenticate; or, after failing here, it has proved a password. */
  | { readonly kind: 'tried'; readonly source: GuardedSource; readonly failed: boolean }
  /** Confirms that all messages which the edge held at `drain` are stored. */
  | { readonly kind: 'drained' }
  /** Asks for the messages of calls that have not ended, and of these Call-IDs. */
  | { readonly kind: 'left'; readonly id: number; readonly sip_call_ids: readonly string[] }
  /** Asks which calls these Call-IDs belong to. */
  | { readonly kind: 'calls'; readonly id: number; readonly sip_call_ids: readonly string[] }

/** Messages from the node to the edge. */
export type ToEdge =
  /** Sent first. `key`, in hex: of the digest nonces that all machines accept; null: the edge's own are accepted. */
  | { readonly kind: 'nonces'; readonly key: string | null }
  /** Sent on connection and after each change, when the machine has a private address. */
  | { readonly kind: 'machines'; readonly links: MachineLinks }
  /** Something for another machine's node. */
  | { readonly kind: 'note'; readonly to: string; readonly text: string }
  /** Sent on connection and after each change. */
  | { readonly kind: 'facts'; readonly facts: EdgeFacts }
  /** A source has failed too often, at the edges of all machines together. */
  | { readonly kind: 'shut'; readonly source: GuardedSource; readonly ms: number }
  /** To the nodes of all other machines. */
  | { readonly kind: 'beat'; readonly beat: Beat }
  | { readonly kind: 'kept'; readonly id: number }
  /** The messages could not be stored; the node will not retry. */
  | { readonly kind: 'lost'; readonly id: number }
  /** The node is about to stop and asks for all held messages. */
  | { readonly kind: 'drain' }
  | { readonly kind: 'left'; readonly id: number; readonly messages: readonly CallMessage[] }
  | { readonly kind: 'calls'; readonly id: number; readonly calls: readonly (readonly [string, string])[] }
  /** The node could not read its state to answer. */
  | { readonly kind: 'unanswered'; readonly id: number }
