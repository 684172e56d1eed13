import { setMaxListeners } from 'node:events'
import { CALLBACK_ANSWERED_WITH_ERROR } from '../../core/domain/webhooks/errors.ts'
import { isGone, type Machine, processName, processNamed } from '../../core/runtime/machine.ts'
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
import { LONGEST_WAIT_MS, waitAfter } from './ladder.ts'

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
  /** Concurrent deliveries in total, and to one scheme, host and port: a dead server cannot occupy every place. */
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

/**
 * Delivers due callbacks, up to the limit of concurrent deliveries. The bus, a timer and the end of each delivery wake
 * it. The rows keep the order: a callback is not due until the previous one of its call and URL is settled.
 */
export function deliverCallbacks(options: DelivererOptions): Deliverer {
  const { state, bus, clock, log, machine } = options
  const by = processName({ ...machine, pid: process.pid })
  const limits = { ...LIMITS, ...options.limits }
  const under_way = new Map<number, { readonly origin: string; readonly done: Promise<void> }>()
  const ending = new AbortController()
  // Every exchange adds a listener to this signal: more than Node's default limit.
  setMaxListeners(0, ending.signal)
  let stopped = false
  let freed = false
  const sleeper = new Sleeper({
    async work() {
      if (!freed) await freeTaken()
      await take()
    },
    failed: err => log.error({ err }, 'callbacks could not be taken from the outbox'),
    every: { clock, period_ms: limits.poll_ms },
  })
  const wake = (): void => void sleeper.wake()
  const prune = clock.every(PRUNE_EVERY_MS, () => {
    pruneCallbacks(state.db, clock.now() - KEPT_MS).catch(err =>
      log.error({ err }, 'old callbacks could not be removed'),
    )
  })
  const mend = clock.every(MEND_EVERY_MS, () => {
    const times = { now_ms: clock.now(), lease_ms: limits.lease_ms, longest_wait_ms: LONGEST_WAIT_MS }
    mendCallbackTimes(state.db, times).catch(err =>
      log.error({ err }, 'the due times of callbacks could not be corrected'),
    )
  })
  const unhear = bus.on('outbox', wake)
  wake()

  return {
    async stop() {
      stopped = true
      prune.cancel()
      mend.cancel()
      unhear()
      await sleeper.stop()
      const patience = clock.after(limits.stop_patience_ms, () => ending.abort())
      await Promise.all([...under_way.values()].map(({ done }) => done))
      patience.cancel()
    },
  }

  /** Frees the callbacks that dead processes had taken. */
  async function freeTaken(): Promise<void> {
    await freeCallbacks(state.db, name => isGone(processNamed(name), machine))
    freed = true
  }

  async function take(): Promise<void> {
    for (;;) {
      const free = limits.in_flight - under_way.size
      if (free <= 0 || stopped) return
      const rows = await takeDueCallbacks(state.db, {
        by,
        now_ms: clock.now(),
        lease_ms: limits.lease_ms,
        limit: free,
        but_not: fullOrigins(),
        under_way: [...under_way.keys()],
      })
      if (rows.length === 0) return
      const surplus: number[] = []
      for (const row of rows) {
        const origin = originOf(row.url)
        if (stopped || countOf(origin) >= limits.in_flight_per_origin) surplus.push(row.id)
        else begin(row, origin)
      }
      await returnCallbacks(state.db, surplus)
    }
  }

  function begin(row: DueCallback, origin: string): void {
    const done = deliver(row, options, ending.signal)
      .catch(err => log.error({ err, call_sid: row.call_sid, outbox_id: row.id }, 'a callback could not be settled'))
      .finally(() => {
        under_way.delete(row.id)
        wake()
      })
    under_way.set(row.id, { origin, done })
  }

  function countOf(origin: string): number {
    let count = 0
    for (const one of under_way.values()) if (one.origin === origin) count++
    return count
  }

  function fullOrigins(): string[] {
    const origins = new Set([...under_way.values()].map(({ origin }) => origin))
    return [...origins].filter(origin => countOf(origin) >= limits.in_flight_per_origin)
  }
}

/** Returns the scheme and authority of a URL as written. Malformed URLs share the empty origin. */
const originOf = (url: string): string => /^\s*[a-z]+:\/\/[^/?#]*/i.exec(url)?.[0] ?? ''

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
    await returnCallbacks(state.db, [row.id])
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
    await callbackAttempted(state.db, row, attempted)
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
