import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

/**
 * The trunk's direction is the peer's view: `outbound` carries calls from the peer, `inbound` calls to it. A policy's
 * attachment may switch off the outbound calls of a service of any type.
 */
export const direction: Check = {
  name: 'direction',
  reasons: ['direction_not_allowed', 'outbound_disabled'],
  asked: ['outbound', 'inbound', 'on_net'],
  decide({ trunk, service, switched_off_by, direction: of }) {
    if (of === 'outbound' && switched_off_by !== null)
      return refused('outbound_disabled', { name: `"${service.name}"`, value: 'outbound', limit: switched_off_by })
    if (!trunk) return skipped('the call uses no trunk')
    const asked = of === 'inbound' ? 'inbound' : 'outbound'
    if (trunk.direction !== 'both' && trunk.direction !== asked)
      return refused('direction_not_allowed', { name: `trunk "${trunk.name}"`, value: asked, limit: trunk.direction })
    return passed(`the trunk carries ${trunk.direction} traffic`, trunk.direction, asked)
  },
}
