import type { Move, Turn } from '../../interpreter/turn.ts'
import type { Event } from '../../interpreter/types.ts'
import type { queue } from '../nouns/queue.ts'
import type { Node } from '../shape.ts'
import { stay, toAction } from '../verb.ts'
import type { DialNode } from './attributes.ts'
import { dialRecordingParameters, onRecording, startDialRecording, stopRecording } from './recording.ts'
import type { QueueState } from './state.ts'

/** Starts a Dial Queue: the agent gets the head caller. An explicit `timeout` limits the wait on an empty queue. */
export function begin(node: DialNode, noun: Node<typeof queue.attributes>, turn: Turn): Move {
  const id = turn.id('dequeue')
  const state: QueueState = {
    mode: 'queue',
    id,
    wait_timer: null,
    limit_timer: null,
    recording: null,
    bridged: null,
    ended: null,
    gone: false,
  }
  if (noun.given.has('reservationSid')) {
    return settle(node, turn, { ...state, ended: { result: 'error', duration_seconds: null } })
  }
  if (node.attributes.hangupOnStar) turn.emit({ type: 'digits_on' })
  const whisper = turn.target(noun.attributes.url, noun.attributes.method, 14211)
  turn.emit({ type: 'dequeue', id, name: noun.text, whisper })
  if (!node.given.has('timeout')) return stay(state)
  return stay({ ...state, wait_timer: clock(turn, node.attributes.timeout) } satisfies QueueState)
}

export function on(node: DialNode, turn: Turn, state: QueueState, event: Event): Move | undefined {
  const recording = onRecording(state.recording, event)
  if (recording) return settle(node, turn, { ...state, recording })
  switch (event.type) {
    case 'dequeue_found':
      if (event.id !== state.id || state.ended) return undefined
      if (state.wait_timer !== null) turn.emit({ type: 'cancel_timer', id: state.wait_timer })
      return stay({ ...state, wait_timer: null } satisfies QueueState)
    case 'dequeue_bridged': {
      if (event.id !== state.id || state.bridged) return undefined
      // A keeper of an older version does not tell that it has found a caller.
      if (state.wait_timer !== null) turn.emit({ type: 'cancel_timer', id: state.wait_timer })
      const { queue_sid, call_sid, queue_time_seconds } = event
      return stay({
        ...state,
        wait_timer: null,
        limit_timer: clock(turn, node.attributes.timeLimit),
        recording: node.attributes.record === 'do-not-record' ? null : startDialRecording(node.attributes, null, turn),
        bridged: { queue_sid, call_sid, queue_time_seconds },
      } satisfies QueueState)
    }
    case 'timer':
      if (event.id !== state.wait_timer && event.id !== state.limit_timer) return undefined
      turn.emit({ type: 'stop_dequeue', id: state.id })
      return stay({ ...state, wait_timer: null, limit_timer: null } satisfies QueueState)
    case 'digit':
      if (event.digit !== '*' || !node.attributes.hangupOnStar || state.ended) return undefined
      turn.key_obeyed = true
      turn.emit({ type: 'stop_dequeue', id: state.id })
      return stay(state)
    case 'dequeue_ended': {
      if (event.id !== state.id || state.ended) return undefined
      stopClocks(node, turn, state)
      const ended = { result: event.result, duration_seconds: event.duration_seconds }
      return settle(node, turn, { ...state, wait_timer: null, limit_timer: null, ended })
    }
    default:
      return undefined
  }
}

export function cut(node: DialNode, turn: Turn, state: QueueState): void {
  if (!state.ended) stop(node, turn, state)
  stopRecording(state.recording, turn)
  const ended = state.ended ?? endedBy(state, 'redirected')
  turn.farewell(node.attributes.action, node.attributes.method, parameters({ ...state, ended }))
}

export function gone(node: DialNode, turn: Turn, state: QueueState): Move {
  if (!state.ended) stop(node, turn, state)
  return settle(node, turn, { ...state, ended: state.ended ?? endedBy(state), gone: true })
}

function endedBy(state: QueueState, unmet = 'queue-empty'): NonNullable<QueueState['ended']> {
  return { result: state.bridged ? 'bridged' : unmet, duration_seconds: null }
}

function stop(node: DialNode, turn: Turn, state: QueueState): void {
  stopClocks(node, turn, state)
  turn.emit({ type: 'stop_dequeue', id: state.id })
}

/** Ends the Dial once the dequeue has ended and the recording is complete. */
function settle(node: DialNode, turn: Turn, state: QueueState): Move {
  if (!state.ended) return stay(state)
  const recording = stopRecording(state.recording, turn)
  if (recording && !recording.ended) return stay({ ...state, recording })
  const { action, method } = node.attributes
  if (state.gone) {
    turn.farewell(action, method, parameters(state))
    return { to: 'done', outcome: 'gone' }
  }
  return toAction(node.attributes, parameters(state))
}

/** The DialCallStatus of an agent who has talked with no caller, by its DequeueResult. */
const UNMET: Readonly<Record<string, string>> = { error: 'failed', redirected: 'canceled' }

function parameters({ bridged, ended, recording }: QueueState): Record<string, string> {
  const unmet = UNMET[ended?.result ?? 'error'] ?? 'no-answer'
  return {
    DialCallStatus: bridged ? 'completed' : unmet,
    DequeueResult: ended?.result ?? 'error',
    ...(bridged && {
      QueueSid: bridged.queue_sid,
      DequeuedCallSid: bridged.call_sid,
      DequeuedCallQueueTime: String(bridged.queue_time_seconds),
    }),
    ...(ended?.duration_seconds == null ? {} : { DequeuedCallDuration: String(ended.duration_seconds) }),
    ...dialRecordingParameters(recording),
  }
}

function clock(turn: Turn, seconds: number): string {
  const id = turn.id('timer')
  turn.emit({ type: 'start_timer', id, ms: seconds * 1000 })
  return id
}

function stopClocks(node: DialNode, turn: Turn, state: QueueState): void {
  for (const id of [state.wait_timer, state.limit_timer]) if (id !== null) turn.emit({ type: 'cancel_timer', id })
  if (node.attributes.hangupOnStar) turn.emit({ type: 'digits_off' })
}
