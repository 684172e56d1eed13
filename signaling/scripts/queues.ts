import type { DequeueCommand } from '../../core/domain/calls/control-commands.ts'
import {
  addMember,
  claimQueue,
  DEFAULT_QUEUE_SIZE,
  ensureQueue,
  findQueue,
  type QueueMemberRow,
  queueSidOf,
  releaseQueue,
  removeMember,
  restoreMember,
} from '../../core/state/calls/queues.ts'
import type { Dequeue, Enqueue, Event } from '../../markup/interpreter/types.ts'
import { hold } from './hold.ts'
import type { ScriptServices } from './services.ts'
import type { Away, SharedScript } from './shared-script.ts'

/**
 * The queues of this node, first in, first out. A conference of two joins a caller with an agent. Where several
 * machines share the state, a node claims a queue before anybody enters it, and calls of the other machines are its
 * guests.
 */

interface Caller {
  readonly script: SharedScript
  readonly command: Enqueue
  readonly emit: (event: Event) => void
  readonly since_ms: number
  agent: Agent | null
  /** What its row was before it got an agent: it comes back there when that one leaves before they talk. */
  row: QueueMemberRow | undefined
  /** When the caller was joined to its agent; null before that. */
  bridged_ms: number | null
}

interface Agent {
  readonly script: SharedScript
  readonly command: Dequeue
  readonly emit: (event: Event) => void
  caller: Caller | null
}

interface Queue {
  readonly sid: string
  readonly name: string
  readonly callers: Caller[]
  readonly agents: Agent[]
  /** Callers whose row is being written, and agents who are claiming a caller; each with what to do when it leaves. */
  readonly coming: Map<SharedScript, () => void>
  /** Resolves when the last of them is in the queue. */
  admitting: Promise<void>
  max_size: number
}

/** Where a queue is that an agent asks for. */
type Reached = 'ours' | 'none' | { readonly keeper: string }

export class Queues {
  readonly #services: Pick<ScriptServices, 'config' | 'state' | 'node_id'>
  readonly #queues = new Map<string, Queue>()
  /** Claims that are being given back, by key of the queue. */
  readonly #releases = new Map<string, Promise<void>>()

  constructor(services: Pick<ScriptServices, 'config' | 'state' | 'node_id'>) {
    this.#services = services
  }

  /** The number of callers that are not joined to an agent yet. */
  get waiting(): number {
    return [...this.#queues.values()].flatMap(({ callers }) => callers).filter(caller => caller.bridged_ms === null)
      .length
  }

  /** `away` is called when another machine keeps the queue. */
  enqueue(script: SharedScript, command: Enqueue, emit: (event: Event) => void, away: Away): void {
    const queue = this.#queueOf(script, command.name)
    queue.coming.set(script, () => undefined)
    queue.admitting = queue.admitting.then(async () => {
      const admitted = await this.#admit(queue, script, command)
      // The caller may have hung up meanwhile.
      if (!queue.coming.delete(script)) {
        if (admitted === 'in') forgetMember(script)
        this.#forget(queue)
      } else if (admitted === 'in') this.#enter(queue, script, command, emit)
      else {
        this.#forget(queue)
        const { id } = command
        if (admitted !== 'full') away(admitted.keeper)
        else emit({ type: 'queue_left', id, result: 'queue-full', queue_sid: queue.sid, queue_time_seconds: 0 })
      }
    })
  }

  #enter(queue: Queue, script: SharedScript, command: Enqueue, emit: (event: Event) => void): void {
    const { clock } = script.host.call
    const since_ms = clock.monotonic_ms()
    const caller: Caller = { script, command, emit, since_ms, agent: null, row: undefined, bridged_ms: null }
    queue.callers.push(caller)
    emit({ type: 'queue_joined', id: command.id, queue_sid: queue.sid })
    this.#offer(queue, caller)
  }

