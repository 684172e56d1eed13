import { inserting, type Query } from '../admission/steps.ts'
import type { SipMessageTable } from '../index.ts'

export type NewMessage = Omit<SipMessageTable, 'id'>

const insertMessage = inserting('sip_message', [
  ...(['sip_call_id', 'at_ms', 'direction', 'protocol', 'local', 'remote', 'retransmission', 'text'] as const),
])

/** SIP messages of calls, for their ladders. */
export function insertMessages(query: Query, messages: readonly NewMessage[]): void {
  for (const message of messages) insertMessage(query, message)
}
