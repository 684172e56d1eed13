import type { Move, Turn } from '../../interpreter/turn.ts'
import type { ChildEnded, EndChild, Event } from '../../interpreter/types.ts'
import type { Node } from '../shape.ts'
import { stay, toAction } from '../verb.ts'
import type { DialNode } from './attributes.ts'
import { dialOutcomeOf, parameters, refusalOfDial } from './outcome.ts'
import { onRecording, startDialRecording, stopRecording } from './recording.ts'
import type { ChildrenState, ChildState } from './state.ts'
import { dialCommand } from './target.ts'

/**
 * Starts a Dial to telephones: all nouns at once, or one after another with `sequential` (voice-compat.md §10, Dial).
 */
export function begin(node: DialNode, nouns: readonly Node[], turn: Turn): Move {
  if (node.attributes.hangupOnStar) turn.emit({ type: 'digits_on' })
  turn.emit({ type: 'ring', country: node.attributes.ringTone })
  const state: ChildrenState = {
    mode: 'children',
    children: [],
    next: 0,
    winner: null,
    awaited: null,
    ring_timer: null,
    limit_timer: null,
    ringing: true,
    early: null,
    recording: null,
    outcome: null,
    gone: false,
  }
  return dialNext(node, nouns, turn, state)
}

export function on(
  node: DialNode,
  nouns: readonly Node[],
  turn: Turn,
  state: ChildrenState,
  event: Event,
): Move | undefined {
  const recording = onRecording(state.recording, event)
  if (recording) return settle(node, nouns, turn, { ...state, recording })
  switch (event.type) {
    case 'child_progress':
      return onProgress(node, nouns, turn, state, event)
    case 'child_answered':
      return onAnswered(nouns, turn, state, event.child, event.call_sid)
    case 'digits_sent':
      return event.id === state.awaited ? whisperOrBridge(nouns, turn, { ...state, awaited: null }) : undefined
    case 'whisper_ended':
      return onWhisperEnded(turn, state, event.child, event.outcome)
    case 'answered':
      return event.id === state.awaited ? join(turn, { ...state, awaited: null }) : undefined
    case 'bridged':
      return onBridged(node, turn, state, event.child)
    case 'child_ended':
      return onEnded(node, nouns, turn, state, event)
    case 'timer':
      return onTimer(turn, state, event.id)
    case 'digit':
      if (event.digit !== '*' || !node.attributes.hangupOnStar || state.outcome) return undefined
      turn.key_obeyed = true
      return stay(endAll(turn, { ...state, next: nouns.length }, 'canceled'))
    case 'refer_received':
      return onRefer(node, turn, state, event)
    default:
      return undefined
  }
}

/** Cuts the Dial for a new document from the API: ends the children and sends the action request without waiting. */
export function cut(node: DialNode, turn: Turn, state: ChildrenState): void {
  const status = state.children.some(child => child.stage === 'bridged') ? 'completed' : 'canceled'
  stopClocks(node, turn, state)
  endAll(turn, state, 'canceled')
  const recording = stopRecording(state.recording, turn)
  const last = state.outcome ?? dialOutcomeOf(state, null, status)
  turn.farewell(node.attributes.action, node.attributes.method, parameters(last, recording))
}

/** Handles the caller's hang-up: the action is requested once the children and the recording have ended. */
export function gone(node: DialNode, turn: Turn, state: ChildrenState): Move {
  stopClocks(node, turn, state)
  const ending = endAll(turn, { ...state, ringing: false, ring_timer: null, limit_timer: null }, 'canceled')
  return settleGone(node, turn, { ...ending, gone: true })
}

// ------------------------------------------------------------------------------------------------------- dialling

/** Dials all remaining nouns, or with `sequential` the next one that can be dialled. Skips nouns that cannot. */
function dialNext(node: DialNode, nouns: readonly Node[], turn: Turn, before: ChildrenState): Move {
  const { sequential } = node.attributes
  const children = [...before.children]
  let { next } = before
  let dialled = false
  while (next < nouns.length && !(sequential && dialled)) {
    const noun = nouns[next]
    if (noun && noun.failed === null && noun.shape.unsupported === null) {
      const child = turn.id('child')
      turn.emit(dialCommand(node, noun, child, turn))
      children.push({ child, noun: next, stage: 'calling', call_sid: null, ending: false })
      dialled = true
    }
    next++
  }
  const state = { ...before, children, next }
  if (!dialled) return finish(node, nouns, turn, { ...state, outcome: dialOutcomeOf(state, null, 'failed') })
  const ring_timer = turn.id('timer')
  turn.emit({ type: 'start_timer', id: ring_timer, ms: node.attributes.timeout * 1000 })
  return stay({ ...state, ring_timer } satisfies ChildrenState)
}

