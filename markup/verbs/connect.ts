import type { Turn } from '../interpreter/turn.ts'
import type { Event, FormParameters, RelayEnded } from '../interpreter/types.ts'
import { method, url } from './attributes.ts'
import { conversationRelay, relayCommand } from './nouns/conversation-relay.ts'
import { parameter } from './nouns/parameters.ts'
import { stream, streamCommand } from './nouns/stream.ts'
import { isNode, type Node, shape } from './shape.ts'
import { next, stay, toAction, verb } from './verb.ts'

const ATTRIBUTES = { action: url(), method: method() }

/** Nouns of the compatible form that are not implemented here (voice-compat.md §13). */
const UNSUPPORTED = [
  'Room',
  'VirtualAgent',
  'Conversation',
  'Autopilot',
  'AiSession',
  'ConversationRelaySession',
  'Assistant',
].map(name => {
  const unsupported = `<${name}> is not supported; the script goes on after <Connect>`
  return shape(name, {}, { content: 'tree', nouns: [parameter], unsupported })
})

interface ConnectState {
  readonly id: string
  readonly kind: 'stream' | 'relay'
  /** The caller has hung up; the action is told when the session's end is known. */
  readonly gone?: true
}

export const connect = verb('Connect', ATTRIBUTES, {
  nouns: [stream, conversationRelay, ...UNSUPPORTED],
  ends: node => node.attributes.action !== null,
  inspect(node, report) {
    const about = { rule: 'content', number: 12200, element: 'Connect' } as const
    if (node.nouns.length === 0) {
      report({ ...about, rule: 'missing', detail: '<Connect> has no noun; it is skipped', place: node.element })
    }
    const extra = node.nouns[1]
    if (extra) report({ ...about, detail: '<Connect> takes one noun; the others are ignored', place: extra.element })
  },
  answers: node => node.nouns[0]?.shape.unsupported === null,

  begin(node, turn) {
    const noun = node.nouns[0]
    if (!noun) return next
    const begun = begin(noun, turn)
    return begun === null ? toAction(node.attributes, {}) : stay(begun)
  },

  on(node, turn, state: ConnectState, event: Event) {
    if (event.type !== 'stream_ended' && event.type !== 'relay_ended') return undefined
    if (event.id !== state.id) return undefined
    if (event.number !== null) turn.note('error', event.number, event.detail ?? 'the connection broke off')
    const parameters = event.type === 'relay_ended' ? sessionParameters(event) : {}
    if (!state.gone) return toAction(node.attributes, parameters)
    turn.farewell(node.attributes.action, node.attributes.method, parameters)
    return { to: 'done', outcome: 'gone' }
  },

  cut(_node, turn, { id, kind }) {
    turn.emit(kind === 'stream' ? { type: 'stop_stream', id } : { type: 'stop_relay', id })
  },

  gone(node, turn, state) {
    if (state.kind === 'relay') return stay({ ...state, gone: true } satisfies ConnectState)
    turn.farewell(node.attributes.action, node.attributes.method, {})
    return { to: 'done', outcome: 'gone' }
  },
})

function begin(noun: Node, turn: Turn): ConnectState | null {
  const kind = isNode(conversationRelay, noun) ? 'relay' : 'stream'
  const id = turn.id(kind)
  const command = isNode(conversationRelay, noun)
    ? relayCommand(noun, id, turn)
    : isNode(stream, noun)
      ? streamCommand(noun, id, true, turn)
      : null
  if (command) turn.emit(command)
  return command && { id, kind }
}

/** What the action learns about the session (voice-compat.md §12.6). */
function sessionParameters(event: RelayEnded): FormParameters {
  return {
    SessionId: event.session_id,
    SessionStatus: event.status,
    SessionDuration: String(event.duration_seconds),
    ...(event.hand_off === null ? {} : { HandoffData: event.hand_off }),
    ...(event.number === null ? {} : { ErrorCode: String(event.number), ErrorMessage: event.detail ?? '' }),
  }
}
