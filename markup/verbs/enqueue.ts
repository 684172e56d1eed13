import type { Turn } from '../interpreter/turn.ts'
import type { Event } from '../interpreter/types.ts'
import { integer, method, text, url } from './attributes.ts'
import { isNode, type Node, shape } from './shape.ts'
import { stay, toAction, verb } from './verb.ts'

const task = shape('Task', {}, { content: 'tree', unsupported: '<Task> is not supported; the queue is not entered' })

const ATTRIBUTES = {
  action: url(14203, 'document'),
  method: method(14201, 'document'),
  waitUrl: url(14202, 'document'),
  waitUrlMethod: method(14206, 'document'),
  maxQueueSize: integer({ default: null, min: 1, max: 1000 }),
  workflowSid: text({ max: 64 }),
}

type EnqueueNode = Node<typeof ATTRIBUTES>

interface EnqueueState {
  readonly queue: string
  readonly sid: string | null
  readonly bridged: boolean
}

export const enqueue = verb('Enqueue', ATTRIBUTES, {
  content: 'text',
  nouns: [task],
  ends: node => node.attributes.action !== null,
  inspect({ text, element, attributes }, report) {
    const about = { place: element, element: 'Enqueue', rule: 'content' } as const
    if (attributes.workflowSid !== null) {
      const detail = 'workflows are not supported; the queue is not entered'
      report({ ...about, rule: 'not_supported', number: 12200, detail })
    } else if (text === '' && !element.children.some(child => typeof child !== 'string' && child.name === 'Task')) {
      report({ ...about, number: 14204, effect: 'document', detail: 'the name of the queue is missing' })
    } else if (text.length > 64) {
      report({ ...about, number: 14205, effect: 'document', detail: 'the name of the queue has over 64 characters' })
    }
  },

  begin(node, turn) {
    if (node.attributes.workflowSid !== null || node.nouns.some(noun => isNode(task, noun))) {
      return toAction(node.attributes, { QueueResult: 'error', QueueTime: '0' })
    }
    const { waitUrl, waitUrlMethod, maxQueueSize } = node.attributes
    const wait = turn.target(waitUrl, waitUrlMethod, 14202)
    const id = turn.id('queue')
    turn.emit({ type: 'enqueue', id, name: node.text, max_size: maxQueueSize, wait })
    return stay({ queue: id, sid: null, bridged: false } satisfies EnqueueState)
  },

  on(node, turn, state: EnqueueState, event: Event) {
    if (!('id' in event) || event.id !== state.queue) return undefined
    if (event.type === 'queue_joined') return stay({ ...state, sid: event.queue_sid })
    if (event.type === 'queue_bridged') return stay({ ...state, bridged: true })
    if (event.type !== 'queue_left') return undefined
    if (event.result === 'queue-full') turn.warn(14207, `the queue "${node.text}" is full`)
    const sid = event.queue_sid ?? state.sid
    const parameters = { QueueResult: event.result, ...sidOf(sid), QueueTime: String(event.queue_time_seconds) }
    if (event.result !== 'hangup') return toAction(node.attributes, parameters)
    turn.farewell(node.attributes.action, node.attributes.method, parameters)
    return { to: 'done', outcome: 'gone' }
  },

  cut(node, turn, state) {
    leaveNow(node, turn, state, state.bridged ? 'redirected-from-bridged' : 'redirected')
  },

  gone(node, turn, state) {
    leaveNow(node, turn, state, state.bridged ? 'bridged' : 'hangup')
    return { to: 'done', outcome: 'gone' }
  },
})

function leaveNow(node: EnqueueNode, turn: Turn, state: EnqueueState, result: string): void {
  const { action, method } = node.attributes
  const farewell = turn.farewellOf(action, method, { QueueResult: result, ...sidOf(state.sid) })
  turn.emit({ type: 'leave_queue', id: state.queue, ...(farewell ? { farewell } : {}) })
}

function sidOf(sid: string | null): Record<string, string> {
  return sid === null ? {} : { QueueSid: sid }
}
