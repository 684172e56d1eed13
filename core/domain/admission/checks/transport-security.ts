import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

export const transportSecurity: Check = {
  name: 'transport_security',
  reasons: ['tls_required'],
  asked: ['outbound', 'on_net'],
  decide({ trunk, transport }) {
    if (!trunk || transport === null) return skipped('no peer sent this call')
    if (trunk.require_tls && transport !== 'tls' && transport !== 'wss')
      return refused('tls_required', { name: `"${trunk.name}"`, value: transport, limit: 'tls' })
    return passed(`came by ${transport}`, trunk.require_tls ? 'tls' : null, transport)
  },
}
