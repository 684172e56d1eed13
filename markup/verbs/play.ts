import type { Turn } from '../interpreter/turn.ts'
import type { Event, PlayItem } from '../interpreter/types.ts'
import { loop, pattern } from './attributes.ts'
import { playItems } from './playing.ts'
import type { Node } from './shape.ts'
import { next, stay, verb } from './verb.ts'

const ATTRIBUTES = {
  loop: loop(13410),
  digits: pattern(/^[0-9A-D#*wW]{1,500}$/, '0-9 A-D # * w W', { default: null, number: 13430 }),
}

interface DigitsState {
  readonly sending: string
}

export const play = verb('Play', ATTRIBUTES, {
  kinds: ['call', 'whisper', 'queue_wait', 'conference_wait'],
  content: 'text',
  inspect(node, report) {
    if (node.text !== '' || node.given.has('digits')) return
    const about = { place: node.element, element: 'Play' }
    report({ ...about, rule: 'missing', number: 12200, detail: '<Play> has neither a URL nor digits; it is skipped' })
  },
  begin(node, turn) {
    const { digits } = node.attributes
    if (digits === null) return playUrl(node, turn)
    const id = turn.id('digits')
    turn.emit({ type: 'send_digits', id, leg: 'self', digits })
    return stay({ sending: id } satisfies DigitsState)
  },
  on(node, turn, state: DigitsState | { play: string }, event: Event) {
    if ('play' in state) return playItems.steps.on(node, turn, state, event)
    return event.type === 'digits_sent' && event.id === state.sending ? playUrl(node, turn) : undefined
  },
  cut(node, turn, state) {
    if ('play' in state) playItems.steps.cut(node, turn, state)
  },
})

function playUrl(node: Node<typeof ATTRIBUTES>, turn: Turn) {
  const item = urlItem(node, turn)
  return item ? playItems(turn, [item]) : next
}

/** Returns the item that a Play plays; null when its URL is empty or cannot be fetched. */
export function urlItem(node: Node<typeof ATTRIBUTES>, turn: Turn): PlayItem | null {
  if (node.text === '') return null
  const url = turn.resolve(node.text)
  if (url === undefined) {
    const detail = `"${node.text.slice(0, 80)}" cannot be played: relative in a document without a base, or not http(s)`
    turn.warn(11100, detail, node.element)
    return null
  }
  return { kind: 'url', url, loop: node.attributes.loop }
}
