import { Gauge, type Registry, registerFigures } from '../core/runtime/metrics.ts'
import type { Originator } from './admission/originate.ts'
import type { CallContext } from './b2bua/context.ts'
import { LINK_STATES } from './drachtio/types.ts'
import type { Queues } from './scripts/queues.ts'
import type { Rooms } from './scripts/rooms.ts'
import type { CarrierRegistrations } from './trunks/carrier-registrations.ts'

/** Registers the gauges of a node's current state. */
export function exposeNode(
  registry: Registry,
  ctx: CallContext,
  held: {
    readonly rooms: Rooms
    readonly queues: Queues
    readonly originator: Originator
    readonly registrations: CarrierRegistrations
  },
): void {
  const { sip, media, calls, registrar } = ctx
  const { rooms, queues, originator, registrations } = held
  registerFigures(registry, [
    ['strowger_live_calls', 'Calls that run on this node', () => calls.size],
    ['strowger_dialogs', 'SIP dialogs of this node', () => sip.counts().dialogs],
    [
      'strowger_sip_transactions',
      'SIP requests and answers that wait for the SIP server',
      () => sip.counts().transactions,
    ],
    ['strowger_media_listeners', 'Legs and recordings that this node listens to', () => media.listening],
    ['strowger_registrations', 'Contacts registered by digest users', () => registrar.size],
    ['strowger_carrier_registrations', 'Carriers that know us by registration', () => registrations.registered],
    ['strowger_conferences', 'Conferences of this node', () => rooms.size],
    ['strowger_queued_callers', 'Callers that wait in queues of this node', () => queues.waiting],
    ['strowger_calls_waiting', 'API calls that wait for their turn', () => originator.waiting],
    ['strowger_draining', '1 while this node takes no new call', () => Number(ctx.draining())],
    ['strowger_edge_connected', '1 while the SIP server answers', () => Number(sip.connected)],
    [
      'strowger_edge_missing_contacts',
      'Where a drachtio-server should listen, by STROWGER_HOST and ports, and does not',
      () => sip.missing_contacts.length,
    ],
    ['strowger_media_connected', '1 while the media worker is there', () => Number(media.connected)],
  ])
  new Gauge({
    name: 'strowger_edge_link',
    help: 'The link to the SIP server: 1 for the state that it is in',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const state of LINK_STATES) this.set({ state }, Number(state === sip.link))
    },
  })
}
