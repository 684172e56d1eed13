/** The events that webhook endpoints can subscribe to. */
export const EVENT_KINDS = [
  'call.initiated',
  'call.ringing',
  'call.answered',
  'call.ended',
  'trunk.created',
  'trunk.updated',
  'trunk.released',
  'trunk.applied',
  'trunk.apply_failed',
  'number.ordered',
  'number.routed',
  'number.released',
  'recording.completed',
  'recording.deleted',
  'alert.fired',
  'alert.acknowledged',
  'alert.resolved',
  'containment.opened',
  'containment.released',
  'endpoint.test',
] as const

type EventKind = (typeof EVENT_KINDS)[number]

/** The events that audit entries are reported as, by action. */
const TOLD: Readonly<Record<string, EventKind>> = {
  'trunk.created': 'trunk.created',
  'trunk.updated': 'trunk.updated',
  'trunk.suspended': 'trunk.updated',
  'trunk.resumed': 'trunk.updated',
  'trunk.released': 'trunk.released',
  'number.ordered': 'number.ordered',
  'number.routed': 'number.routed',
  'number.released': 'number.released',
  'recording.deleted': 'recording.deleted',
}

export const toldAs = (action: string): EventKind | null =>
  Object.hasOwn(TOLD, action) ? (TOLD[action] ?? null) : null
