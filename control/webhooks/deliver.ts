import { setMaxListeners } from 'node:events'
import { CALLBACK_ANSWERED_WITH_ERROR } from '../../core/domain/webhooks/errors.ts'
import { parseTarget } from '../../core/domain/webhooks/target.ts'
import { isGone, type Machine, processName, processNamed } from '../../core/runtime/machine.ts'
import { ProjectPlaces } from '../../core/runtime/project-places.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import { Sleeper } from '../../core/runtime/sleeper.ts'
import type { VoiceReply, VoiceRequester } from '../../core/runtime/voice-request.ts'
import { recordExchange } from '../../core/state/calls/calls.ts'
import {
  type Attempted,
  callbackAttempted,
  type DueCallback,
  freeCallbacks,
  mendCallbackTimes,
  pruneCallbacks,
  returnCallbacks,
  takeDueCallbacks,
} from '../../core/state/delivery/outbox-delivery.ts'
import type { Services } from '../http/services.ts'
import { LONGEST_WAIT_MS, waitAfter } from './retry-delays.ts'

type AttemptResult = 'delivered' | 'failed' | 'given_up'

export interface DelivererOptions extends Omit<Services, 'objects'> {
  readonly requester: VoiceRequester
  readonly machine: Machine
  readonly attempted?: (result: AttemptResult) => void
  /** In [0, 1), for the jitter between attempts. */
  readonly random?: () => number
  readonly limits?: Partial<Limits>
}

interface Limits {
  /**
   * Concurrent deliveries in total, of which a project has a share, and of a project to one scheme, host and port: a
   * dead server cannot occupy every place of its project, and no project occupies the places at a rival's server.
   */
  readonly in_flight: number
  readonly in_flight_per_origin: number
  readonly lease_ms: number
  readonly poll_ms: number
  readonly stop_patience_ms: number
}

// The longest exchange takes 15 s (voice-compat.md section 7.4). A lease lasts longer, so that only a dead process
// lets one expire.
const LIMITS: Limits = {
  in_flight: 128,
  in_flight_per_origin: 16,
  lease_ms: 25_000,
  poll_ms: 1000,
  stop_patience_ms: 2000,
}

const KEPT_MS = 7 * 86_400_000
const PRUNE_EVERY_MS = 600_000
const MEND_EVERY_MS = 30_000

export interface Deliverer {
  stop(): Promise<void>
}

interface UnderWay {
  readonly project_id: string
  readonly origin: string
  /** The start of the URL up to the path, as the customer wrote it; empty when it has none. */
  readonly written: string
  readonly done: Promise<void>
}

/**
 * Delivers due callbacks, up to the limit of concurrent deliveries. The bus, a timer and the end of each delivery wake
 * it. The rows keep the order: a callback is not due until the previous one of its call and URL is settled.
 */
export const deliverCallbacks = (options: DelivererOptions): Deliverer => new Delivering(options)

class Delivering implements Deliverer {
  readonly #options: DelivererOptions
  readonly #limits: Limits
  readonly #under_way = new Map<number, UnderWay>()
  readonly #places: ProjectPlaces
  readonly #ending = new AbortController()
  readonly #sleeper: Sleeper
  readonly #pruner: Sleeper
  readonly #ends: readonly (() => void)[]
  #stopped = false
  #freed = false

