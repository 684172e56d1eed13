import { wouldAdmit } from './admission/own-line.ts'
import { take } from './admission/take.ts'
import { chainAudit } from './audit-chain.ts'
import { ceilings } from './ceilings/index.ts'
import { placeApiCall } from './place-call.ts'
import type { Query } from './query.ts'
import { decideNewCall, decideQueuedCall } from './running/admit.ts'
import { type Enqueued, enqueueCallback } from './running/callbacks.ts'
import { type ProjectEvent, queueProjectEvent } from './running/events.ts'
import { endLost, type FinalFacts, finish } from './running/finish.ts'
import { insertMessageRows } from './running/messages.ts'
import { insertCallRow, type NewCall } from './running/rows.ts'
import { writeSteps } from './running/write.ts'

/** All procedures. Only core/state calls them. Inputs and results are plain data. */
export const PROCEDURES = {
  take_admission: take,
  would_admit: wouldAdmit,
  extend_reservation: ceilings.extend,
  release_admission: ceilings.release,
  prune_hours: (query, _: null) => ceilings.prune(query),
  place_call: placeApiCall,
  append_audit: chainAudit,
  insert_call: (query, { call, now_ms }: { call: NewCall; now_ms: number }) => insertCallRow(query, call, now_ms),
  admit_call: decideNewCall,
  admit_queued_call: decideQueuedCall,
  write_call: writeSteps,
  finish_call: (query, { sid, facts }: { sid: string; facts: FinalFacts }) => finish(query, sid, facts) !== null,
  end_lost_call: endLost,
  insert_messages: insertMessageRows,
  enqueue_callback: (query, wanted: Enqueued) => enqueueCallback(query, wanted),
  queue_event: (query, { event, now_ms }: { event: ProjectEvent; now_ms: number }) =>
    queueProjectEvent(query, event, now_ms),
} as const satisfies Readonly<Record<string, (query: Query, input: never) => unknown>>

type Procedures = typeof PROCEDURES
export type ProcedureName = keyof Procedures
export type In<Name extends ProcedureName> = Parameters<Procedures[Name]>[1]
export type Out<Name extends ProcedureName> = ReturnType<Procedures[Name]>
