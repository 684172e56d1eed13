import type { Reason, ReasonFacts } from '../../domain/reasons/index.ts'
import type { AdmissionRequest } from './admission/request.ts'
import { number, type Query, tuples } from './admission/steps.ts'
import { take } from './admission/take.ts'
import { type CallRow, insertCall, type NewCall, rowOf } from './running/rows.ts'

/** A call of the API to queue. */
export interface PlaceInput {
  /** Evaluated as a dry run: the call takes its slots when it leaves. */
  readonly admission: AdmissionRequest
  readonly sid: string
  readonly account_sid: string
  readonly from_number: string
  readonly to_number: string
  readonly number_id: string
  /** Voice application that the From number is routed to. Its policy applies. */
  readonly application_id: string | null
  /** JSON of core/domain/calls/request.ts. */
  readonly request: string
}

export type Placed = { readonly row: CallRow } | { readonly refused: Reason; readonly facts: ReasonFacts }

const INSERT_COMMAND = `insert into call_command (call_sid, kind, payload, created_at) values ${tuples(1, 4)}`

/** Counts signaling nodes and draining ones. When all drain, calls are refused; without any node they wait for one. */
const DRAINING = `select count(*) as nodes, count(draining_at) as draining from node where kind = 'signaling'`

/**
 * Runs admission and queues the call with the command that makes a node place it, in one procedure: writers of running
 * calls wait as briefly as possible. A CPS limit does not refuse here: the call waits in the queue (design section 4).
 */
export function place(query: Query, input: PlaceInput): Placed {
  const [seen] = query(DRAINING)
  if (seen && number(seen, 'nodes') > 0 && seen['nodes'] === seen['draining']) return { refused: 'draining', facts: {} }
  const outcome = take(query, { request: input.admission, dry_run: true })
  if (!outcome.admitted && outcome.reason !== 'cps_exceeded') return { refused: outcome.reason, facts: outcome.facts }
  const at = new Date(input.admission.now_ms).toISOString()
  const call: NewCall = {
    sid: input.sid,
    project_id: input.admission.project_id,
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
  }
  const row = rowOf(call, insertCall(query, call, input.admission.now_ms), input.admission.now_ms)
  query(INSERT_COMMAND, input.sid, 'originate', '{}', at)
  return { row }
}
