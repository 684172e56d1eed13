import { speaksSip } from '../core/domain/machines/roles.ts'
import type { Bus } from '../core/runtime/bus.ts'
import { type Clock, delay, iso } from '../core/runtime/clock.ts'
import { addressesOf, type Config } from '../core/runtime/config.ts'
import type { MachinePost } from '../core/runtime/edge-link.ts'
import { newId } from '../core/runtime/ids.ts'
import type { Log } from '../core/runtime/log.ts'
import { machineOf } from '../core/runtime/machine.ts'
import type { MachineFiles } from '../core/runtime/machine-files.ts'
import type { Registry } from '../core/runtime/metrics.ts'
import type { ObjectStore } from '../core/runtime/object-store.ts'
import { machineNonces, sharedNonces, unseal } from '../core/runtime/secrets.ts'
import { Sleeper } from '../core/runtime/sleeper.ts'
import type { VoiceRequester } from '../core/runtime/voice-request.ts'
import type { Works } from '../core/runtime/works.ts'
import { noteGuesser } from '../core/state/alerts/traffic-facts.ts'
import { writeCall } from '../core/state/calls/running-calls.ts'
import type { State } from '../core/state/index.ts'
import { extendReservation } from '../core/state/money/reservations.ts'
import { edgeAt } from '../core/state/nodes/machines.ts'
import {
  endCallsOfLostNodes,
  HEARTBEAT_MS,
  type NodeRow,
  NodeWatch,
  saveDraining,
  signalingNodes,
} from '../core/state/nodes/nodes.ts'
import { claimNonce } from '../core/state/nodes/nonce-claims.ts'
import type { MediaClient } from '../media/protocol/client.ts'
import type { AdmissionContext } from './admission/context.ts'
import { createAdmissionGate } from './admission/gate.ts'
import { Originator } from './admission/originate.ts'
import { admitReferral, placeChild } from './admission/place.ts'
import { receiveInvite } from './admission/receive.ts'
import { placeTransferred } from './admission/transfer-target.ts'
import { MediaHub } from './b2bua/media.ts'
import { createCallMetrics } from './b2bua/metrics.ts'
import { CallRegistry } from './b2bua/registry.ts'
import { UnwrittenEnds } from './b2bua/unwritten-ends.ts'
import { CommandTaker } from './commands.ts'
import type { SipStack } from './drachtio/types.ts'
import { Drain } from './drain.ts'
import type { LeftDialogs } from './left-dialogs.ts'
import { finishLeftRecordings, prune } from './leftovers.ts'
import { exposeNode } from './metrics.ts'
import { Peers } from './peers.ts'
import { isDead, Presence, registerOwnNode } from './presence.ts'
import { Guests } from './scripts/away/guests.ts'
import { readNote } from './scripts/away/notes.ts'
import { Visits } from './scripts/away/visits.ts'
import type { ScriptContext } from './scripts/context.ts'
import { Queues } from './scripts/queues.ts'
import { recordByPolicy } from './scripts/recording-orders.ts'
import { controlRoom } from './scripts/room-control.ts'
import { Rooms } from './scripts/rooms.ts'
import { Script } from './scripts/script.ts'
import { StoredSounds } from './scripts/stored-sounds.ts'
import type { BeatLine } from './serve-edge.ts'
import { StateProbe, TakesCalls } from './takes-calls.ts'
import { TestRunner } from './tests/runner.ts'
import { AuthTokens } from './trunks/auth-tokens.ts'
import { CarrierRegistrations } from './trunks/carrier-registrations.ts'
import { Configuration } from './trunks/configuration.ts'
import { DigestAuthenticator } from './trunks/digest.ts'
import { digestProofs } from './trunks/digest-proofs.ts'
import { TargetHealth } from './trunks/health.ts'
import { PeerAddresses } from './trunks/peer-addresses.ts'
import { Registrar } from './trunks/registrar.ts'
import { RegistrationTurn } from './trunks/registration-turn.ts'
import { Shares } from './trunks/shares.ts'
import type { Snapshot } from './trunks/snapshot.ts'
import type { Stir } from './trunks/stir.ts'
import { UnownedCalls } from './unowned-calls.ts'