  /** Joins a caller to a free agent, or leaves the caller in the queue when there is none. */
  #offer(queue: Queue, caller: Caller): void {
    const agent = queue.agents.find(waiting => waiting.caller === null)
    if (agent) this.#connect(queue, caller, agent)
    else this.#wait(queue, caller)
  }

  /**
   * Takes a caller out of its queue, who then runs the document. Returns false when the call does not wait there, or an
   * agent has it already.
   */
  take(call_sid: string, { queue_sid, url, method }: DequeueCommand): boolean {
    for (const queue of this.#queues.values()) {
      const caller = queue.callers.find(({ script, agent }) => script.host.call.sid === call_sid && agent === null)
      if (queue.sid === queue_sid && caller)
        return caller.script.update({ kind: 'request', url, method, parameters: { QueueSid: queue.sid } })
    }
    return false
  }

  dequeue(script: SharedScript, command: Dequeue, emit: (event: Event) => void, away: Away): void {
    // An agent may come before the first caller, but not before the queue.
    const queue = this.#queueOf(script, command.name)
    const end = (result: 'queue-empty' | 'error') =>
      emit({ type: 'dequeue_ended', id: command.id, result, duration_seconds: null })
    queue.coming.set(script, () => end('queue-empty'))
    queue.admitting = queue.admitting.then(async () => {
      const found = await this.#reach(script, command.name)
      if (!queue.coming.delete(script)) this.#forget(queue)
      else if (found === 'ours') this.#serve(queue, script, command, emit)
      else {
        this.#forget(queue)
        if (found === 'none') end('error')
        else away(found.keeper)
      }
    })
  }

  #serve(queue: Queue, script: SharedScript, command: Dequeue, emit: (event: Event) => void): void {
    const agent: Agent = { script, command, emit, caller: null }
    queue.agents.push(agent)
    const caller = queue.callers.find(waiting => waiting.agent === null)
    if (caller) this.#connect(queue, caller, agent)
    else script.waiting.hear(hold)
  }

  /**
   * Takes the script's leg out of its queue, or out of the bridge with its agent. Returns the seconds that it has
   * waited; null when it is in no queue.
   */
  leave(script: SharedScript, result: 'leave' | 'hangup'): number | null {
    let seconds: number | null = null
    for (const queue of this.#queues.values()) {
      queue.coming.delete(script)
      const caller = queue.callers.find(waiting => waiting.script === script)
      if (!caller) continue
      seconds = queueTime(caller)
      this.#callerOut(queue, caller, caller.bridged_ms === null ? result : 'bridged')
    }
    return seconds
  }

  #queueOf(script: SharedScript, name: string): Queue {
    const key = keyOf(script, name)
    const queue = this.#queues.get(key) ?? {
      sid: queueSidOf(script.host.call.project_id, name),
      name,
      callers: [],
      agents: [],
      coming: new Map<SharedScript, () => void>(),
      admitting: this.#releases.get(key) ?? Promise.resolve(),
      max_size: DEFAULT_QUEUE_SIZE,
    }
    this.#queues.set(key, queue)
    return queue
  }

  stopDequeue(script: SharedScript): void {
    for (const queue of this.#queues.values()) {
      const left = queue.coming.get(script)
      queue.coming.delete(script)
      left?.()
      const agent = queue.agents.find(waiting => waiting.script === script)
      if (agent) this.#agentOut(queue, agent)
    }
  }

  #wait(queue: Queue, caller: Caller): void {
    const { wait } = caller.command
    if (!wait) {
      caller.script.waiting.hear(hold)
      return
    }
    caller.script.waiting.run({
      kind: 'queue_wait',
      entry: { kind: 'request', ...wait },
      again: true,
      parameters: () => ({
        QueueSid: queue.sid,
        QueuePosition: String(queue.callers.filter(other => !other.agent).indexOf(caller) + 1),
        QueueTime: String(waited(caller)),
        AvgQueueTime: String(average(queue)),
        CurrentQueueSize: String(queue.callers.filter(other => !other.agent).length),
        MaxQueueSize: String(queue.max_size),
      }),
      done: outcome => {
        if (outcome === 'leave') this.#callerOut(queue, caller, 'leave')
        else if (outcome === 'hangup') void caller.script.host.call.end({ cause: 'script' })
      },
    })
  }

  #connect(queue: Queue, caller: Caller, agent: Agent): void {
    caller.agent = agent
    agent.caller = caller
    agent.emit({ type: 'dequeue_found', id: agent.command.id })
    const { call } = caller.script.host
    void call.persist(async trx => {
      caller.row = await removeMember(trx, call.sid)
    })
    caller.script.waiting.stop()
    agent.script.waiting.stop()
    const { whisper } = agent.command
    if (!whisper) {
      void this.#join(queue, caller, agent)
      return
    }
    const parameters = (): Record<string, string> => ({
      QueueSid: queue.sid,
      QueueTime: String(waited(caller)),
      DequeingCallSid: agent.script.host.call.sid,
    })
    caller.script.waiting.run({
      kind: 'whisper',
      entry: { kind: 'request', ...whisper },
      again: false,
      parameters,
      done: outcome => {
        if (outcome === 'hangup') void caller.script.host.call.end({ cause: 'script' })
        // The whisper may say what the caller must hear before the agent, such as that the call is recorded.
        else if (outcome === 'failed') this.#agentOut(queue, agent, 'error')
        else void this.#join(queue, caller, agent)
      },
    })
  }

  async #join(queue: Queue, caller: Caller, agent: Agent): Promise<void> {
    const conference_id = `${queue.sid}-${caller.script.host.call.sid}`
    const queue_time_seconds = waited(caller)
    try {
      for (const { leg } of [caller.script.host, agent.script.host]) {
        await leg.session.hub.request('conference.join', { conference_id, leg_id: leg.id, muted: false, deaf: false })
        // One of them may have left meanwhile.
        if (!queue.agents.includes(agent)) return
      }
    } catch (err) {
      agent.script.host.call.log.warn({ err }, 'a queued caller could not be joined to its agent')
      this.#agentOut(queue, agent)
      return
    }
    caller.bridged_ms = caller.script.host.call.clock.monotonic_ms()
    caller.emit({ type: 'queue_bridged', id: caller.command.id })
    agent.emit({
      type: 'dequeue_bridged',
      id: agent.command.id,
      queue_sid: queue.sid,
      call_sid: caller.script.host.call.sid,
      queue_time_seconds,
    })
  }

  #callerOut(queue: Queue, caller: Caller, result: 'leave' | 'hangup' | 'bridged'): void {
    const at = queue.callers.indexOf(caller)
    if (at < 0) return
    queue.callers.splice(at, 1)
    if (!caller.agent) forgetMember(caller.script)
    caller.script.waiting.stop()
    part(caller.script)
    const { agent } = caller
    const queue_time_seconds = queueTime(caller)
    caller.emit({ type: 'queue_left', id: caller.command.id, result, queue_sid: queue.sid, queue_time_seconds })
    if (agent) this.#agentOut(queue, agent)
    this.#forget(queue)
  }

  /** `unmet` is the result when the agent has talked with no caller. */
  #agentOut(queue: Queue, agent: Agent, unmet: 'queue-empty' | 'error' = 'queue-empty'): void {
    const at = queue.agents.indexOf(agent)
    if (at < 0) return
    queue.agents.splice(at, 1)
    agent.script.waiting.stop()
    part(agent.script)
    const { caller } = agent
    const { clock } = agent.script.host.call
    const bridged_ms = caller?.bridged_ms ?? null
    const duration_seconds = bridged_ms === null ? null : Math.round((clock.monotonic_ms() - bridged_ms) / 1000)
    agent.emit({
      type: 'dequeue_ended',
      id: agent.command.id,
      result: bridged_ms === null ? unmet : 'bridged',
      duration_seconds,
    })
    if (caller && bridged_ms !== null) this.#callerOut(queue, caller, 'bridged')
    else if (caller) this.#back(queue, caller)
    this.#forget(queue)
  }

  /** A caller whose agent has left before they talked waits on in its place, or gets the next agent. */
  #back(queue: Queue, caller: Caller): void {
    // The agent was ended because this caller has left.
    if (!queue.callers.includes(caller)) return
    caller.agent = null
    caller.script.waiting.stop()
    part(caller.script)
    void caller.script.host.call.persist(async trx => {
      if (caller.row) await restoreMember(trx, caller.row)
    })
    this.#offer(queue, caller)
  }

  /** Whether other machines share the queues. Without links, each machine has its own. */
  get #shared(): boolean {
    const { database_url, link } = this.#services.config
    return database_url !== null && link !== null
  }

  #forget(queue: Queue): void {
    if (queue.callers.length > 0 || queue.agents.length > 0 || queue.coming.size > 0) return
    for (const [key, known] of this.#queues) {
      if (known !== queue) continue
      this.#queues.delete(key)
      if (this.#shared) this.#release(key, queue.sid)
    }
  }

  #release(key: string, sid: string): void {
    const { state, node_id } = this.#services
    const released = state
      .transaction(trx => releaseQueue(trx, sid, node_id))
      // The next call that needs it asks this node.
      .catch(() => undefined)
      .then(() => {
        if (this.#releases.get(key) === released) this.#releases.delete(key)
      })
    this.#releases.set(key, released)
  }

  /** Looks for a queue, and makes it ours unless another machine keeps it. It is ours when nothing can be read. */
  async #reach({ host: { call } }: SharedScript, friendly_name: string): Promise<Reached> {
    const { node_id } = this.#services
    let reached: Reached = 'ours'
    await call.persist(async trx => {
      const row = await findQueue(trx, call.project_id, queueSidOf(call.project_id, friendly_name))
      const keeper = row && this.#shared ? await claimQueue(trx, row.sid, node_id) : null
      if (!row) reached = 'none'
      else reached = keeper === null ? 'ours' : { keeper }
    })
    return reached
  }

  /** Writes a caller into the queue's rows, which the queue may not have yet. */
  async #admit(
    queue: Queue,
    script: SharedScript,
    { name: friendly_name, max_size }: Enqueue,
  ): Promise<'in' | 'full' | { readonly keeper: string }> {
    const { call } = script.host
    const { node_id } = this.#services
    const now_ms = call.clock.now()
    // While the state cannot be written, the queue keeps its callers.
    let admitted: 'in' | 'full' | { readonly keeper: string } = 'in'
    await call.persist(async trx => {
      const row = await ensureQueue(trx, { project_id: call.project_id, friendly_name, max_size }, now_ms)
      queue.max_size = row.max_size
      const keeper = this.#shared ? await claimQueue(trx, row.sid, node_id) : null
      if (keeper !== null) admitted = { keeper }
      else admitted = (await addMember(trx, row, call.sid, now_ms)) ? 'in' : 'full'
    })
    return admitted
  }
}

function forgetMember({ host: { call } }: SharedScript): void {
  void call.persist(trx => removeMember(trx, call.sid))
}

const keyOf = (script: SharedScript, name: string): string => `${script.host.call.facts.account_sid} ${name}`

const waited = (caller: Caller): number =>
  Math.round((caller.script.host.call.clock.monotonic_ms() - caller.since_ms) / 1000)

/** The seconds that a caller waited for its agent, until now when none has come. */
const queueTime = (caller: Caller): number =>
  caller.bridged_ms === null ? waited(caller) : Math.round((caller.bridged_ms - caller.since_ms) / 1000)

function average({ callers }: Queue): number {
  const now_ms = callers[0]?.script.host.call.clock.monotonic_ms() ?? 0
  const waited_ms = callers.reduce((sum, { since_ms }) => sum + now_ms - since_ms, 0)
  return Math.round(waited_ms / 1000 / Math.max(1, callers.length))
}

function part(script: SharedScript): void {
  const { leg, call } = script.host
  if (!leg.ended)
    leg.session.hub
      .request('conference.leave', { leg_id: leg.id })
      .catch(err => call.log.debug({ err }, 'a leg did not leave its conference'))
}
