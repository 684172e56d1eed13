import { createConnection, type Socket } from 'node:net'
import { type Roles, runsCalls, speaksSip } from '../core/domain/machines/roles.ts'
import type { Bus } from '../core/runtime/bus.ts'
import type { Clock, Timer } from '../core/runtime/clock.ts'
import type { Beat, FromEdge, MachineAt, MachinePost, ToEdge } from '../core/runtime/edge-link.ts'
import { jsonLine, readJsonLines } from '../core/runtime/json-lines.ts'
import type { Log } from '../core/runtime/log.ts'
import type { RateStore } from '../core/runtime/rate-store.ts'
import { Sleeper } from '../core/runtime/sleeper.ts'
import { callsOfCallIds, messagesOfLostCalls } from '../core/state/calls/ladder.ts'
import { readEdgeFacts } from '../core/state/configuration/edge-facts.ts'
import type { State } from '../core/state/index.ts'
import { neighboursOf, saveEdgeLink } from '../core/state/nodes/edge-links.ts'
import { followConfiguration } from './follow-configuration.ts'
import { keepLadder } from './ladder-keeper.ts'
import { SharedFailures } from './shared-failures.ts'

const RETRY_MS = 250
/** How long a stopping node waits for the last SIP messages of its calls. */
const DRAIN_MS = 2000
/** How far back the edge looks for calls that its previous run lost. */
const LEFT_MS = 10 * 60_000
const MACHINES_MS = 2_000

/** The way of a signaling node to those of the other machines. */
export interface BeatLine {
  /** Tells the other machines' nodes, as far as their edges can be reached. */
  beat(beat: Beat): void
  /** Called with what another machine's node says. */
  onBeat: (beat: Beat) => void
}

export interface EdgeServer extends BeatLine {
  /** Whether the edge runs. */
  readonly connected: boolean
  /** Carries notes to and from the nodes of other machines. */
  readonly post: MachinePost
  /** Resolves when the edge, if it runs, has been sent the configuration that is saved now. Never rejects. */
  readonly told: () => Promise<void>
  /** Stops. Resolves when the edge has handed over its pending messages, or after 2 s. */
  stop(): Promise<void>
}

interface EdgeServerOptions {
  readonly path: string
  readonly state: State
  /** The id of the edge at the other end. */
  readonly edge_id: string
  /** The key of the digest nonces that all machines accept; null: the edge makes its own. */
  readonly nonce_key: Buffer | null
  /** Where the edges of other machines reach this one, and the key of their links; null: they do not. */
  readonly links: { readonly own: MachineAt; readonly key: Buffer } | null
  /** Opens what counts for all machines; null: there is one. */
  readonly openRates: (() => Promise<RateStore>) | null
  /** What this machine does. */
  readonly roles: Roles
  readonly bus: Bus
  readonly log: Log
  readonly clock: Clock
}

/**
 * Serves the embedded edge of this machine, which opens no database: sends its configuration, stores its SIP messages
 * and answers its queries. Rejects when the first read of the configuration fails.
 */
