import { join } from 'node:path'
import { type CallMessage, missingFrom } from '../../core/domain/ladder/message.ts'
import { runsCalls, speaksSip } from '../../core/domain/machines/roles.ts'
import { createAddressGuard } from '../../core/domain/network/address-guard.ts'
import { systemClock } from '../../core/runtime/clock.ts'
import { addressesOf, ConfigError, loadSettings, type Settings } from '../../core/runtime/config.ts'
import { EDGE_SOCKET } from '../../core/runtime/edge-link.ts'
import { type ProcessContext, portTaken, type RunningProcess, runProcess } from '../../core/runtime/lifecycle.ts'
import { type Figure, type Registry, registerFigures } from '../../core/runtime/metrics.ts'
import { machineNonces, type Nonces, sharedNonces } from '../../core/runtime/secrets.ts'
import { ownListeners } from '../../core/runtime/sip/own-listeners.ts'
import { tlsOptions } from './certificates.ts'
import { type ConfiguredPeers, configuredPeers } from './configured-peers.ts'
import { exportHep, type HepExporter } from './hep.ts'
import { createEdge, type Edge, ListenError, type TracedMessage } from './index.ts'
import { Journal, readJournal } from './journal.ts'
import { type LadderWriter, writeLadder } from './ladder.ts'
import { type NodeLink, openNodeLink } from './node-link.ts'

/** Design §4: Timer B is 5 s for each target, because the next target waits for it. */
const NO_RESPONSE_MS = 5000

/**
 * Starts the process of the embedded edge, with the configured listening points and the control link at
 * STROWGER_DRACHTIO.
 */
async function start({ config, log, metrics }: ProcessContext): Promise<RunningProcess> {
  if (!config.drachtio) throw new ConfigError('STROWGER_DRACHTIO: the supervisor must say where the control link is')
  const node = await openNodeLink(join(config.run_dir, EDGE_SOCKET), log)
  const peers = configuredPeers({
    own: ownListeners(config),
    addresses: createAddressGuard(config.allow_private_peers),
  })
  const unwritten = readJournal<CallMessage>(config.run_dir).sort((a, b) => a.at_ms - b.at_ms)
  const journal = new Journal<CallMessage>(config.run_dir, err =>
    log.warn({ err }, 'the journal of the SIP edge cannot be written: a kill may leave calls up'),
  )
  const ladder = writeLadder(node, journal, unwritten, systemClock)
  const own_addresses = addressesOf(config).map(({ host }) => host)
  const hep = config.hep && exportHep({ ...config.hep, own_addresses }, node.callsOf, log)
  const gate = closedGate()
  let nonces = machineNonces(config.drachtio_secret)
  node.onNonces = key => {
    nonces = key ? sharedNonces(key) : machineNonces(config.drachtio_secret)
  }
  const edge = await open(config, log, { peers, ready: gate.opened, nonces: () => nonces, node }, message => {
    ladder.keep(message)
    hep?.keep(message)
  })
  node.onMachines = links => void edge.learnMachines(links)
  node.onBeat = beat => edge.beat(beat)
  node.onNote = (to, text) => edge.note(to, text)
  node.onShut = (source, ms) => edge.shut(source, ms)
  beginWith(node, { peers, unwritten, edge, log, open: gate.open })
  exposeStats(edge, ladder, hep, metrics)
  for (const { protocol, host, port } of edge.listeners) log.info({ protocol, host, port }, 'listening')
  return {
    renewTls: tls => edge.renewTls(tls),
    async stop() {
      edge.close()
      await ladder.close()
      await hep?.close()
      node.close()
      journal.close()
    },
  }
}

function closedGate() {
  let open = (): void => undefined
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open }
}

/**
 * Learns the configuration from the node. On the first configuration it ends the calls that an earlier run left, then
 * admits applications. Until then, every dialog in the ladder belongs to the earlier run.
 */
