import type { Turn } from '../../interpreter/turn.ts'
import type { ChildTarget, DialChild } from '../../interpreter/types.ts'
import { application, applicationIdOf } from '../nouns/application.ts'
import { client, identityOf } from '../nouns/client.ts'
import { dialable, number } from '../nouns/number.ts'
import { parametersOf } from '../nouns/parameters.ts'
import { machineDetection, statusCallback } from '../nouns/shared.ts'
import { sip, sipTarget } from '../nouns/sip.ts'
import { isNode, type Node } from '../shape.ts'
import type { DialNode } from './attributes.ts'

/** Returns the command that dials the child of a valid noun. */
export function dialCommand(node: DialNode, noun: Node, child: string, turn: Turn): DialChild {
  const { callerId } = node.attributes
  const detects = isNode(number, noun) || isNode(sip, noun)
  const calls = isNode(number, noun) || isNode(sip, noun) || isNode(client, noun) || isNode(application, noun)
  return {
    type: 'dial_child',
    child,
    target: targetOf(noun),
    caller_id: callerId ?? turn.facts.leg.from,
    caller_id_source: callerId === null ? 'parent' : 'attribute',
    status_callback: calls ? statusCallback(noun.attributes, turn) : null,
    machine_detection: detects ? machineDetection(noun.attributes, turn) : null,
  }
}

function targetOf(noun: Node): ChildTarget {
  if (isNode(sip, noun)) {
    const target = sipTarget(noun, () => {})
    return 'refused' in target ? { kind: 'sip', uris: [], headers: [] } : { kind: 'sip', ...target }
  }
  if (isNode(client, noun)) return { kind: 'client', identity: identityOf(noun), parameters: parametersOf(noun) }
  if (isNode(application, noun)) {
    return { kind: 'application', id: applicationIdOf(noun), parameters: parametersOf(noun) }
  }
  return { kind: 'number', number: dialable(noun.text) ?? '' }
}
