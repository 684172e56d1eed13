import type { Selectable, Updateable } from 'kysely'
import type { LegFigures } from '../../../domain/calls/leg-figures.ts'
import { iso } from '../../../runtime/clock.ts'
import type { CallAttemptTable, CallTable } from '../../db.ts'
import { inserting, type Query, updating } from '../admission/steps.ts'
import { tellStatus } from './callbacks.ts'
import { queueEvent } from './events.ts'
import { type FinalFacts, finish } from './finish.ts'
import { changeRunningCall, findCall, type RecordedCall } from './rows.ts'

/** The progress of a running call, as its node writes it: several steps at once, in order. */
export type CallStep =
  | {
      /** The first or a further INVITE leaves. */
      readonly step: 'initiated'
      readonly at_ms: number
      readonly changes: Pick<Updateable<CallTable>, 'sip_call_id' | 'carrier_id' | 'application_id' | 'node_id'>
    }
  /** The first 18x arrives; the call is answered. */
  | { readonly step: 'ringing' | 'answered'; readonly at_ms: number }
  /** Another target is tried. */
  | { readonly step: 'attempt'; readonly attempt: NewAttempt; readonly at_ms: number }
  | { readonly step: 'attempt_changed'; readonly sequence: number; readonly changes: AttemptChanges }
  /** A leg has ended: its final media figures. The first ones count. */
  | { readonly step: 'leg'; readonly figures: LegFigures }
  /** The call ends: status, CDR, slots, money and last callback. */
  | { readonly step: 'end'; readonly facts: FinalFacts }

type NewAttempt = Pick<CallAttemptTable, 'sequence' | 'target' | 'transport'>
type AttemptChanges = Partial<
  Omit<Selectable<CallAttemptTable>, 'id' | 'call_sid' | 'sequence' | 'target' | 'transport'>
>

interface CallWrite {
  readonly sid: string
  readonly steps: readonly CallStep[]
}

export interface CallWritten {
  /** False: the call had already ended, and a change to it had no effect. */
  readonly running: boolean
  /** Number of callbacks and events queued. */
  readonly told: number
  /** After an `end` step: how the call ended, now or earlier. */
  readonly end: Pick<
    RecordedCall,
    'status' | 'sip_code' | 'reason' | 'ended_by' | 'ended_at' | 'duration_seconds' | 'answered_at'
  > | null
}

/** Writes the steps of a call in order. */
export function writeCall(query: Query, { sid, steps }: CallWrite): CallWritten {
  let written: CallWritten = { running: true, told: 0, end: null }
  for (const step of steps) {
    const { running, told, end } = writeStep(query, sid, step)
    written = { running: written.running && running, told: written.told + told, end: end ?? written.end }
  }
  return written
}

const NOTHING: CallWritten = { running: true, told: 0, end: null }

function writeStep(query: Query, sid: string, step: CallStep): CallWritten {
  switch (step.step) {
    case 'initiated':
      return progress(query, sid, 'initiated', { initiated_at: iso(step.at_ms), ...step.changes }, step.at_ms)
    case 'ringing':
      return progress(query, sid, 'ringing', { status: 'ringing', ringing_at: iso(step.at_ms) }, step.at_ms)
    case 'answered':
      return progress(query, sid, 'answered', { status: 'in-progress', answered_at: iso(step.at_ms) }, step.at_ms)
    case 'attempt':
      insertAttempt(query, { call_sid: sid, ...step.attempt, started_at: iso(step.at_ms) })
      return NOTHING
    case 'attempt_changed':
      changeAttempt(query, step.changes, sid, step.sequence)
      return NOTHING
    case 'leg':
      insertFigures(query, {
        call_sid: sid,
        leg_id: step.figures.leg_id,
        ended_at: step.figures.ended_at,
        figures: JSON.stringify(step.figures),
      })
      return NOTHING
    case 'end':
      return end(query, sid, step.facts)
  }
}

const insertAttempt = inserting('call_attempt', ['call_sid', 'sequence', 'target', 'transport', 'started_at'])
const insertFigures = inserting('leg_figures', ['call_sid', 'leg_id', 'ended_at', 'figures'], 'on conflict do nothing')
const changeAttempt = updating('call_attempt', 'call_sid = ? and sequence = ?')

function progress(
  query: Query,
  sid: string,
  event: 'initiated' | 'ringing' | 'answered',
  changes: Updateable<CallTable>,
  now_ms: number,
): CallWritten {
  const row = changeRunningCall(query, sid, changes, now_ms)
  if (!row) return { running: false, told: 0, end: null }
  const { direction, from_number: from, to_number: to, status, project_id } = row
  const data = { sid, status, direction, from, to, at: iso(now_ms) }
  const told = tellStatus(query, row, event, { now_ms })
  return {
    running: true,
    told: told + queueEvent(query, { project_id, kind: `call.${event}`, data }, now_ms),
    end: null,
  }
}

function end(query: Query, sid: string, facts: FinalFacts): CallWritten {
  const finished = finish(query, sid, facts)
  const row = finished?.row ?? findCall(query, sid)
  if (!row) return { running: false, told: 0, end: null }
  const { status, sip_code, reason, ended_by, ended_at, duration_seconds, answered_at } = row
  return {
    running: finished !== null,
    told: finished?.told ?? 0,
    end: { status, sip_code, reason, ended_by, ended_at, duration_seconds, answered_at },
  }
}