function beginWith(
  node: NodeLink,
  parts: {
    readonly peers: ConfiguredPeers
    readonly unwritten: readonly CallMessage[]
    readonly edge: Pick<Edge, 'endLeftCalls' | 'reachable'>
    readonly log: ProcessContext['log']
    readonly open: () => void
  },
): void {
  const { peers, unwritten, edge, log, open } = parts
  let begun = false
  const begin = async (): Promise<void> => {
    const written = await node.leftMessages(unwritten.map(message => message.sip_call_id))
    // What ends those calls leaves by a listening point.
    await edge.reachable
    if (begun) return
    begun = true
    const legs = edge.endLeftCalls([...written, ...missingFrom(written, unwritten)])
    if (legs > 0) log.warn({ legs }, 'an earlier run was killed; its calls are being ended')
    open()
  }
  node.onFacts = facts => {
    peers.learn(facts)
    // After a failure, the next facts start another attempt.
    if (!begun) begin().catch(err => log.warn({ err }, 'calls of an earlier run could not be looked up'))
  }
}

async function open(
  config: Settings,
  log: ProcessContext['log'],
  {
    peers,
    ready,
    nonces,
    node,
  }: {
    readonly peers: ConfiguredPeers
    readonly ready: Promise<void>
    readonly nonces: () => Nonces
    readonly node: NodeLink
  },
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
      listeners: speaksSip(config.roles)
        ? addressesOf(config).flatMap(({ bind: host, host: advertised_host }) =>
            ports.map(([protocol, port]) => ({ protocol, host, port, advertised_host })),
          )
        : [],
      tls: await tlsOptions(config),
      control: { ...control, secret: config.drachtio_secret, ready },
      log,
      isConfiguredSource: peers.covers,
      ownsAddress: peers.ownsAddress,
      mayReach: peers.mayReach,
      strangers: {
        nonces,
        domain: config.domain,
        realms: peers.realms,
        known: peers.known,
      },
      lone: !runsCalls(config.roles),
      onMessage,
      onBeat: node.beat,
      noted: node.note,
      tried: node.tried,
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

/** The counters of the edge, by their name in its statistics. */
const COUNTED: Readonly<Record<keyof ReturnType<Edge['stats']>['counters'], string>> = {
  received: 'SIP messages received',
  malformed: 'Malformed SIP messages',
  stray: 'Responses and ACKs that belong to nothing',
  strangers_answered: 'Answers to strangers that left no state',
  retransmissions_received: 'Retransmissions received',
  retransmissions_sent: 'Retransmissions sent',
  unsent_responses: 'Responses that could not be sent',
  refused_busy: 'Requests refused because all transactions were in use',
  dropped: 'Messages of blocked sources, and of strangers above their limit, that were dropped',
  blocks: 'Sources that were blocked',
  refused_connections: 'Connections refused because of limits or blocks',
}

function exposeStats(edge: Edge, ladder: LadderWriter, hep: HepExporter | null, metrics: Registry): void {
  const figures: readonly Figure[] = [
    ['dialogs', 'SIP dialogs that are up', () => edge.stats().dialogs],
    ['client_transactions', 'SIP client transactions in memory', () => edge.stats().client_transactions],
    ['server_transactions', 'SIP server transactions in memory', () => edge.stats().server_transactions],
    ['connections', 'SIP connections over TCP, TLS and WebSocket', () => edge.stats().sip_connections],
    ['timers', 'SIP timers that run', () => edge.stats().timers],
    ['applications', 'Signaling nodes connected to the control link', () => edge.stats().applications],
    ['ladder_left_out_total', 'SIP messages that could not be kept for the ladder', () => ladder.left_out],
    ['hep_sent_total', 'SIP messages sent to the HEP collector', () => hep?.sent ?? 0],
    ['hep_left_out_total', 'SIP messages that could not be sent to the HEP collector', () => hep?.left_out ?? 0],
    ['blocked_sources', 'Sources whose requests are dropped without an answer', () => edge.stats().blocked_sources],
    ...Object.entries(COUNTED).map(
      ([name, help]): Figure => [`${name}_total`, help, () => edge.stats().counters[name as keyof typeof COUNTED]],
    ),
  ]
  registerFigures(
    metrics,
    figures.map(([name, help, read]) => [`strowger_edge_${name}`, help, read]),
  )
}

void runProcess('edge', loadSettings, start)
