import type { Event } from '../interpreter/types.ts'
import { method, url } from './attributes.ts'
import { parameter } from './nouns/parameters.ts'
import { stream, streamCommand } from './nouns/stream.ts'
import { isNode, shape } from './shape.ts'
import { next, stay, toAction, verb } from './verb.ts'

const ATTRIBUTES = { action: url(), method: method() }

/** Nouns of the compatible form that are not implemented here (voice-compat.md §13). */
const UNSUPPORTED = [
  'ConversationRelay',
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
  readonly stream: string
}

export const connect = verb('Connect', ATTRIBUTES, {
  nouns: [stream, ...UNSUPPORTED],
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
    const id = turn.id('stream')
    const command = isNode(stream, noun) ? streamCommand(noun, id, true, turn) : null
    if (!command) return toAction(node.attributes, {})
    turn.emit(command)
    return stay({ stream: id } satisfies ConnectState)
  },

  on(node, turn, state: ConnectState, event: Event) {
    if (event.type !== 'stream_ended' || event.id !== state.stream) return undefined
    if (event.number !== null) turn.note('error', event.number, event.detail ?? 'the stream broke off')
    return toAction(node.attributes, {})
  },

  cut(_node, turn, state) {
    turn.emit({ type: 'stop_stream', id: state.stream })
  },

  gone(node, turn) {
    turn.farewell(node.attributes.action, node.attributes.method, {})
    return { to: 'done', outcome: 'gone' }
  },
})
