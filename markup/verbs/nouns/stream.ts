import type { Turn } from '../../interpreter/turn.ts'
import type { StartStream } from '../../interpreter/types.ts'
import { choice, ignored, method, socketUrl, text, url } from '../attributes.ts'
import { type Node, shape } from '../shape.ts'
import { inspectParameters, parameter, parametersOf } from './parameters.ts'

const ATTRIBUTES = {
  url: socketUrl(31922),
  name: text({ max: 64 }),
  track: choice(['inbound_track', 'outbound_track', 'both_tracks'], { default: 'inbound_track', number: 31941 }),
  statusCallback: url(),
  statusCallbackMethod: method(),
  connectorName: ignored(),
  audioFormat: ignored(),
  sampleRate: ignored(),
}

export const stream = shape('Stream', ATTRIBUTES, {
  nouns: [parameter],
  inspect(node, report) {
    inspectParameters(node, report)
    const written = node.element.attributes['url']?.value.trim()
    if (node.attributes.url !== null || (written !== undefined && written !== '')) return
    const detail = '<Stream> has no url; it is not started'
    report({ rule: 'missing', number: 31923, detail, place: node.element, element: 'Stream' })
  },
})

/** Returns the command of a Stream; null when it cannot start. The document's findings include the fault. */
export function streamCommand(
  node: Node<typeof ATTRIBUTES>,
  id: string,
  bothWays: boolean,
  turn: Turn,
): StartStream | null {
  const { attributes } = node
  if (attributes.url === null) return null
  if (bothWays && attributes.track !== 'inbound_track')
    turn.warn(31941, 'track of <Stream> has no effect in <Connect>, which carries what the caller says', node.element)
  return {
    type: 'start_stream',
    id,
    name: attributes.name,
    url: attributes.url,
    // A stream that also plays to the caller carries only what the caller says.
    track: bothWays ? 'inbound_track' : attributes.track,
    both_ways: bothWays,
    parameters: parametersOf(node),
    status_callback: turn.target(attributes.statusCallback, attributes.statusCallbackMethod, 11100),
  }
}