interface NodeOptions {
  readonly config: Config
  readonly state: State
  readonly media: MediaClient
  readonly sip: SipStack
  readonly left: LeftDialogs
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly voice: VoiceRequester
  readonly objects: ObjectStore | null
  readonly metrics: Registry
  readonly stir: Stir
  /** The way to the nodes of the other machines. */
  readonly line: BeatLine
  /** Resolves when the edge of this machine has been sent what is saved now. */
  readonly edgeTold: () => Promise<void>
  /** The key of the digest nonces that all machines accept; null: those of this machine are its own. */
  readonly nonce_key: Buffer | null
  readonly post: MachinePost
  /** The files of the other machines; null: there are none. */
  readonly machines: MachineFiles | null
}

interface SignalingNode {
  readonly id: string
  readonly live_calls: number
  readonly drain: Drain
  /** Whether it takes calls now, by part. */
  works(): Promise<Works>
  /** Ends the live calls. Unless the node has drained already, they get 3 s first. */
  stop(): Promise<void>
}

/** How long calls may continue after a stop without an earlier drain. */
const STOP_DRAIN_MS = 3000
/** The edge ends a killed node's dialogs after 5 s. A drain of its replacement must last longer than that. */
const ORPHANS_MS = 8000
const SWEEP_MS = 5000
const PRUNE_MS = 3_600_000
const READY_LIMIT_MS = 10_000

