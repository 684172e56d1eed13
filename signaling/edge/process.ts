import { join } from 'node:path'
import { createAddressGuard } from '../../core/domain/network/address-guard.ts'
import { connectBus } from '../../core/runtime/bus.ts'
import { systemClock } from '../../core/runtime/clock.ts'
import { addressesOf, ConfigError, loadSettings, type Settings } from '../../core/runtime/config.ts'
import { LADDER_SOCKET } from '../../core/runtime/ladder-link.ts'
import { type ProcessContext, portTaken, type RunningProcess, runProcess } from '../../core/runtime/lifecycle.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { Gauge, type Registry } from '../../core/runtime/metrics.ts'
import { digestCrypto } from '../../core/runtime/secrets.ts'
import { ownListeners } from '../../core/runtime/sip/own-listeners.ts'
import { callsOfCallIds, messagesOfLostCalls, missingFrom, type NewMessage } from '../../core/state/calls/ladder.ts'
import { openStateToRead, type State } from '../../core/state/index.ts'
import { tlsOptions } from './certificates.ts'
import { type ConfiguredSources, watchSources } from './configured-sources.ts'
import { type DigestRealms, watchRealms } from './digest-realms.ts'
import { giveBackMemory } from './give-back.ts'
import { exportHep, type HepExporter } from './hep.ts'
import { createEdge, type Edge, ListenError, type TracedMessage } from './index.ts'
import { Journal, readJournal } from './journal.ts'
import { type LadderWriter, writeLadder } from './ladder.ts'
import { openLadderOutlet } from './ladder-outlet.ts'

/** Calls that were lost with an earlier run are hung up for so long after. */
const LEFT_MS = 10 * 60_000
/** Design §4: Timer B is 5 s for each target, for the next one waits. */
const NO_RESPONSE_MS = 5000

/**
 * The process of the embedded edge: the configuration's listening points, and its control link at STROWGER_DRACHTIO.
 */
async function start({ config, log, metrics }: ProcessContext): Promise<RunningProcess> {
  if (!config.drachtio) throw new ConfigError('STROWGER_DRACHTIO: the supervisor must say where the control link is')
  const state = openStateToRead(config)
  const sources = await watchSources(state, log, {
    own: ownListeners(config),
    addresses: createAddressGuard(config.allow_private_peers),
  })
  const realms = await watchRealms(state, log)
  const bus = connectBus(config.run_dir)
  bus.on('configuration', () => {
    sources.look()
    realms.look()
  })
  // Before the first message of this run: every dialog of a call that is there by now was the last run's.
  const { unwritten, left } = await messagesOfLastRun(state, config)
  const journal = new Journal<NewMessage>(config.run_dir, err =>
    log.warn({ err }, 'the journal of the SIP edge cannot be written: a kill may leave calls up'),
  )
  const outlet = await openLadderOutlet(join(config.run_dir, LADDER_SOCKET), log)
  const ladder = writeLadder(outlet, journal, unwritten, systemClock)
  const own_addresses = addressesOf(config).map(({ host }) => host)
  const hep = config.hep && exportHep({ ...config.hep, own_addresses }, ids => callsOfCallIds(state.db, ids), log)
  const edge = await open(config, log, { sources, realms }, message => {
    ladder.keep(message)
    hep?.keep(message)
  })
  const legs = edge.endLeftCalls(left)
  if (legs > 0) log.warn({ legs }, 'an earlier run was killed: its calls are ended')
  exposeStats(edge, ladder, hep, metrics)
  const giving = giveBackMemory(systemClock, () => edge.stats().counters.received)
  for (const { protocol, host, port } of edge.listeners) log.info({ protocol, host, port }, 'listening')
  return {
    async stop() {
      giving.cancel()
      sources.stop()
      realms.stop()
      await bus.close()
      edge.close()
      await ladder.close()
      outlet.close()
      journal.close()
      await hep?.close()
      await state.close()
    },
  }
}

