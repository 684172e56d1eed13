import type { Selectable, Updateable } from 'kysely'
import type { LegFigures } from '../../../domain/calls/leg-figures.ts'
import { iso } from '../../../runtime/clock.ts'
import type { CallAttemptTable, CallTable } from '../../db.ts'
import { inserting, type Query, updating } from '../query.ts'
import { PROGRESS_MARK, tellStatus } from './callbacks.ts'
import { addCarrierMedia } from './carrier-media.ts'
import { queueProjectEvent } from './events.ts'
import { type FinalFacts, finish } from './finish.ts'
import { changeRunningCall, findCallRow, type RecordedCall } from './rows.ts'

/** The progress of a running call, as its node writes it: several steps at once, in order. */
export type CallStep =
  | {
      /** The first or a further INVITE leaves. */
      readonly step: 'initiated'
      readonly at_ms: number
      readonly changes: Pick<Updateable<CallTable>, 'sip_call_id' | 'carrier_id' | 'application_id' | 'node_id'>
    }
  /** The first 18x arrives. */
  | { readonly step: 'ringing'; readonly at_ms: number }
  /** The call is answered. With `untold` its callback waits for the step `answer_told`. */
  | { readonly step: 'answered'; readonly at_ms: number; readonly untold?: boolean }
  /** The callback of the answer, with what machine detection has found. */
  | { readonly step: 'answer_told'; readonly at_ms: number; readonly extra: Readonly<Record<string, string>> }
  /** Another target is tried. */
  | { readonly step: 'attempt'; readonly attempt: NewAttempt; readonly at_ms: number }
  | { readonly step: 'attempt_changed'; readonly sequence: number; readonly changes: AttemptChanges }
  /** A leg has ended: its final media figures. The first ones count. */
  | { readonly step: 'leg'; readonly figures: LegFigures; readonly carrier_id: string | null }
  /** The call ends: status, CDR, slots, money and last callback. */
  | { readonly step: 'end'; readonly facts: FinalFacts }

type NewAttempt = Pick<CallAttemptTable, 'sequence' | 'target' | 'transport'> &
  Partial<Pick<Selectable<CallAttemptTable>, 'carrier_id'>>
type AttemptChanges = Partial<
  Omit<Selectable<CallAttemptTable>, 'id' | 'call_sid' | 'sequence' | 'target' | 'transport' | 'carrier_id'>
>

interface CallWrite {
  readonly sid: string
  readonly steps: readonly CallStep[]
}

export interface CallWritten {
  /** False: the call had already ended, and a change to it had no effect. */
  readonly running: boolean
  /** Number of callbacks and events queued. */
  readonly queued: number
  /** After an `end` step: how the call ended, now or earlier. */
  readonly end: Pick<
    RecordedCall,
    'status' | 'sip_code' | 'reason' | 'ended_by' | 'ended_at' | 'duration_seconds' | 'answered_at'
  > | null
}

/** Writes the steps of a call in order. */
export function writeSteps(query: Query, { sid, steps }: CallWrite): CallWritten {
  let written: CallWritten = { running: true, queued: 0, end: null }
  for (const step of steps) {
    const { running, queued, end } = writeStep(query, sid, step)
    written = { running: written.running && running, queued: written.queued + queued, end: end ?? written.end }
  }
  return written
}

const NOTHING: CallWritten = { running: true, queued: 0, end: null }

function writeStep(query: Query, sid: string, step: CallStep): CallWritten {
  switch (step.step) {
    case 'initiated':
      return progress(query, sid, 'initiated', { initiated_at: iso(step.at_ms), ...step.changes }, step.at_ms)
    case 'ringing':
      return progress(query, sid, 'ringing', { status: 'ringing', ringing_at: iso(step.at_ms) }, step.at_ms)
    case 'answered':
      return progress(
        query,
        sid,
        'answered',
        { status: 'in-progress', answered_at: iso(step.at_ms) },
        step.at_ms,
        step.untold,
      )
    case 'answer_told': {
      const row = findCallRow(query, sid)
      const told = query(ANSWER_TOLD, sid, iso(step.at_ms)).length > 0
      const facts = { now_ms: step.at_ms, extra: step.extra }
      const queued = row && !told ? tellStatus(query, row, 'answered', facts) : 0
      return { running: row !== undefined && row.ended_at === null, queued, end: null }
    }
    case 'attempt': {
      const { sequence, target, transport, carrier_id = null } = step.attempt
      query(INSERT_ATTEMPT, sid, sequence, target, transport, carrier_id, iso(step.at_ms), sid, sequence)
      return NOTHING
    }
    case 'attempt_changed':
      changeAttempt(query, step.changes, sid, step.sequence)
      return NOTHING
    case 'leg': {
      const { figures, carrier_id } = step
      const { leg_id, ended_at } = figures
      if (query(FIGURES, sid, leg_id).length > 0) return NOTHING
      insertFigures(query, { call_sid: sid, leg_id, ended_at, figures: JSON.stringify(figures) })
      if (carrier_id !== null) addCarrierMedia(query, carrier_id, figures)
      return NOTHING
    }
    case 'end':
      return end(query, sid, step.facts)
  }
}

// A writer that gets no answer to its commit writes the same steps again (decision 1053). Nothing is written or told a
// second time.
const INSERT_ATTEMPT = `insert into call_attempt (call_sid, sequence, target, transport, carrier_id, started_at)
  select ?, cast(? as integer), ?, ?, ?, ?
  where not exists (select 1 from call_attempt where call_sid = ? and sequence = ?)`
const ANSWER_TOLD = `select 1 as one from outbox where call_sid = ? and kind = 'status_callback' and created_at = ?
    and parameters like '%"CallStatus":"in-progress"%${PROGRESS_MARK}%'`
const FIGURES = 'select 1 as one from leg_figures where call_sid = ? and leg_id = ?'
const insertFigures = inserting('leg_figures', ['call_sid', 'leg_id', 'ended_at', 'figures'])
const changeAttempt = updating('call_attempt', 'call_sid = ? and sequence = ?')

function progress(
  query: Query,
  sid: string,
  event: 'initiated' | 'ringing' | 'answered',
  changes: Updateable<CallTable>,
  now_ms: number,
  untold = false,
): CallWritten {
  const known = findCallRow(query, sid)
  if (!known || known.ended_at !== null) return { running: false, queued: 0, end: null }
  if (hasHappened(known, changes)) return NOTHING
  const row = changeRunningCall(query, known, changes, now_ms)
  const { direction, from_number: from, to_number: to, status, project_id } = row
  const data = { sid, status, direction, from, to, at: iso(now_ms) }
  const queued = untold ? 0 : tellStatus(query, row, event, { now_ms })
  return {
    running: true,
    queued: queued + queueProjectEvent(query, { project_id, kind: `call.${event}`, data }, now_ms),
    end: null,
  }
}

/** Whether a call has the time of a step and all that came with it; its status may have changed since. */
const hasHappened = (known: RecordedCall, { status: _, ...changes }: Updateable<CallTable>): boolean =>
  Object.entries(changes).every(([name, value]) => value === undefined || value === known[name as keyof RecordedCall])

function end(query: Query, sid: string, facts: FinalFacts): CallWritten {
  const finished = finish(query, sid, facts)
  const row = finished?.row ?? findCallRow(query, sid)
  if (!row) return { running: false, queued: 0, end: null }
  const { status, sip_code, reason, ended_by, ended_at, duration_seconds, answered_at } = row
  return {
    running: finished !== null,
    queued: finished?.queued ?? 0,
    end: { status, sip_code, reason, ended_by, ended_at, duration_seconds, answered_at },
  }
}