function onProgress(
  node: DialNode,
  nouns: readonly Node[],
  turn: Turn,
  state: ChildrenState,
  event: Extract<Event, { type: 'child_progress' }>,
): Move | undefined {
  const child = state.children.find(c => c.child === event.child)
  if (child?.stage !== 'calling' || child.ending) return undefined
  let after = update(state, child.child, { call_sid: event.call_sid })
  const alone = state.children.filter(c => c.stage !== 'over').length === 1
  if (event.state === 'early_media' && alone && state.early === null) {
    turn.emit({ type: 'relay_early_media', child: child.child })
    after = { ...after, early: child.child }
  }
  // Only a Dial with one noun knows while ringing which child it will record. Others record from the bridge on.
  const fromRinging = node.attributes.record.startsWith('record-from-ringing') && nouns.length === 1
  if (event.state !== 'initiated' && fromRinging && state.recording === null) {
    after = { ...after, recording: startDialRecording(node.attributes, child.child, turn) }
  }
  return stay(after)
}

function onTimer(turn: Turn, state: ChildrenState, id: string): Move | undefined {
  if (id === state.ring_timer) return stay(endAll(turn, { ...state, ring_timer: null }, 'timeout'))
  if (id === state.limit_timer) return stay(endAll(turn, { ...state, limit_timer: null }, 'completed'))
  return undefined
}

// ---------------------------------------------------------------------------------------- from answer to bridge

/** The first child to answer wins. Its digits and its whisper come before the bridge. */
function onAnswered(
  nouns: readonly Node[],
  turn: Turn,
  before: ChildrenState,
  child: string,
  call_sid: string,
): Move | undefined {
  const answered = before.children.find(c => c.child === child)
  // A child that is already ending lost the race: the executor hangs up on it and child_ended follows.
  if (answered?.stage !== 'calling' || answered.ending || before.winner !== null) return undefined
  if (before.ring_timer !== null) turn.emit({ type: 'cancel_timer', id: before.ring_timer })
  let state: ChildrenState = { ...update(before, child, { call_sid }), winner: child, ring_timer: null }
  for (const other of state.children) {
    if (other.child !== child) state = endChild(turn, state, other, 'lost')
  }
  const noun = nouns[answered.noun]
  const digits = noun?.attributes['sendDigits']
  if (typeof digits !== 'string') return whisperOrBridge(nouns, turn, state)
  const id = turn.id('digits')
  const apart = ringAgain(turn, state)
  turn.emit({ type: 'send_digits', id, leg: child, digits })
  return stay({ ...update(apart, child, { stage: 'digits' }), awaited: id })
}

function whisperOrBridge(nouns: readonly Node[], turn: Turn, state: ChildrenState): Move {
  const child = winnerOf(state)
  const noun = child && nouns[child.noun]
  const url = noun?.attributes['url']
  if (!child || typeof url !== 'string') return bridge(turn, state)
  const method = noun?.attributes['method'] === 'GET' ? 'GET' : 'POST'
  const target = turn.target(url, method, 11100)
  // A whisper without a usable URL fails: never bridge a child that has not heard its whisper.
  if (!target) return stay(endChild(turn, state, child, 'completed'))
  const apart = ringAgain(turn, state)
  turn.emit({ type: 'whisper', child: child.child, ...target })
  return stay(update(apart, child.child, { stage: 'whisper' }))
}

function onWhisperEnded(
  turn: Turn,
  state: ChildrenState,
  child: string,
  outcome: 'finished' | 'hangup' | 'failed',
): Move | undefined {
  const winner = winnerOf(state)
  if (winner?.child !== child || winner.stage !== 'whisper' || winner.ending) return undefined
  if (outcome === 'finished') return bridge(turn, state)
  return stay(endChild(turn, state, winner, 'completed'))
}

/** Answers the caller if that is still to do (answerOnBridge), then joins the legs. */
function bridge(turn: Turn, state: ChildrenState): Move {
  if (turn.answered || state.winner === null) return join(turn, state)
  const id = turn.id('answer')
  turn.emit({ type: 'answer', id })
  return stay({ ...update(state, state.winner, { stage: 'answering' }), awaited: id })
}

function join(turn: Turn, state: ChildrenState): Move {
  const winner = winnerOf(state)
  if (!winner || winner.ending) return stay(state)
  if (state.ringing) turn.emit({ type: 'stop_ring' })
  turn.emit({ type: 'bridge', child: winner.child })
  return stay({ ...update(state, winner.child, { stage: 'bridging' }), ringing: false })
}

function onBridged(node: DialNode, turn: Turn, state: ChildrenState, child: string): Move | undefined {
  const winner = winnerOf(state)
  if (winner?.child !== child || winner.stage !== 'bridging') return undefined
  const limit_timer = turn.id('timer')
  turn.emit({ type: 'start_timer', id: limit_timer, ms: node.attributes.timeLimit * 1000 })
  const records = node.attributes.record !== 'do-not-record' && state.recording === null
  const recording = records ? startDialRecording(node.attributes, child, turn) : state.recording
  return stay({ ...update(state, child, { stage: 'bridged' }), limit_timer, recording })
}

// ------------------------------------------------------------------------------------------------------- endings

