import { voiceService } from '../../domain/admission/index.ts'
import type { Reason, ReasonFacts } from '../../domain/reasons/index.ts'
import { wouldAdmit } from './admission/own-line.ts'
import type { AdmissionRequest } from './admission/request.ts'
import { numberOf, type Query, textOf, tuples } from './query.ts'
import { type CallRow, insertCallRow, type NewCall, rowOf } from './running/rows.ts'

/** A call of the API to queue. */
export interface PlaceInput {
  readonly sid: string
  readonly project_id: string
  readonly account_sid: string
  readonly from_number: string
  readonly to_number: string
  /** The number to present, when it is not the From number. */
  readonly caller_id: string | null
  readonly number_id: string
  /** The voice application that the From number is routed to. Its policy applies, else that of automation. */
  readonly application_id: string | null
  /** Wall time, epoch ms. */
  readonly now_ms: number
  /** JSON of core/domain/calls/request.ts. */
  readonly request: string
  /** The conference that the call is for. */
  readonly conference_sid?: string | undefined
}

export type Placed = { readonly row: CallRow } | { readonly refused: Reason; readonly facts: ReasonFacts }

const INSERT_COMMAND = `insert into call_command (call_sid, kind, payload, created_at) values ${tuples(1, 4)}`

/** The live node that runs a conference. Only its calls can join. */
const NODE_OF_CONFERENCE =
  'select node.id from conference inner join node on node.id = conference.node_id where conference.sid = ?'

/** Counts signaling nodes and draining ones. When all drain, calls are refused; without any node they wait for one. */
const DRAINING = `select count(*) as nodes, count(draining_at) as draining from node where kind = 'signaling'`

/**
 * Runs admission and queues the call with the command that makes a node place it, in one procedure: writers of running
 * calls wait as briefly as possible. A CPS limit does not refuse here: the call waits in the queue (design section 4).
 */
export function placeApiCall(query: Query, input: PlaceInput): Placed {
  const [seen] = query(DRAINING)
  if (seen && numberOf(seen, 'nodes') > 0 && seen['nodes'] === seen['draining'])
    return { refused: 'draining', facts: {} }
  // A dry run: the call takes its slots when it leaves.
  const outcome = wouldAdmit(query, askOf(input))
  if (!outcome.admitted && outcome.reason !== 'cps_exceeded') return { refused: outcome.reason, facts: outcome.facts }
  const at = new Date(input.now_ms).toISOString()
  const call: NewCall = {
    sid: input.sid,
    project_id: input.project_id,
    account_sid: input.account_sid,
    origin: 'rest',
    direction: 'outbound-api',
    from_number: input.from_number,
    to_number: input.to_number,
    status: 'queued',
    trunk_id: outcome.trunk_id,
    number_id: input.number_id,
    application_id: input.application_id,
    request: input.request,
    queued_at: at,
    node_id: nodeOf(query, input.conference_sid),
  }
  const row = rowOf(call, insertCallRow(query, call, input.now_ms), input.now_ms)
  query(INSERT_COMMAND, input.sid, 'originate', '{}', at)
  return { row }
}

function nodeOf(query: Query, conference_sid: string | undefined): string | null {
  const [node] = conference_sid === undefined ? [] : query(NODE_OF_CONFERENCE, conference_sid)
  return node ? textOf(node, 'id') : null
}

const askOf = ({ sid, project_id, application_id, to_number, from_number, caller_id, now_ms }: PlaceInput) =>
  ({
    call_sid: sid,
    part: 'outbound',
    way: 'create',
    node_id: 'control',
    project_id,
    service: voiceService(project_id, application_id),
    called: to_number,
    caller: caller_id ?? from_number,
    transport: null,
    offer: null,
    now_ms,
  }) satisfies AdmissionRequest
