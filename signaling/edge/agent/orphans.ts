import type { ControlClient } from '../control/client.ts'
import type { AgentCore } from './core.ts'
import type { ClientSide } from './uac.ts'
import type { ServerSide } from './uas.ts'

// Ends the calls of an application that disconnected (issue "Edge" item 8). After a grace period they end on both
// sides, so that no peer is left waiting. An application that reconnects counts as a new one. The dialogs in which it
// has sent a request since then belong to it and stay.

export function endOrphans(core: AgentCore, server: ServerSide, client: ClientSide, gone: ControlClient): void {
  for (const pending of [...core.servers.values()]) if (pending.app === gone) server.orphaned(pending)
  for (const pending of [...core.clients.values()]) if (pending.app === gone) client.orphaned(pending)
  for (const leg of [...core.legs.values()]) {
    if (leg.app !== gone || leg.ending) continue
    if (leg.kind === 'subscribe') core.dropLeg(leg)
    else if (leg.state === 'confirmed') core.hangUp(leg, 'application is gone')
    else if (leg.role === 'uas') core.dropLeg(leg)
  }
}
