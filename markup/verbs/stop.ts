import type { Turn } from '../interpreter/turn.ts'
import type { Activity, Command } from '../interpreter/types.ts'
import { type AttributeType, ignored, text } from './attributes.ts'
import { recording, siprec, transcription } from './nouns/activities.ts'
import { stream } from './nouns/stream.ts'
import type { Node, Shape } from './shape.ts'
import { next, verb } from './verb.ts'

/** Returns the shape of a noun in Stop: only `name` counts. The other attributes of Start are allowed and ignored. */
function named(noun: Shape): Shape {
  const attributes: Record<string, AttributeType<unknown>> = {}
  for (const name of Object.keys(noun.attributes)) attributes[name] = name === 'name' ? text({ max: 64 }) : ignored()
  return { ...noun, attributes, nouns: noun.nouns.map(idle), inspect() {} }
}

/** Returns the shape of a noun whose attributes are allowed and ignored. */
function idle(noun: Shape): Shape {
  const attributes = Object.fromEntries(Object.keys(noun.attributes).map(name => [name, ignored()]))
  return { ...noun, attributes }
}

const STOPS: Readonly<Record<Activity['kind'], Command['type'] & `stop_${string}`>> = {
  Stream: 'stop_stream',
  Recording: 'stop_recording',
  Siprec: 'stop_siprec',
  Transcription: 'stop_transcription',
}

/** Stops the activity with the given name or, without a name, the only one of its kind. */
export const stop = verb(
  'Stop',
  { action: ignored('URL'), method: ignored('GET, POST') },
  {
    nouns: [stream, recording, siprec, transcription].map(noun => named(noun as Shape)),
    stray: 14300,
    // No activity runs before the answer.
    answers: () => false,
    inspect(node, report) {
      if (node.nouns.length > 0) return
      const detail = '<Stop> has nothing to stop'
      report({ rule: 'missing', number: 12200, detail, place: node.element, element: 'Stop' })
    },
    begin(node, turn) {
      for (const noun of node.nouns) end(noun, turn)
      return next
    },
  },
)

function end(noun: Node, turn: Turn): void {
  const kind = noun.shape.name as Activity['kind']
  const name = noun.attributes['name'] ?? null
  const going = turn.activities.filter(other => other.kind === kind && (name === null || other.name === name))
  const [activity, another] = going
  if (!activity || (another && name === null)) {
    const which = name === null ? `a ${kind}` : `a ${kind} named "${name}"`
    const why = activity ? `more than one ${kind} is going on and <Stop> names none` : `${which} is not going on`
    turn.warn(12200, why, noun.element)
    return
  }
  turn.emit({ type: STOPS[kind], id: activity.id } as Command)
  turn.activities = turn.activities.filter(other => other.id !== activity.id)
}
