import type { Generated } from 'kysely'
import type { Flag } from './configuration.ts'

/** A SIP message as it crossed the wire, secrets taken out; kept for seven days. */
export interface SipMessageTable {
  id: Generated<number>
  /** Call-ID of its dialog: which leg it belongs to. */
  sip_call_id: string
  /** Milliseconds since the epoch. */
  at_ms: number
  direction: 'in' | 'out'
  protocol: string
  /** `host:port` of our socket and of the peer. */
  local: string
  remote: string
  retransmission: Flag
  text: string
  /** Whose dialog it is of: the machine of the edge; empty before 0060, when there was one. */
  edge_id: Generated<string>
}
