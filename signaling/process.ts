import { join } from 'node:path'
import { runsCalls } from '../core/domain/machines/roles.ts'
import { connectBus } from '../core/runtime/bus.ts'
import { systemClock } from '../core/runtime/clock.ts'
import { type Config, loadConfig } from '../core/runtime/config.ts'
import { EDGE_SOCKET } from '../core/runtime/edge-link.ts'
import { createHttpClient, loadUndici } from '../core/runtime/http/index.ts'
import { type ProcessContext, type RunningProcess, runProcess, StartRefused } from '../core/runtime/lifecycle.ts'
import type { Log } from '../core/runtime/log.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { MachineFiles } from '../core/runtime/machine-files.ts'
import { createObjectStore } from '../core/runtime/object-store.ts'
import type { RateStore } from '../core/runtime/rate-store.ts'
import { filesKey, linkKey, sharedNonceKey } from '../core/runtime/secrets.ts'
import { servedAt } from '../core/runtime/sip/own-listeners.ts'
import { createVoiceRequester } from '../core/runtime/voice-request.ts'
import { openRates, openState } from '../core/state/index.ts'
import { linkOf } from '../core/state/nodes/edge-links.ts'
import { exposeState } from '../core/state/nodes/metrics.ts'
import { connectMedia } from '../media/protocol/client.ts'
import { connectStack } from './drachtio/stack.ts'
import { LeftDialogs } from './left-dialogs.ts'
import { announceEdge } from './lone-edge.ts'
import { startMessages } from './messages.ts'
import { startSignaling } from './node.ts'
import { serveEdge } from './serve-edge.ts'
import { StateProbe } from './takes-calls.ts'
import { Stir } from './trunks/stir.ts'

/** Machines that share a database share the nonces, too. */
const sharedKey = ({ database_url, master_key }: Config): Buffer | null =>
  database_url === null ? null : sharedNonceKey(master_key)

function edgeOf(config: Config, parts: Pick<Parameters<typeof serveEdge>[0], 'state' | 'bus' | 'log' | 'clock'>) {
  const { machine_id } = machineOf(config.data_dir)
  return {
    path: join(config.run_dir, EDGE_SOCKET),
    edge_id: machine_id,
    nonce_key: sharedKey(config),
    openRates: config.database_url === null ? null : () => ratesOf(config, parts.log),
    links: config.link && { own: { machine_id, ...config.link }, key: linkKey(config.master_key) },
    roles: config.roles,
    ...parts,
  }
}

async function ratesOf(config: Config, log: Log): Promise<RateStore> {
  const rates = await openRates(config, log)
  if (!rates) throw new Error('no database is shared')
  return rates
}

/** Serves the edge of a machine whose calls run on other machines. */
async function serveEdgeAlone({ config, log, metrics }: ProcessContext<Config>): Promise<RunningProcess> {
  const { data_dir, database_url } = config
  const state = await openState({ data_dir, database_url, inline_here: systemClock })
  const { clock } = state
  exposeState(state, metrics)
  const bus = connectBus(config.run_dir)
  const edge = await serveEdge(edgeOf(config, { state, bus, log, clock }))
  const announced = announceEdge(edge, { state, machine: machineOf(data_dir), clock, log })
  const probe = new StateProbe(state, clock)
  return {
    works: async () => ({ state_writable: await probe.takes(), edge: edge.connected }),
    async stop() {
      await announced.stop()
      await edge.stop()
      await bus.close()
      await state.close()
    },
  }
}

void runProcess('signaling', loadConfig, async context => {
  const { config, log, metrics } = context
  if (!runsCalls(config.roles)) return serveEdgeAlone(context)
  const { drachtio } = config
  if (!drachtio) throw new StartRefused('STROWGER_DRACHTIO: the signaling node needs HOST:PORT of a SIP server')
  const state = await openState({
    data_dir: config.data_dir,
    database_url: config.database_url,
    inline_here: systemClock,
  })
  const { clock } = state
  exposeState(state, metrics)
  const http = createHttpClient({
    allow_private: config.allow_private_webhooks,
    user_agent: 'Strowger',
    log,
    max_in_flight: 2000,
  })
  const objects = config.s3 && createObjectStore(config.s3, log)
  const bus = connectBus(config.run_dir)
  const media = connectMedia({ path: join(config.run_dir, 'media.sock'), log, client: `signaling-${process.pid}` })
  const { drachtio_secret: secret, drachtio_100rel: reliable } = config
  const left = new LeftDialogs({ server: `${drachtio.host}:${drachtio.port}`, state, clock, log })
  const served = servedAt(config)
  const sip = connectStack({ ...drachtio, secret, log, clock, reliable, served, keeper: left })
  const { machine_id } = machineOf(config.data_dir)
  const nonce_key = sharedKey(config)
  const edge = await serveEdge(edgeOf(config, { state, bus, log, clock }))
  const machines = nonce_key && new MachineFiles(machine_id, filesKey(config.master_key), id => linkOf(state.db, id))
  const node = await startSignaling({
    config,
    state,
    media,
    sip,
    left,
    bus,
    clock,
    log,
    voice: createVoiceRequester({ http }),
    objects,
    metrics,
    line: edge,
    edgeTold: edge.told,
    stir: new Stir({ config, http, clock, log }),
    nonce_key,
    post: edge.post,
    machines,
  })
  await loadUndici()
  const messages = startMessages({ config, state, sip, bus, clock, log })
  return {
    drain: node.drain,
    works: node.works,
    async stop() {
      await messages.stop()
      await node.stop()
      await edge.stop()
      machines?.close()
      await bus.close()
      await Promise.all([http.close(), objects?.close()])
      await state.close()
    },
  }
})
