import type { Generated } from 'kysely'
import type { CallMessage } from '../../domain/ladder/message.ts'

/** A SIP message as sent on the wire, with secrets removed. Kept for seven days. */
export interface SipMessageTable extends CallMessage {
  id: Generated<number>
  /** The machine of the edge that the message crossed; empty for rows from when there was only one edge. */
  edge_id: Generated<string>
}
