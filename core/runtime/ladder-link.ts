/**
 * How the SIP edge hands the messages of calls to the signaling node, which writes them: the edge writes no database.
 * It listens at this socket, and whoever connects is given rows, one batch after the other.
 */
export const LADDER_SOCKET = 'ladder.sock'

/** From the edge. */
export type FromEdge<Row> =
  /** `again`: some of them may be there, for the writer before has not said that it kept them. */
  | { readonly kind: 'rows'; readonly id: number; readonly again: boolean; readonly rows: readonly Row[] }
  /** All that the edge had when it was asked is kept. */
  | { readonly kind: 'drained' }

/** To the edge. */
export type ToEdge =
  | { readonly kind: 'kept'; readonly id: number }
  /** The rows could not be written, and will not be. */
  | { readonly kind: 'lost'; readonly id: number }
  /** The writer is about to go: give what there is. */
  | { readonly kind: 'drain' }
