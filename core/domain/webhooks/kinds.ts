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

/** The events that audit entries are reported as, by action. Other writes of a trunk update it. */
const KINDS: Readonly<Record<string, EventKind>> = {
  'trunk.created': 'trunk.created',
  'trunk.released': 'trunk.released',
  'number.ordered': 'number.ordered',
  'number.routed': 'number.routed',
  'number.released': 'number.released',
  'recording.deleted': 'recording.deleted',
}

/** An audited change, as far as its event depends on it. */
interface AuditedChange {
  readonly action: string
  readonly resource_type: string
  /** The resource's revision after the change; null when it did not get one. */
  readonly to_revision: number | null
  /** The trunk that it belongs to; null without one. */
  readonly trunk_id: string | null
}

/** Reports whether a change is of a subtrunk or of one of its parts. Its event names the trunk. */
export const isOfPart = ({ resource_type, trunk_id }: Pick<AuditedChange, 'resource_type' | 'trunk_id'>): boolean =>
  trunk_id !== null && resource_type === 'subtrunk'

/**
 * Returns the event that an audited change is reported as; null for none. Every write to a trunk or to its sources,
 * credentials, targets and policy gives the trunk a revision; its subtrunks have their own.
 */
export function eventKindOf(change: AuditedChange): EventKind | null {
  const { action, resource_type, to_revision } = change
  if (Object.hasOwn(KINDS, action)) return KINDS[action] ?? null
  if (isOfPart(change)) return 'trunk.updated'
  return resource_type === 'trunk' && to_revision !== null ? 'trunk.updated' : null
}
