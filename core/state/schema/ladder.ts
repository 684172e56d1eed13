import type { Generated } from 'kysely'
import type { CallMessage } from '../../domain/ladder/message.ts'

/** A SIP message as it crossed the wire, secrets taken out; kept for seven days. */
export interface SipMessageTable extends CallMessage {
  id: Generated<number>
  /** The machine of the edge that the message crossed; empty: of the only one there was. */
  edge_id: Generated<string>
}
