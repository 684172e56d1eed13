import type { Move, Turn } from '../../interpreter/turn.ts'
import type { Event } from '../../interpreter/types.ts'
import { joinCommand } from '../nouns/conference.ts'
import { stay, toAction } from '../verb.ts'
import type { DialNode } from './attributes.ts'
import type { RoomState } from './state.ts'

/** Starts a Dial Conference: the leg stays until it leaves, is removed, or reaches the time limit. */
export function begin(node: DialNode, noun: Parameters<typeof joinCommand>[0], turn: Turn): Move {
  if (noun.failed !== null) return end(node, 'failed')
  const id = turn.id('conference')
  if (node.attributes.hangupOnStar) turn.emit({ type: 'digits_on' })
  turn.emit(joinCommand(noun, id, turn, node.attributes.record.endsWith('-dual')))
  return stay({ mode: 'room', id, joined: false, limit_timer: null } satisfies RoomState)
}

export function on(node: DialNode, turn: Turn, state: RoomState, event: Event): Move | undefined {
  switch (event.type) {
    case 'conference_joined': {
      if (event.id !== state.id || state.joined) return undefined
      const timer = turn.id('timer')
      turn.emit({ type: 'start_timer', id: timer, ms: node.attributes.timeLimit * 1000 })
      return stay({ ...state, joined: true, limit_timer: timer })
    }
    case 'timer':
      if (event.id !== state.limit_timer) return undefined
      turn.emit({ type: 'leave_conference', id: state.id })
      return stay({ ...state, limit_timer: null })
    case 'digit':
      if (event.digit !== '*' || !node.attributes.hangupOnStar) return undefined
      turn.key_obeyed = true
      turn.emit({ type: 'leave_conference', id: state.id })
      return stay(state)
    case 'conference_left': {
      if (event.id !== state.id) return undefined
      stopClocks(node, turn, state)
      if (event.number === null) return end(node, 'answered')
      turn.note('error', event.number, event.detail ?? 'the conference could not be entered')
      return end(node, 'failed')
    }
    default:
      return undefined
  }
}

export function cut(node: DialNode, turn: Turn, state: RoomState): void {
  stopClocks(node, turn, state)
  turn.emit({ type: 'leave_conference', id: state.id })
  farewell(node, turn)
}

export function gone(node: DialNode, turn: Turn, state: RoomState): Move {
  stopClocks(node, turn, state)
  farewell(node, turn)
  return { to: 'done', outcome: 'gone' }
}

function farewell(node: DialNode, turn: Turn): void {
  turn.farewell(node.attributes.action, node.attributes.method, { DialCallStatus: 'answered' })
}

function stopClocks(node: DialNode, turn: Turn, state: RoomState): void {
  if (state.limit_timer !== null) turn.emit({ type: 'cancel_timer', id: state.limit_timer })
  if (node.attributes.hangupOnStar) turn.emit({ type: 'digits_off' })
}

function end({ attributes }: DialNode, status: 'answered' | 'failed'): Move {
  return toAction(attributes, { DialCallStatus: status })
}
