import { type CallMessage, LONGEST_CALL_ID } from '../../../domain/ladder/message.ts'
import { insertingRows, type Query } from '../query.ts'

export interface MessagesOfEdge {
  readonly edge_id: string
  readonly messages: readonly CallMessage[]
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

/** Inserts SIP messages of calls for their ladder diagrams. */
export function insertMessageRows(query: Query, { edge_id, messages }: MessagesOfEdge): void {
  // A stranger's Call-ID that no index can hold must not keep others' messages out.
  const kept = messages.filter(({ sip_call_id }) => sip_call_id.length <= LONGEST_CALL_ID)
  insert(
    query,
    kept.map(message => ({ ...message, edge_id })),
  )
}