export async function serveEdge(options: EdgeServerOptions): Promise<EdgeServer> {
  const { path, state, edge_id, nonce_key, links, openRates, roles, bus, log, clock } = options
  const ladder = keepLadder({ state, edge_id, log, clock })
  let edge: Socket | undefined
  let retry: Timer | undefined
  let stopping = false
  let drained = (): void => undefined
  let noted: Parameters<MachinePost['onNote']>[0] = () => undefined
  let facts = ''
  let machines = ''

  const following = await followConfiguration(state, log, {
    failed: 'the configuration of the SIP edge cannot be read: the one of before remains in force',
    read: async () => {
      const line = jsonLine({ kind: 'facts', facts: await readEdgeFacts(state.db) } satisfies ToEdge)
      // Most configuration changes do not affect the edge.
      if (line === facts) return
      facts = line
      edge?.write(facts)
    },
  })
  const off = bus.on('configuration', () => void following.look())
  await saveEdgeLink(state.db, edge_id, links?.own ?? null)
  const lookForMachines = async ({ own, key }: NonNullable<typeof links>): Promise<void> => {
    const { others, homes, fronts } = await neighboursOf(state.db, own.machine_id, clock.now())
    const of = {
      homes: runsCalls(roles) ? [] : homes,
      fronts: speaksSip(roles) ? [] : fronts,
    }
    const links = { own, key: key.toString('hex'), others, ...of }
    const line = jsonLine({ kind: 'machines', links } satisfies ToEdge)
    if (line === machines) return
    machines = line
    edge?.write(machines)
  }
  const looking =
    links &&
    new Sleeper({
      work: () => lookForMachines(links),
      failed: err => log.warn({ err }, 'the machines of the installation cannot be read'),
      every: { clock, period_ms: MACHINES_MS },
    })
  const unhear = bus.on('nodes', () => void looking?.wake())
  void looking?.wake()
  const failures =
    openRates &&
    new SharedFailures({ open: openRates, log }, (source, ms) => edge && say(edge, { kind: 'shut', source, ms }))
  const hear = async (from: Socket, message: FromEdge): Promise<void> => {
    if (message.kind === 'drained') drained()
    else if (message.kind === 'beat') server.onBeat(message.beat)
    else if (message.kind === 'note') noted(message.from, message.text)
    else if (message.kind === 'tried') failures?.tried(message.source, message.failed)
    else if (message.kind === 'messages') {
      const kept = await ladder.keep(message.messages, message.again)
      say(from, { kind: kept ? 'kept' : 'lost', id: message.id })
    } else say(from, await answered(message))
  }
  const answered = async ({ kind, id, sip_call_ids }: Question): Promise<ToEdge> => {
    try {
      if (kind === 'calls') return { kind, id, calls: [...(await callsOfCallIds(state.db, sip_call_ids))] }
      const since = new Date(clock.now() - LEFT_MS).toISOString()
      return { kind, id, messages: await messagesOfLostCalls(state.db, { edge_id, since, further: sip_call_ids }) }
    } catch (err) {
      log.warn({ err }, 'a question of the SIP edge could not be answered')
      return { kind: 'unanswered', id }
    }
  }
  const connect = (): void => {
    const opened = createConnection(path)
    opened.on('connect', () => {
      edge = opened
      say(opened, { kind: 'nonces', key: nonce_key?.toString('hex') ?? null })
      opened.write(machines)
      opened.write(facts)
    })
    readJsonLines(opened, value => void hear(opened, value as FromEdge))
    opened.on('error', err => log.debug({ err }, 'the SIP edge is not connected'))
    opened.on('close', () => {
      edge = undefined
      drained()
      if (!stopping) retry = clock.after(RETRY_MS, connect)
    })
  }
  connect()
  const server: EdgeServer = {
    get connected() {
      return edge !== undefined
    },
    beat: beat => edge && say(edge, { kind: 'beat', beat }),
    onBeat: () => undefined,
    told: following.look,
    post: {
      send: (to, text) => void (edge && say(edge, { kind: 'note', to, text })),
      onNote(listener) {
        noted = listener
      },
    },
    async stop() {
      stopping = true
      off()
      unhear()
      await looking?.stop()
      following.stop()
      retry?.cancel()
      await new Promise<void>(resolve => {
        const late = clock.after(DRAIN_MS, resolve)
        drained = () => {
          late.cancel()
          resolve()
        }
        if (edge) say(edge, { kind: 'drain' })
        else drained()
      })
      await ladder.stop()
      await failures?.stop()
      edge?.destroy()
    },
  }
  return server
}

type Question = Extract<FromEdge, { readonly kind: 'left' | 'calls' }>

const say = (to: Socket, message: ToEdge): void => void to.write(jsonLine(message))
