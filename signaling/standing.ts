import { CUT_OFF_MS } from '../core/state/nodes/nodes.ts'

/** When a node last had contact, on its monotonic clock. */
export interface Contacts {
  /** It wrote to the state. */
  readonly state_ms: number
  /** It heard the node of another machine; null: never. */
  readonly peer_ms: number | null
  /** A node with the state said that it hears this one; null: never. */
  readonly attested_ms: number | null
}

/** A node that has not written for this long takes no calls. Its heartbeats are 2 s apart. */
const SHUT_MS = 6000
/** Before others declare it lost: they wait for 15 s. */
const ALONE_MS = 12_000

/**
 * How a node stands. `cut_off`: it does not reach the state, and keeps its calls. `alone`: it must end them, because
 * others end them too. It was among machines when it lost the state and hears none of them any more, or a machine with
 * the state has vouched for it for 10 min. A node that never heard another machine is not alone: its database is away.
 */
export function standingOf(
  { state_ms, peer_ms, attested_ms }: Contacts,
  now_ms: number,
): 'whole' | 'cut_off' | 'alone' {
  const without_state_ms = now_ms - state_ms
  if (without_state_ms < SHUT_MS) return 'whole'
  const had_peers = peer_ms !== null && peer_ms >= state_ms - ALONE_MS
  if (had_peers && Math.min(without_state_ms, now_ms - peer_ms) >= ALONE_MS) return 'alone'
  const was_attested = attested_ms !== null && attested_ms > state_ms
  return was_attested && without_state_ms >= CUT_OFF_MS ? 'alone' : 'cut_off'
}
