import { EventEmitter } from 'node:events'
import pino from 'pino'
import { Registry } from 'prom-client'
import { type MediaClient, MediaRefusal } from '../../media/protocol/client.ts'
import { MediaHub, type MediaSession } from '../../signaling/b2bua/media.ts'
import { createCallMetrics } from '../../signaling/b2bua/metrics.ts'
import type { LegServices } from '../../signaling/b2bua/services.ts'

// What a leg needs around it, for tests of single legs.

/** Answers the requests of legs to the media worker; may throw. */
type Worker = (method: string, params: { readonly leg_id?: string; readonly sdp?: string }) => unknown

/** What a worker says to each offer and answer of the legs of these tests. */
export const AGREED = { sdp: 'v=0 ours', codec: 'PCMU', direction: 'sendrecv', hold: false } as const

/**
 * The media session of a call whose worker is a function. Hub and session are real. A closed leg has no figures. What
 * is emitted by `events` comes from the worker.
 */
export async function sessionWith(worker: Worker, events = new EventEmitter()): Promise<MediaSession> {
  const client: MediaClient = {
    connected: true,
    async request(method, params) {
      if (method === 'leg.close') throw new MediaRefusal('media_unavailable', 'the leg has no figures')
      return (await worker(method, params as Parameters<Worker>[1])) as never
    },
    on: (event, listener) => void events.on(event, listener as () => void),
    once: (event, listener) => void events.once(event, listener as () => void),
    off: (event, listener) => void events.off(event, listener as () => void),
    close: () => undefined,
  }
  const session = await new MediaHub(client, pino({ level: 'silent' })).open('CA1', 'prj_1')
  if (!session) throw new Error('the worker opens no session')
  return session
}

/** The services of a node for one leg. Its trunks are those of `trunks`, by id; it resolves no names of media. */
export const legServices = (
  { clock, sip }: Pick<LegServices, 'clock' | 'sip'>,
  trunks: ReturnType<LegServices['snapshot']>['trunks'] = new Map(),
): LegServices => ({
  clock,
  sip,
  snapshot: () => ({ trunks }),
  peer_addresses: { mediaAddress: async () => null },
  metrics: createCallMetrics(new Registry(), clock),
})
