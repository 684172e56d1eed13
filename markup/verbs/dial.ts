import type { Move } from '../interpreter/turn.ts'
import type { Event } from '../interpreter/types.ts'
import { DIAL, type DialNode } from './dial/attributes.ts'
import * as children from './dial/children.ts'
import * as queueing from './dial/queue.ts'
import * as room from './dial/room.ts'
import type { DialState } from './dial/state.ts'
import { application } from './nouns/application.ts'
import { client } from './nouns/client.ts'
import { conference } from './nouns/conference.ts'
import { dialable, number } from './nouns/number.ts'
import { queue } from './nouns/queue.ts'
import { sip } from './nouns/sip.ts'
import { isNode, type Node, type Report, shape } from './shape.ts'
import { next, verb } from './verb.ts'

const MAX_CHILDREN = 10

/** Nouns of the compatible form that are not implemented here: their child fails (voice-compat.md §13). */
const sim = shape('Sim', {}, { content: 'text', unsupported: '<Sim> is not supported; its child fails' })
const whatsApp = shape('WhatsApp', {}, { content: 'text', unsupported: '<WhatsApp> is not supported; its child fails' })

export const dial = verb('Dial', DIAL, {
  content: 'text',
  nouns: [number, sip, client, conference, queue, application, sim, whatsApp],
  stray: 13215,
  answers: answersFirst,
  ends: node => node.attributes.action !== null,
  inspect,

  begin(node, turn) {
    const nouns = nounsOf(node)
    const first = nouns[0]
    if (!first) return next
    if (isNode(conference, first)) return room.begin(node, first, turn)
    if (isNode(queue, first)) return queueing.begin(node, first, turn)
    return children.begin(node, nouns, turn)
  },

  on(node, turn, state: DialState, event: Event): Move | undefined {
    if (state.mode === 'room') return room.on(node, turn, state, event)
    if (state.mode === 'queue') return queueing.on(node, turn, state, event)
    return children.on(node, nounsOf(node), turn, state, event)
  },

  cut(node, turn, state) {
    if (state.mode === 'room') room.cut(node, turn, state)
    else if (state.mode === 'queue') queueing.cut(node, turn, state)
    else children.cut(node, turn, state)
  },

  gone(node, turn, state) {
    if (state.mode === 'room') return room.gone(node, turn, state)
    if (state.mode === 'queue') return queueing.gone(node, turn, state)
    return children.gone(node, turn, state)
  },
})

/**
 * With answerOnBridge the caller is answered only after a child answers. Conferences and queues need an answered leg.
 */
function answersFirst(node: DialNode): boolean {
  const first = nounsOf(node)[0]
  if (!first) return false
  return !node.attributes.answerOnBridge || isNode(conference, first) || isNode(queue, first)
}

/** Returns the nouns to dial, or the text as a Number. A Conference, Queue or Application excludes all other nouns. */
function nounsOf(node: DialNode): readonly Node[] {
  if (node.nouns.length === 0) return node.text === '' ? [] : [plainNumber(node)]
  const alone = node.nouns.find(noun => isNode(conference, noun) || isNode(queue, noun) || isNode(application, noun))
  return alone ? [alone] : node.nouns.slice(0, MAX_CHILDREN)
}

function plainNumber(node: DialNode): Node {
  const attributes: Record<string, unknown> = {}
  for (const [name, type] of Object.entries(number.attributes)) attributes[name] = type.fallback
  const failed = dialable(node.text) === null ? 'not a telephone number' : null
  return {
    shape: number,
    element: node.element,
    attributes: attributes as Node['attributes'],
    given: new Set(),
    text: node.text,
    nouns: [],
    failed,
  }
}

function inspect(node: DialNode, report: Report): void {
  const about = { place: node.element, element: 'Dial' }
  const alone = node.nouns.find(noun => isNode(conference, noun) || isNode(queue, noun) || isNode(application, noun))
  if (node.nouns.length === 0 && node.text === '') {
    report({ ...about, rule: 'missing', number: 12200, detail: '<Dial> names nobody to call; it is skipped' })
  } else if (node.nouns.length === 0 && dialable(node.text) === null) {
    const detail = `"${node.text.slice(0, 60)}" is not a telephone number`
    report({ ...about, rule: 'content', number: 13223, effect: 'child', detail })
  } else if (node.nouns.length > 0 && node.text !== '') {
    report({ ...about, rule: 'content', number: 13215, detail: 'text beside the nouns of <Dial> is ignored' })
  }
  if (alone && node.nouns.length > 1) {
    const detail = `<${alone.shape.name}> stands alone in a <Dial>; the other nouns are ignored`
    report({ ...about, rule: 'content', number: 13000, detail, place: alone.element })
  }
  const extra = node.nouns[MAX_CHILDREN]
  if (extra) {
    const detail = `more than ${MAX_CHILDREN} nouns; the others are not called`
    report({ ...about, rule: 'content', number: 13250, detail, place: extra.element })
  }
}
