import { unsupportedTags } from '../../core/domain/calls/option-tags.ts'
import { readChallenges } from '../../core/domain/identity/digest-answer.ts'
import type { TlsOptions } from '../../core/runtime/certificate.ts'
import { type Clock, systemClock } from '../../core/runtime/clock.ts'
import { type Beat, FAILED_TRIES, type GuardedSource, type MachineLinks } from '../../core/runtime/edge-link.ts'
import type { DnsSource } from '../../core/runtime/sip/locate.ts'
import { Apps } from './agent/apps.ts'
import { ContactBindings } from './agent/bindings.ts'
import { AgentCore } from './agent/core.ts'
import { endLeftCall } from './agent/end-left.ts'
import { type BlockedSource, SourceGuard } from './agent/guard.ts'
import { endOrphans } from './agent/orphans.ts'
import { hasCredentials } from './agent/pending.ts'
import { type StrangerOptions, Strangers } from './agent/strangers.ts'
import { ClientSide } from './agent/uac.ts'
import { ServerSide } from './agent/uas.ts'
import { ControlServer } from './control/server.ts'
import { hostPorts } from './control/wire.ts'
import { type KeptMessage, leftCalls } from './left-calls.ts'
import { Machines } from './machines/machines.ts'
import { type EdgeLog, EdgeStack, silentLog } from './stack.ts'
import type { TimerScale } from './timers.ts'
import type { ListenerOptions } from './transport/layer.ts'
import type { Address, Listener, TracedMessage, TransportDestination, TransportLimits } from './transport/types.ts'

/**
 * The embedded SIP edge: a SIP server that speaks drachtio's control protocol, so that `drachtio-srf` applications
 * connect to it as to a drachtio-server. `createEdge` opens all ports or none. README.md in this folder also describes
 * how to use the SIP stack without the control protocol.
 */

export interface EdgeOptions {
  /** SIP listening points. The system chooses a port for 0. A second address, such as IPv6, is another entry. */
  readonly listeners: readonly ListenerOptions[]
  /** Key, certificate and rules for `tls` and `wss` listening points. */
  readonly tls?: TlsOptions | undefined
  readonly control: {
    readonly host: string
    readonly port: number
    readonly secret: string
    readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer } | undefined
    /** Applications that connect before this resolves wait for it. */
    readonly ready?: Promise<void>
  }
  readonly log?: EdgeLog | undefined
  readonly clock?: Clock | undefined
  /** RFC 3261 T1, T2 and T4 in ms. Tests scale them down. */
  readonly timers?: TimerScale | undefined
  readonly dns?: DnsSource | undefined
  readonly limits?: EdgeLimits | undefined
  /** Whether requests in a dialog with `peer` may go to an address that the peer named. Default: to any address. */
  readonly mayReach?: ((named: TransportDestination, peer: TransportDestination) => boolean) | undefined
  /** Source addresses that are never blocked, whatever they send. */
  readonly isConfiguredSource?: ((host: string) => boolean) | undefined
  /**
   * Whether the sender at this host also owns this port, so that requests to the address may reuse the sender's
   * connection (RFC 5923). Default: never.
   */
  readonly ownsAddress?: ((address: Address) => boolean) | undefined
  /**
   * How sources that are not configured are challenged. Without it, the edge serves them as a drachtio-server does and
   * counts nothing that they send as a failure.
   */
  readonly strangers?: Omit<StrangerOptions, 'isConfiguredSource'> | undefined
  /** Called with each failed try of a source that counts, and when one has made up for it. */
  readonly tried?: ((source: GuardedSource, failed: boolean) => void) | undefined
  /** Called with what the node of another machine says to the node of this one. */
  readonly noted?: ((from: string, text: string) => void) | undefined
  /** No application connects: machines that it learns of have the calls. Default: false. */
  readonly lone?: boolean | undefined
  /** Called with each SIP message in either direction, for the ladder. Must neither throw nor block. */
  readonly onMessage?: ((message: TracedMessage) => void) | undefined
  /** Called with what the node of another machine says. */
  readonly onBeat?: ((beat: Beat) => void) | undefined
  /** The refresher when a peer asks for a session timer without naming one. Default none: no timer runs. */
  readonly session_refresher?: 'none' | 'uac' | 'uas' | undefined
  /** How long a new call's INVITE may wait for its first response (Timer B). Default 64×T1 (RFC 3261 §17.1.1.2). */
  readonly no_response_ms?: number | undefined
  /** Requests above this size go over TCP instead of UDP (RFC 3261 §18.1.1). Default 1,300. */
  readonly tcp_above_bytes?: number | undefined
}

type EdgeLimits = Partial<TransportLimits> & {
  /** Concurrent server transactions. Further requests get 503. Default 50,000. */
  readonly transactions?: number
  readonly header_count?: number
  /** Longest command of an application. Default 4 MiB. */
  readonly command_bytes?: number
  /**
   * Bytes that may wait for an application that does not read. Beyond it the application is disconnected. Default 64
   * MiB.
   */
  readonly application_bytes?: number
  /** Grace period for calls whose application disconnected. Default 5 s. */
  readonly orphan_grace_ms?: number
  readonly ringing_ms?: number
  /** A stranger that fails this often within the window is blocked for `block_ms`. Defaults 5, 60 s, 15 min. */
  readonly failures?: number
  readonly failure_window_ms?: number
  readonly block_ms?: number
  readonly malformed_per_second?: number
  /** Out-of-dialog requests that a stranger may send per second. Default 100. */
  readonly requests_per_second?: number
}

