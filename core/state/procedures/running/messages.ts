import type { SipMessageTable } from '../../db.ts'
import { insertingRows, type Query } from '../admission/steps.ts'

/** As the edge tells of it. */
export type NewMessage = Omit<SipMessageTable, 'id' | 'edge_id'>

export interface MessagesOfEdge {
  readonly edge_id: string
  readonly messages: readonly NewMessage[]
}

const insert = insertingRows('sip_message', [
  'sip_call_id',
  'at_ms',
  'direction',
  'protocol',
  'local',
  'remote',
  'retransmission',
  'text',
  'edge_id',
])

/** Inserts SIP messages of calls, for their ladders. */
export function insertMessages(query: Query, { edge_id, messages }: MessagesOfEdge): void {
  insert(
    query,
    messages.map(message => ({ ...message, edge_id })),
  )
}