export async function startSignaling(options: NodeOptions): Promise<SignalingNode> {
  const { config, state, sip, bus, clock, log, edgeTold } = options
  const id = newId.node()
  const gate = createAdmissionGate(id, clock)
  const machine = machineOf(config.data_dir)
  await registerOwnNode(state, id, machine, clock)
  options.left.belongTo(id)
  // The replacement of a node that was draining continues the drain.
  const inherits = (await signalingNodes(state.db)).some(row => row.draining_at !== null && isDead(row, id, machine))
  const ends = new UnwrittenEnds(config.data_dir, log)
  // Before the calls of the process that left them are ended as lost.
  await ends.writeLeft(({ sid, steps }) => writeCall(state.db, sid, steps))
  const watch = new NodeWatch()
  const left_calls = await endLost(options, watch, { dead: row => isDead(row, id, machine) })

  const calls = new CallRegistry()
  const metrics = createCallMetrics(options.metrics, clock)
  const media = new MediaHub(options.media, log)
  const { machine_id } = machine
  const configuration = new Configuration({ state, node_id: id, machine_id, clock, bus, log, edgeTold })
  const snapshot = (): Snapshot => configuration.current
  const peer_addresses = new PeerAddresses({ config, clock, snapshot, sip })
  const unsealed = (sealed: string): string => unseal(config.master_key, sealed)
  const health = new TargetHealth({
    sip,
    state,
    clock,
    log,
    node_id: id,
    random: Math.random,
    peer_addresses,
    unseal: unsealed,
  })
  const digest = new DigestAuthenticator({
    clock,
    realm: config.domain,
    snapshot,
    nonces: options.nonce_key ? sharedNonces(options.nonce_key) : machineNonces(config.drachtio_secret),
    claim: nonce => claimNonce(state.db, nonce, clock.now()),
    proved: digestProofs({ state, clock, log }),
    guessed: (trunk_id, address) =>
      void noteGuesser(state.db, { trunk_id, address, now: iso(clock.now()) }).catch(err =>
        log.warn({ err, trunk_id }, 'a password guess could not be saved'),
      ),
  })
  const tokens = new AuthTokens(config.master_key, snapshot)
  const authToken = (project_id: string): string | null => tokens.of(project_id)
  const others = options.nonce_key ? bus : null
  const own_hosts = speaksSip(config.roles) ? addressesOf(config).map(({ host }) => host) : []
  const registrar = new Registrar({
    digest,
    state,
    clock,
    log,
    snapshot,
    domain: config.domain,
    authToken,
    machine_id,
    machineAt: async host =>
      others === null || own_hosts.includes(host) ? undefined : edgeAt(state.db, host, machine_id),
    others,
  })
  await registrar.load()
  if (inherits) await saveDraining(state.db, id, clock.now())
  const least_ms = inherits || left_calls > 0 ? ORPHANS_MS : 0
  const peers = new Peers({
    node_id: id,
    state,
    clock,
    log,
    line: options.line,
    alone: () => endAll(calls, 'node_lost', log),
  })
  const drain = new Drain({ node_id: id, state, bus, clock, log, calls, least_ms }, HEARTBEAT_MS)
  await drain.look()
  const takes = new TakesCalls({ probe: new StateProbe(state, clock), gate, drain, peers, sip, media: options.media })
  const ctx: AdmissionContext = {
    node_id: id,
    machine_id,
    config,
    clock,
    log,
    bus,
    state,
    ends,
    sip,
    media,
    gate,
    metrics,
    calls,
    health,
    registrar,
    shares: new Shares(Math.random),
    peer_addresses,
    stir: options.stir,
    scripts: { create: (host, entry) => new Script(scripting, host, entry) },
    recording: { byPolicy: (...of) => recordByPolicy(scripting, ...of) },
    transfers: { place: asked => placeTransferred(ctx, asked) },
    prepaid: { extend: call => extendReservation(state.db, call) },
    snapshot,
    draining: () => drain.on,
    authToken,
  }
  const sounds = new StoredSounds({
    node_id: id,
    base_url: config.base_url,
    store: { settings: config, objects: options.objects, machines: options.machines },
    db: state.db,
    log,
  })
  await sounds.sweep()
  const rooms = new Rooms(ctx)
  const queues = new Queues(ctx)
  const visits = new Visits({ clock, log, rooms, queues, linked: config.link !== null }, options.post)
  const guests = new Guests(
    ctx,
    { rooms, queues, recordings: calls.recordings, control: command => controlRoom(scripting, command) },
    options.post,
  )
  options.post.onNote((from, text) => {
    const note = readNote(text)
    if (!note) return
    guests.hear(from, note)
    visits.hear(from, note)
  })
  const scripting: ScriptContext = {
    ...ctx,
    voice: options.voice,
    sounds,
    rooms,
    queues,
    visits,
    children: {
      place: (parent, asked) => placeChild(ctx, parent, asked),
      refer: (parent, uri) => admitReferral(ctx, parent, uri),
    },
  }
  const registrations = new CarrierRegistrations({
    sip,
    peer_addresses,
    state,
    clock,
    log,
    node_id: id,
    random: Math.random,
    sip_port: config.sip_port,
    sips_port: config.sips_port,
    data_dir: config.data_dir,
    // Without an edge here, that of another machine has the addresses.
    get hosts() {
      return own_hosts.length > 0 ? own_hosts : (sip.hosts ?? [])
    },
    unseal: unsealed,
  })
  // Machines that share a state share their carriers, too.
  const turn = options.nonce_key
    ? new RegistrationTurn({
        machine,
        state,
        clock,
        log,
        draining: () => drain.on,
        changed: mine => registrations.apply(snapshot(), mine),
      })
    : null
  configuration.onChange(current => {
    void peer_addresses.learn()
    health.apply(current)
    registrations.apply(current, turn?.mine ?? true)
  })
  await configuration.refresh()
  void turn?.look()

  sip.onInvite(invite => void drain.arriving(receiveInvite(ctx, digest, invite)))
  sip.onRequest(request => {
    if (request.method === 'REGISTER') void registrar.handle(request)
    else takes.outsideDialog(request)
  })
  const originator = new Originator(ctx)
  const commands = new CommandTaker(ctx, originator, scripting)
  const tests = new TestRunner(ctx)

  // Calls end when the link to the SIP server or the media worker is lost. The embedded edge ends the dialogs of a lost
  // link itself. A drachtio-server keeps them, so we hang them up when the link is back.
  const hangUpLeft = (): Promise<void> =>
    options.left.sweep(sip).catch(err => log.error({ err }, 'dialogs of a lost node were not hung up'))
  const unlink = sip.onLink(up => {
    if (up) {
      commands.look()
      void hangUpLeft()
    } else endAll(calls, 'node_lost', log)
  })
  media.onDown(() => endAll(calls, 'node_lost', log))
  options.media.on('up', () => commands.look())

  const presence = new Presence({
    reached: () => peers.reached(),
    node_id: id,
    machine,
    state,
    clock,
    log,
    sip,
    media: options.media,
    wasLost() {
      endAll(calls, 'node_lost', log)
      configuration.reportAgain()
    },
  })
  const unowned = new UnownedCalls()
  const sweep = clock.every(SWEEP_MS, () => {
    endLost(options, watch)
      .then(() => finishLeftRecordings(ctx))
      .then(() => sounds.sweep())
      .then(hangUpLeft)
      .then(() => unowned.sweep(ctx, sid => originator.holds(sid)))
      .catch(err => log.error({ err }, 'the search for lost calls and recordings failed'))
  })
  const housekeeping = new Sleeper({
    work: goesOn => prune(ctx, goesOn),
    failed: err => log.error({ err }, 'old rows and logs were not removed'),
    every: { clock, period_ms: PRUNE_MS },
  })
  exposeNode(options.metrics, ctx, { ...scripting, originator, registrations })
  await ready(options)
  // The link may have come up before the listener was added.
  await hangUpLeft()
  presence.tellLinks()
  log.info({ node_id: id, edge: sip.connected, media: media.connected }, 'signaling node started')

  return {
    id,
    get live_calls() {
      return calls.size
    },
    drain,
    works: () => takes.works(),
    async stop() {
      if (!drain.on) await Promise.race([drain.begin().then(() => drain.done), delay(clock, STOP_DRAIN_MS)])
      drain.stop()
      await commands.stop()
      await tests.stop()
      originator.stop()
      guests.stop()
      await Promise.all(calls.all().map(call => call.end({ cause: 'draining' })))
      visits.stop()
      sweep.cancel()
      peer_addresses.stop()
      await housekeeping.stop()
      unlink()
      await Promise.all([health.stop(), registrations.stop()])
      await turn?.stop()
      await registrar.stop()
      await configuration.stop()
      peers.stop()
      await presence.stop()
      sip.close()
      options.media.close()
    },
  }
}

/** Waits for the links, so that a ready node can take calls. After 10 s it starts without them and refuses calls. */
async function ready({ sip, media, clock }: NodeOptions): Promise<void> {
  const deadline_ms = clock.monotonic_ms() + READY_LIMIT_MS
  while ((!sip.connected || !media.connected) && clock.monotonic_ms() < deadline_ms) await delay(clock, 20)
}

function endAll(calls: CallRegistry, cause: 'node_lost', log: Log): void {
  if (calls.size > 0) log.warn({ calls: calls.size, cause }, 'running calls are being ended')
  for (const call of calls.all()) void call.end({ cause })
}

/** Returns the number of calls that it has ended. */
const endLost = (options: NodeOptions, watch: NodeWatch, how: { dead?: (row: NodeRow) => boolean } = {}) =>
  endCallsOfLostNodes(options.state, options.clock, watch, how).then(ended => {
    if (ended.length > 0) {
      options.log.warn({ calls: ended.length }, 'calls of a lost node were ended')
      options.bus.ring('outbox')
    }
    return ended.length
  })