interface EdgeStats {
  readonly dialogs: number
  readonly client_transactions: number
  readonly server_transactions: number
  /** Requests that an application has not answered, plus requests of applications that have no final response yet. */
  readonly pending: number
  readonly sip_connections: number
  readonly control_connections: number
  readonly applications: number
  readonly timers: number
  readonly bindings: number
  readonly blocked_sources: number
  readonly counters: {
    readonly received: number
    readonly malformed: number
    readonly stray: number
    readonly dropped: number
    readonly blocks: number
    readonly retransmissions_received: number
    readonly retransmissions_sent: number
    readonly unsent_responses: number
    readonly refused_busy: number
    readonly strangers_answered: number
    readonly refused_connections: number
  }
}

export interface Edge {
  /** The listening points with their actual ports. */
  readonly listeners: readonly Listener[]
  readonly control: { readonly host: string; readonly port: number }
  stats(): EdgeStats
  /** The sources whose packets are silently dropped now. */
  blockedSources(): readonly BlockedSource[]
  blockSource(host: string, duration_ms: number): void
  unblockSource(host: string): boolean
  /** Blocks a source that has failed too often at all edges together. */
  shut(source: GuardedSource, ms: number): void
  /** Handshakes from now on, in both directions, use these certificates and rules. Open connections stay. */
  renewTls(tls: TlsOptions): void
  /** Lends flows to these machines' edges, and borrows theirs. Resolves when the edge listens for them. */
  learnMachines(links: MachineLinks): Promise<void>
  /** Resolves once peers reach this edge: without listening points, when another machine's edge serves it. */
  readonly reachable: Promise<void>
  /** Tells the edges of the other machines what the node of this one says. */
  beat(beat: Beat): void
  /** Passes a note to the node of another machine, as far as that one can be reached. */
  note(machine_id: string, text: string): void
  /**
   * Ends the calls that an earlier run left behind, as reconstructed from its messages (see left-calls.ts). Returns the
   * number of legs.
   */
  endLeftCalls(messages: readonly KeptMessage[]): number
  /** Closes all sockets and forgets all calls without notifying any peer. */
  close(): void
}

export { ListenError } from './transport/listen.ts'
export type { TracedMessage } from './transport/types.ts'

/** drachtio-srf parses this text and pings servers whose version is at least v0.8.2. */
const VERSION = 'v0.9.10-strowger'