  constructor(options: DelivererOptions) {
    this.#options = options
    this.#limits = { ...LIMITS, ...options.limits }
    this.#places = new ProjectPlaces(this.#limits.in_flight)
    const { bus, clock, log } = options
    // Every exchange adds a listener to this signal: more than Node's default limit.
    setMaxListeners(0, this.#ending.signal)
    this.#sleeper = new Sleeper({
      work: () => this.#work(),
      failed: err => log.error({ err }, 'callbacks could not be taken from the outbox'),
      every: { clock, period_ms: this.#limits.poll_ms },
    })
    this.#pruner = new Sleeper({
      work: goesOn => this.#prune(goesOn),
      failed: err => log.error({ err }, 'old callbacks could not be removed'),
      every: { clock, period_ms: PRUNE_EVERY_MS },
    })
    const mend = clock.every(MEND_EVERY_MS, () => this.#mend())
    const wake = (): void => void this.#sleeper.wake()
    this.#ends = [() => mend.cancel(), bus.on('outbox', wake)]
    wake()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    for (const end of this.#ends) end()
    await Promise.all([this.#sleeper.stop(), this.#pruner.stop()])
    const patience = this.#options.clock.after(this.#limits.stop_patience_ms, () => this.#ending.abort())
    await Promise.all([...this.#under_way.values()].map(({ done }) => done))
    patience.cancel()
  }

  async #work(): Promise<void> {
    if (!this.#freed) await this.#freeTaken()
    await this.#take()
  }

  /** Frees the callbacks that dead processes had taken. */
  async #freeTaken(): Promise<void> {
    const { state, machine } = this.#options
    await freeCallbacks(state.db, name => isGone(processNamed(name), machine))
    this.#freed = true
  }

  async #take(): Promise<void> {
    const { state, clock, machine } = this.#options
    const by = processName({ ...machine, pid: process.pid })
    /**
     * Projects that write a full origin in more ways than the rows leave out. They wait for the next run; otherwise
     * their rows would be taken and returned without end.
     */
    const passed_over = new Set<string>()
    for (;;) {
      const { free } = this.#places
      if (free === 0 || this.#stopped) return
      const rows = await takeDueCallbacks(state.db, {
        by,
        now_ms: clock.now(),
        lease_ms: this.#limits.lease_ms,
        limit: free,
        but_not: this.#shut(),
        but_not_of: [...this.#places.full(), ...passed_over],
        under_way: [...this.#under_way.keys()],
      })
      if (rows.length === 0) return
      const surplus = rows.filter(row => this.#stopped || !this.#begin(row))
      const shut = this.#shut()
      const isShut = ({ url, project_id }: DueCallback): boolean =>
        shut.some(one => one.project_id === project_id && one.origin === writtenOf(url))
      for (const row of surplus)
        if (this.#isFull(row.project_id, originOf(row.url)) && !isShut(row)) passed_over.add(row.project_id)
      await returnCallbacks(
        state.db,
        surplus.map(({ id }) => id),
        by,
      )
    }
  }

  /** Begins a delivery. False when its project has its share of places, or of those to the origin. */
  #begin(row: DueCallback): boolean {
    const { log } = this.#options
    const { id, url, project_id } = row
    const origin = originOf(url)
    if (this.#isFull(project_id, origin) || !this.#places.take(project_id)) return false
    const done = deliver(row, this.#options, this.#ending.signal)
      .catch(err => log.error({ err, call_sid: row.call_sid, outbox_id: id }, 'a callback could not be settled'))
      .finally(() => {
        this.#under_way.delete(id)
        this.#places.give(project_id)
        void this.#sleeper.wake()
      })
    this.#under_way.set(id, { project_id, origin, written: writtenOf(url), done })
    return true
  }

  #isFull(project_id: string, origin: string): boolean {
    let count = 0
    for (const one of this.#under_way.values()) if (one.project_id === project_id && one.origin === origin) count++
    return count >= this.#limits.in_flight_per_origin
  }

  /** Returns the full origins of projects, each as the deliveries under way have it written. */
  #shut(): { project_id: string; origin: string }[] {
    const all = new Map([...this.#under_way.values()].map(one => [`${one.project_id} ${one.written}`, one]))
    return [...all.values()].flatMap(({ project_id, origin, written }) =>
      written !== '' && this.#isFull(project_id, origin) ? [{ project_id, origin: written }] : [],
    )
  }

  async #prune(goesOn: () => boolean): Promise<void> {
    const { state, clock } = this.#options
    await pruneCallbacks(state, clock.now() - KEPT_MS, goesOn)
  }

  #mend(): void {
    const { state, clock, log } = this.#options
    const times = { now_ms: clock.now(), lease_ms: this.#limits.lease_ms, longest_wait_ms: LONGEST_WAIT_MS }
    mendCallbackTimes(state.db, times).catch(err =>
      log.error({ err }, 'the due times of callbacks could not be corrected'),
    )
  }
}

/** Returns the origin that is connected to. Malformed URLs share the empty origin. */
function originOf(url: string): string {
  const parsed = parseTarget(url)
  return parsed.ok ? parsed.target.origin : ''
}

const writtenOf = (url: string): string => /^\s*[a-z]+:\/\/[^/?#]*/i.exec(url)?.[0] ?? ''

/** Makes one attempt and settles its outcome. */
async function deliver(row: DueCallback, options: DelivererOptions, signal: AbortSignal): Promise<void> {
  const { state, clock, log, requester, settings, random = Math.random } = options
  const attempts = row.attempts + 1
  if (row.auth_token_sealed === null) {
    await settle({ attempts, status: null, error: 'the project has no voice account', next: 'given_up' })
    return
  }
  const parameters = Object.entries(JSON.parse(row.parameters) as Record<string, string>)
  const reply = await requester.send({
    url: row.url,
    method: row.method,
    parameters,
    auth_token: unseal(settings.master_key, row.auth_token_sealed),
    reply: 'ignored',
    idempotency_token: row.event_id,
    signal,
  })
  if (!reply.ok && reply.error === 'aborted') {
    await returnCallbacks(state.db, [row.id], row.lease_by)
    return
  }
  await settle(outcomeOf(reply, attempts, clock.now(), random()))
  if (row.call_sid !== null && row.call_event_history === 'enabled')
    await recordExchange(
      state.db,
      {
        call_sid: row.call_sid,
        method: row.method,
        url: reply.url,
        parameters: Object.fromEntries(parameters),
        reply: exchangeReply(reply),
      },
      clock.now(),
    )

  async function settle(attempted: Attempted): Promise<void> {
    if (!(await callbackAttempted(state.db, row, attempted))) return
    const result = typeof attempted.next === 'object' ? 'failed' : attempted.next
    options.attempted?.(result)
    if (result === 'given_up')
      log.warn(
        { call_sid: row.call_sid, outbox_id: row.id, attempts, status: attempted.status, error: attempted.error },
        'a callback failed and is not tried again',
      )
  }
}

function outcomeOf(reply: VoiceReply, attempts: number, now_ms: number, random: number): Attempted {
  if (reply.ok) return { attempts, status: reply.status, error: null, next: 'delivered' }
  // A malformed URL is not worth a retry.
  const wait_ms = reply.error === 'bad_url' ? null : waitAfter(attempts, random)
  const next = wait_ms === null ? 'given_up' : { at_ms: now_ms + wait_ms }
  return { attempts, status: reply.status, error: reply.detail.slice(0, 500), next }
}

const exchangeReply = (reply: VoiceReply) =>
  reply.ok
    ? { ok: true, status: reply.status, duration_ms: reply.duration_ms, headers: reply.headers }
    : {
        ok: false,
        status: reply.status,
        duration_ms: reply.duration_ms,
        number: reply.error === 'status' ? CALLBACK_ANSWERED_WITH_ERROR : reply.number,
        detail: reply.detail,
      }