/** Of calls that nobody has ended, with what the last run could not hand over any more. */
async function messagesOfLastRun({ db }: Pick<State, 'db'>, { run_dir, data_dir }: Settings) {
  const unwritten = readJournal<NewMessage>(run_dir).sort((a, b) => a.at_ms - b.at_ms)
  const since = new Date(Date.now() - LEFT_MS).toISOString()
  const further = unwritten.map(message => message.sip_call_id)
  const written = await messagesOfLostCalls(db, { edge_id: machineOf(data_dir).machine_id, since, further })
  return { unwritten, left: [...written, ...missingFrom(written, unwritten)] }
}

async function open(
  config: Settings,
  log: ProcessContext['log'],
  { sources, realms }: { readonly sources: ConfiguredSources; readonly realms: DigestRealms },
  onMessage: (message: TracedMessage) => void,
) {
  const ports = [
    ['udp', config.sip_port],
    ['tcp', config.sip_port],
    ['tls', config.sips_port],
    ['ws', config.ws_port],
    ['wss', config.ws_port],
  ] as const
  const control = config.drachtio
  if (!control) throw new Error('no control link')
  try {
    return await createEdge({
      listeners: addressesOf(config).flatMap(({ bind: host, host: advertised_host }) =>
        ports.map(([protocol, port]) => ({ protocol, host, port, advertised_host })),
      ),
      tls: await tlsOptions(config),
      control: { ...control, secret: config.drachtio_secret },
      log,
      isConfiguredSource: sources.covers,
      ownsAddress: sources.ownsAddress,
      mayReach: sources.mayReach,
      strangers: {
        crypto: digestCrypto(config.drachtio_secret),
        domain: config.domain,
        realms: realms.current,
      },
      onMessage,
      no_response_ms: NO_RESPONSE_MS,
    })
  } catch (error) {
    if (error instanceof ListenError) throw portTaken(error, error.port, variableOf(error.port, config))
    throw error
  }
}

function variableOf(port: number, config: Settings): string {
  if (port === config.sip_port) return 'STROWGER_SIP_PORT'
  if (port === config.sips_port) return 'STROWGER_SIPS_PORT'
  return port === config.ws_port ? 'STROWGER_WS_PORT' : 'STROWGER_DRACHTIO'
}

function exposeStats(edge: Edge, ladder: LadderWriter, hep: HepExporter | null, metrics: Registry): void {
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name: `strowger_edge_${name}`,
      help,
      registers: [metrics],
      collect() {
        this.set(read())
      },
    })
  }
  gauge('dialogs', 'SIP dialogs that are up', () => edge.stats().dialogs)
  gauge('client_transactions', 'SIP client transactions in memory', () => edge.stats().client_transactions)
  gauge('server_transactions', 'SIP server transactions in memory', () => edge.stats().server_transactions)
  gauge('connections', 'SIP connections over TCP, TLS and WebSocket', () => edge.stats().sip_connections)
  gauge('timers', 'SIP timers that run', () => edge.stats().timers)
  gauge('applications', 'Signaling nodes connected to the control link', () => edge.stats().applications)
  gauge('ladder_left_out', 'SIP messages that could not be kept for the ladder', () => ladder.left_out)
  gauge('hep_sent', 'SIP messages sent to the HEP collector', () => hep?.sent ?? 0)
  gauge('hep_left_out', 'SIP messages that could not be sent to the HEP collector', () => hep?.left_out ?? 0)
  gauge('blocked_sources', 'Sources that are dropped in silence', () => edge.stats().blocked_sources)
  for (const name of Object.keys(edge.stats().counters) as (keyof ReturnType<Edge['stats']>['counters'])[])
    gauge(`${name}_count`, `SIP messages or events so far: ${name}`, () => edge.stats().counters[name])
}

await runProcess('edge', loadSettings, start)