/** Opens an edge. Rejects with ListenError (`code` EADDRINUSE, `protocol`, `port`) when it cannot open a port. */
export async function createEdge(options: EdgeOptions): Promise<Edge> {
  const clock = options.clock ?? systemClock
  const log = options.log ?? silentLog
  const { limits = {}, isConfiguredSource = () => false } = options
  const guard = new SourceGuard({
    clock,
    isConfiguredSource,
    failures: limits.failures ?? FAILED_TRIES.most,
    window_ms: limits.failure_window_ms ?? FAILED_TRIES.window_ms,
    block_ms: limits.block_ms ?? FAILED_TRIES.block_ms,
    tried: options.tried,
    tell: word => machines.guard(word),
    malformed_per_second: limits.malformed_per_second ?? 100,
    requests_per_second: limits.requests_per_second ?? 100,
    blocked: ({ host, protocol, reason }) =>
      log.warn(
        { source: host, protocol, reason },
        'a source is blocked: its new requests are dropped without an answer',
      ),
  })
  const apps = new Apps()
  const bindings = new ContactBindings(clock)
  let server: ServerSide | undefined
  let strangers: Strangers | undefined
  const machines: Machines = new Machines({
    clock,
    log,
    transport: () => stack.transport,
    lone: options.lone ?? false,
    hearBeat: options.onBeat,
    hearGuard: word => guard.hear(word),
    takes: () => apps.all.size > 0,
    isOwn: request => core.legOf(request) !== undefined,
    admits: received => isConfiguredSource(received.source.host) || guard.admits(received),
    noted: (from, text) => options.noted?.(from, text),
    receive: received => {
      if (!guard.silences(received.source.host)) stack.transactions.receive(received)
    },
  })
  const stack = await EdgeStack.open({
    listeners: options.listeners,
    tls: options.tls,
    log,
    clock,
    timers: options.timers,
    dns: options.dns,
    limits,
    tcp_above_bytes: options.tcp_above_bytes,
    mayReach: options.mayReach,
    machines,
    dropped: (host, connection) =>
      guard.silences(host) || (connection !== undefined && guard.refuses(host, connection)),
    onMessage: options.onMessage,
    user: {
      relays: (message, received) => machines.relays(message, received),
      request: transaction => server?.request(transaction),
      ack: (message, received) => server?.ack(message, received),
      cancel: (cancel, invite) => server?.cancel(cancel, invite),
      malformed: (received, why) => {
        log.debug({ source: received.source, why }, 'malformed SIP message')
        return guard.malformed(received)
      },
      standing: (request, received) => strangers?.standing(request, received) ?? 'peer',
      isPeer: host => !options.strangers || isConfiguredSource(host),
      hasProved: from => guard.hasProved(from),
      ownsAddress: options.ownsAddress,
      proved: received => guard.proved(received),
    },
  })
  const reachable = options.listeners.length > 0 ? Promise.resolve() : machines.fronted
  const core = new AgentCore(stack, apps, {
    orphan_grace_ms: limits.orphan_grace_ms ?? 5_000,
    session_refresher: options.session_refresher ?? 'none',
    unsupported: unsupportedTags,
    ringing_ms: limits.ringing_ms ?? 900_000,
    no_response_ms: options.no_response_ms,
  })
  if (options.strangers) strangers = new Strangers(core, guard, { ...options.strangers, isConfiguredSource })
  const server_side = new ServerSide(core, {
    // Requests of strangers were counted before their transaction was created.
    admits: received => strangers !== undefined || guard.admits(received),
    answered: (request, received, status, response) => {
      if (request.method === 'OPTIONS') strangers?.learn(status, response)
      guard.answered(received, {
        method: request.method,
        status,
        credentials: hasCredentials(request),
        ours: () => strangers?.answersOurs(request, received) ?? false,
        stale: () =>
          readChallenges(response.get('www-authenticate') ?? response.get('proxy-authenticate') ?? '').some(
            ({ stale }) => stale,
          ),
      })
    },
    bind: (request, received, response) => bindings.bind(request, received, response),
  })
  server = server_side
  const client_side = new ClientSide(core, bindings)
  // Applications learn the listening points when they connect.
  const ready = Promise.all([options.control.ready, reachable]).then(() => undefined)
  const control = await openControl(
    { ...options, control: { ...options.control, ready } },
    {
      stack,
      apps,
      core,
      server_side,
      client_side,
      clock,
      log,
    },
  ).catch(error => {
    stack.close()
    throw error
  })
  return {
    listeners: stack.transport.listeners,
    control: { host: options.control.host, port: control.port },
    stats: () => ({
      dialogs: core.legs.size,
      client_transactions: stack.transactions.client_count,
      server_transactions: stack.transactions.server_count,
      pending: core.servers.size + core.clients.size,
      sip_connections: stack.transport.connection_count,
      control_connections: control.connection_count,
      applications: apps.all.size,
      timers: stack.transactions.wheel.count,
      bindings: bindings.size,
      blocked_sources: guard.blocked_count,
      counters: {
        ...stack.transactions.counters,
        dropped: guard.dropped,
        blocks: guard.blocks,
        refused_connections: stack.transport.refused_connections,
      },
    }),
    blockedSources: () => guard.list(),
    blockSource: (host, duration_ms) => guard.block(host, duration_ms),
    unblockSource: host => guard.unblock(host),
    shut: (source, ms) => guard.shut(source, ms),
    renewTls: tls => stack.renewTls(tls),
    reachable,
    learnMachines: links => machines.learn(links),
    beat: beat => machines.beat(beat),
    note: (machine_id, text) => machines.note(machine_id, text),
    endLeftCalls: messages => {
      const left = leftCalls(messages, (protocol, host) => stack.transport.listenerFor(protocol, host))
      for (const call of left) endLeftCall(stack, call)
      return left.length
    },
    close: () => {
      machines.close()
      control.close()
      stack.close()
    },
  }
}

async function openControl(
  options: EdgeOptions,
  parts: {
    stack: EdgeStack
    apps: Apps
    core: AgentCore
    server_side: ServerSide
    client_side: ClientSide
    clock: Clock
    log: EdgeLog
  },
): Promise<ControlServer> {
  const { stack, apps, core, server_side, client_side, clock, log } = parts
  return await ControlServer.open({
    ready: Promise.resolve(),
    ...options.control,
    version: VERSION,
    clock,
    log,
    command_bytes: options.limits?.command_bytes ?? 4 * 1024 * 1024,
    unsent_bytes: options.limits?.application_bytes ?? 64 * 1024 * 1024,
    handshake_ms: 10_000,
    hostPorts: () => ({
      advertised: hostPorts(stack.transport.listeners, 'advertised'),
      bound: hostPorts(stack.transport.listeners, 'bound'),
    }),
    commands: {
      joined: client => {
        apps.all.add(client)
        log.info({ remote: client.remote, tags: client.tags }, 'application connected')
      },
      left: client => {
        apps.remove(client)
        stack.transactions.wheel.after(core.settings.orphan_grace_ms, () =>
          endOrphans(core, server_side, client_side, client),
        )
      },
      response: (client, id, transaction_id, message) => server_side.respond(client, id, transaction_id, message),
      cancel: (client, id, transaction_id, message) => client_side.cancel(client, id, transaction_id, message),
      request: (client, id, dialog_id, hop, message) => client_side.request(client, id, dialog_id, hop, message),
    },
  })
}