function onEnded(
  node: DialNode,
  nouns: readonly Node[],
  turn: Turn,
  before: ChildrenState,
  event: ChildEnded,
): Move | undefined {
  const child = before.children.find(c => c.child === event.child)
  if (!child || child.stage === 'over') return undefined
  if (event.number !== null) {
    turn.warn(event.number, event.detail ?? 'the child failed', nouns[child.noun]?.element ?? null)
  }
  const won = before.winner === child.child
  const outcome = dialOutcomeOf(before, event, event.status)
  const state = update(before, child.child, { stage: 'over' })
  if (state.gone) return settleGone(node, turn, won || !state.outcome ? { ...state, outcome } : state)
  if (won) {
    const failedOver = !outcome.bridged && node.attributes.sequential && state.next < nouns.length
    if (failedOver) return dialNext(node, nouns, turn, ringAgain(turn, { ...state, winner: null, awaited: null }))
    return finish(node, nouns, turn, { ...state, outcome })
  }
  if (state.winner !== null || state.children.some(c => c.stage !== 'over')) return stay(state)
  if (state.ring_timer !== null) turn.emit({ type: 'cancel_timer', id: state.ring_timer })
  const rest = { ...state, ring_timer: null }
  if (node.attributes.sequential && state.next < nouns.length) {
    return dialNext(node, nouns, turn, ringAgain(turn, rest))
  }
  return finish(node, nouns, turn, { ...rest, outcome })
}

/** Returns the caller to ringback after early media: the child failed, or hears something before the bridge. */
function ringAgain(turn: Turn, state: ChildrenState): ChildrenState {
  if (state.early !== null) turn.emit({ type: 'ring', country: null })
  return { ...state, early: null }
}

function finish(node: DialNode, nouns: readonly Node[], turn: Turn, before: ChildrenState): Move {
  stopClocks(node, turn, before)
  return settle(node, nouns, turn, { ...before, ringing: false, ring_timer: null, limit_timer: null })
}

/** Ends the Dial once its outcome is known and its recording is complete. */
function settle(node: DialNode, _nouns: readonly Node[], turn: Turn, state: ChildrenState): Move {
  if (state.gone) return settleGone(node, turn, state)
  if (!state.outcome) return stay(state)
  const recording = stopRecording(state.recording, turn)
  if (recording && !recording.ended) return stay({ ...state, recording })
  if (!turn.answered) turn.refusal = refusalOfDial(state.outcome)
  return toAction(node.attributes, parameters(state.outcome, recording))
}

function settleGone(node: DialNode, turn: Turn, state: ChildrenState): Move {
  const recording = stopRecording(state.recording, turn)
  const waits = state.children.some(c => c.stage !== 'over') || (recording && !recording.ended)
  if (waits) return stay({ ...state, recording })
  const outcome = state.outcome ?? dialOutcomeOf(state, null, 'canceled')
  turn.farewell(node.attributes.action, node.attributes.method, parameters(outcome, recording))
  return { to: 'done', outcome: 'gone' }
}

/** Handles REFER from one side of the bridge: the other side continues with the document of referUrl. */
function onRefer(
  node: DialNode,
  turn: Turn,
  state: ChildrenState,
  event: Extract<Event, { type: 'refer_received' }>,
): Move | undefined {
  const winner = winnerOf(state)
  const { referUrl, referMethod } = node.attributes
  const target = turn.target(referUrl, referMethod, 11100)
  if (!target || winner?.stage !== 'bridged' || winner.ending) return undefined
  const parameters: Record<string, string> = { ReferTransferTarget: event.target }
  for (const [name, value] of Object.entries(event.headers)) parameters[`SipHeader_${name}`] = value
  stopClocks(node, turn, state)
  stopRecording(state.recording, turn)
  turn.emit({ type: 'answer_refer', leg: event.leg, sip_code: 202 })
  if (event.leg === 'self') {
    turn.emit({ type: 'transfer_child', child: winner.child, ...target, parameters })
    return { to: 'done', outcome: 'transferred' }
  }
  return { to: 'request', document: 'refer', url: target.url, method: target.method, parameters }
}

// -------------------------------------------------------------------------------------------------------- pieces

function winnerOf(state: ChildrenState): ChildState | undefined {
  return state.children.find(c => c.child === state.winner)
}

function update(state: ChildrenState, child: string, change: Partial<ChildState>): ChildrenState {
  return { ...state, children: state.children.map(c => (c.child === child ? { ...c, ...change } : c)) }
}

function endChild(turn: Turn, state: ChildrenState, child: ChildState, cause: EndChild['cause']): ChildrenState {
  if (child.stage === 'over' || child.ending) return state
  turn.emit({ type: 'end_child', child: child.child, cause })
  return update(state, child.child, { ending: true })
}

function endAll(turn: Turn, before: ChildrenState, cause: EndChild['cause']): ChildrenState {
  let state = before
  for (const child of before.children) {
    const bridged = child.stage === 'bridged' || child.stage === 'bridging'
    state = endChild(turn, state, child, bridged ? 'completed' : cause)
  }
  return state
}

function stopClocks(node: DialNode, turn: Turn, state: ChildrenState): void {
  for (const id of [state.ring_timer, state.limit_timer]) if (id !== null) turn.emit({ type: 'cancel_timer', id })
  if (state.ringing) turn.emit({ type: 'stop_ring' })
  if (node.attributes.hangupOnStar) turn.emit({ type: 'digits_off' })
}
