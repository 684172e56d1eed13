import type { Command, Event } from '../../markup/interpreter/types.ts'

/** Ids and URLs of a simulated run. */
export const SIMULATED = {
  call_sid: `CA${'2'.repeat(32)}`,
  recording: { sid: `RE${'3'.repeat(32)}`, url: 'https://our.example.test/Recordings/RE3.wav' },
} as const

export interface Habits {
  /** Keys that the caller presses as soon as the script listens. */
  readonly keys?: string
  /** What the caller says; absent for silence. */
  readonly speech?: string
  /** How a dialled child ends; absent for a child that answers. */
  readonly child?: 'busy' | 'no-answer' | 'failed'
}

/** Simulates the executor without a telephone: returns the events that may answer a command, in their usual order. */
export function answersTo(command: Command, habits: Habits = {}): readonly Event[] {
  switch (command.type) {
    case 'answer':
      return [{ type: 'answered', id: command.id }]
    case 'play':
      return [{ type: 'play_ended', id: command.id, failures: [] }]
    case 'digits_on':
      return [...(habits.keys ?? '')].map(digit => ({ type: 'digit', digit }))
    case 'send_digits':
      return [{ type: 'digits_sent', id: command.id }]
    case 'recognize':
      return heard(command.id, habits.speech)
    case 'record':
      return [recordEnded(command.id, 'silence')]
    case 'stop_record':
      return [recordEnded(command.id, 'stopped')]
    case 'dial_child':
      return habits.child ? [...rung(command.child), ended(command.child, habits.child)] : answered(command.child)
    case 'end_child':
      return [ended(command.child, command.cause === 'timeout' ? 'no-answer' : 'canceled')]
    case 'whisper':
      return [{ type: 'whisper_ended', child: command.child, outcome: 'finished' }]
    case 'bridge':
      return [{ type: 'bridged', child: command.child }, ended(command.child, 'completed')]
    case 'start_recording':
      return [{ type: 'recording_started', id: command.id, ...SIMULATED.recording }]
    case 'stop_recording':
      return [{ type: 'recording_ended', id: command.id, recording: { ...SIMULATED.recording, duration_seconds: 9 } }]
    default:
      return answersToRooms(command)
  }
}

function answersToRooms(command: Command): readonly Event[] {
  switch (command.type) {
    case 'join_conference':
      return [
        { type: 'conference_joined', id: command.id, conference_sid: 'CF1' },
        { type: 'conference_left', id: command.id, number: null, detail: null },
      ]
    case 'enqueue':
      return [
        { type: 'queue_joined', id: command.id, queue_sid: 'QU1' },
        { type: 'queue_bridged', id: command.id },
        { type: 'queue_left', id: command.id, result: 'bridged', queue_sid: 'QU1', queue_time_seconds: 31 },
      ]
    case 'dequeue':
      return [
        {
          type: 'dequeue_bridged',
          id: command.id,
          queue_sid: 'QU1',
          call_sid: SIMULATED.call_sid,
          queue_time_seconds: 31,
        },
        { type: 'dequeue_ended', id: command.id, result: 'bridged', duration_seconds: 40 },
      ]
    case 'refer':
      return [
        { type: 'refer_accepted', id: command.id, sip_code: 202 },
        { type: 'refer_ended', id: command.id, sip_code: 202, notify_code: 200 },
      ]
    case 'start_stream':
      return command.both_ways ? [{ type: 'stream_ended', id: command.id, number: null, detail: null }] : []
    case 'start_relay':
      return [
        {
          type: 'relay_ended',
          id: command.id,
          session_id: `VX${'0'.repeat(31)}1`,
          status: 'ended',
          duration_seconds: 20,
          hand_off: null,
          number: null,
          detail: null,
        },
      ]
    case 'start_echo':
      return [{ type: 'hangup' }]
    default:
      return []
  }
}

function heard(id: string, text: string | undefined): readonly Event[] {
  if (text === undefined) return [{ type: 'speech_result', id, text: '', confidence: 0, language: null }]
  return [
    { type: 'speech_started', id },
    { type: 'speech_result', id, text, confidence: 0.9, language: 'en-US' },
  ]
}

function recordEnded(id: string, reason: 'silence' | 'stopped'): Event {
  return {
    type: 'record_ended',
    id,
    reason,
    key: null,
    recording: { ...SIMULATED.recording, duration_seconds: 5 },
    absent: null,
  }
}

function rung(child: string): readonly Event[] {
  const call_sid = SIMULATED.call_sid
  return [
    { type: 'child_progress', child, state: 'initiated', call_sid },
    { type: 'child_progress', child, state: 'ringing', call_sid },
  ]
}

function answered(child: string): readonly Event[] {
  return [...rung(child), { type: 'child_answered', child, call_sid: SIMULATED.call_sid }]
}

function ended(child: string, status: Extract<Event, { type: 'child_ended' }>['status']): Event {
  return {
    type: 'child_ended',
    child,
    status,
    call_sid: SIMULATED.call_sid,
    duration_seconds: status === 'completed' ? 12 : null,
    sip_code: { completed: 200, busy: 486, 'no-answer': 487, failed: 503, canceled: 487 }[status],
    sip_call_id: 'b-leg@edge',
    headers: {},
    number: null,
    detail: null,
  }
}
