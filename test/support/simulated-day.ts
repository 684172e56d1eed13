import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { seeded } from '../../bench/random.ts'
import { iso } from '../../core/runtime/clock.ts'
import type { cdrOf } from '../../core/state/calls/call-history.ts'
import { openState } from '../../core/state/index.ts'
import { queueWrite } from '../../core/state/port.ts'
import { countsOfEndedCall } from '../../core/state/procedures/running/counts.ts'

/** A day of simulated calls, generated from a seed, so that tests can compute the correct counts. */

export type Record = NonNullable<Awaited<ReturnType<typeof cdrOf>>>

const FAILURES = [
  { status: 'busy', sip_code: 486, reason: 'peer_busy' },
  { status: 'no-answer', sip_code: 480, reason: 'no_answer' },
  { status: 'failed', sip_code: 503, reason: 'target_unreachable' },
  { status: 'failed', sip_code: 503, reason: 'concurrency_exceeded' },
  { status: 'failed', sip_code: 404, reason: 'peer_rejected' },
  { status: 'canceled', sip_code: null, reason: null },
  { status: 'failed', sip_code: 403, reason: 'DESTINATION_CONTAINED' },
] as const

interface Day {
  readonly seed: number
  readonly count: number
  readonly project_id: string
  readonly trunk_ids: readonly string[]
  readonly end_ms: number
  readonly span_ms: number
}

/** Yields `count` records of calls that ended within `span_ms` before `end_ms`. A tenth are tests or have no trunk. */
export function* simulatedCalls(options: Day): Generator<Record> {
  const random = seeded(options.seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const run = options.seed.toString(16).padStart(8, '0')
  for (let at = 0; at < options.count; at++) {
    const ended_ms = Math.floor(options.end_ms - random() * options.span_ms)
    const kind = random()
    const answered = random() < 0.62
    const seconds = answered ? Math.floor(random() ** 3 * 1800) : 0
    // Squared: some failures are far more frequent than others.
    const failure = answered ? null : FAILURES[Math.floor(random() ** 2 * FAILURES.length)]
    yield {
      call_sid: `CA${run}${at.toString(16).padStart(24, '0')}`,
      project_id: options.project_id,
      trunk_id: kind < 0.95 ? pick(options.trunk_ids) : null,
      carrier_id: null,
      origin: kind < 0.9 ? 'trunk' : kind < 0.95 ? 'test' : 'rest',
      direction: 'outbound',
      from_number: '+2342010000001',
      to_number: `+23480${String(at % 100_000_000).padStart(8, '0')}`,
      status: failure ? failure.status : 'completed',
      sip_code: failure ? failure.sip_code : 200,
      reason: failure ? failure.reason : null,
      ended_by: null,
      started_at: iso(ended_ms - seconds * 1000 - 2000),
      answered_at: answered ? iso(ended_ms - seconds * 1000) : null,
      ended_at: iso(ended_ms),
      duration_seconds: seconds,
      pdd_ms: answered || random() < 0.3 ? Math.floor(200 + random() * 6000) : null,
      media: answered && random() < 0.97 ? JSON.stringify(media(random, seconds)) : null,
    }
  }
}

function media(random: () => number, seconds: number) {
  const leg = () => {
    const packets_received = random() < 0.03 ? 0 : seconds * 50
    return {
      packets_received,
      packets_lost: random() < 0.2 ? Math.floor(packets_received * random() * 0.05) : 0,
      jitter_ms: packets_received === 0 ? null : Math.round(random() * 40_000) / 1000,
      mos: packets_received === 0 ? null : Math.round((3 + random() * 1.4) * 1000) / 1000,
    }
  }
  return { a: leg(), b: leg(), mode: random() < 0.15 ? 'transcode' : 'relay' }
}

const TOGETHER = 2000

/** Counts the calls of a day as signaling counts ended calls. Uses a thread, because tap tracks promises in its own. */
export function countDay(data_dir: string, day: Day): Promise<void> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { data_dir, day } })
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('exit', code => (code === 0 ? resolve() : reject(new Error(`the day ended with ${code}`))))
  })
}

if (!isMainThread && workerData?.day) {
  const state = await openState({ data_dir: workerData.data_dir })
  const calls = [...simulatedCalls(workerData.day)]
  for (let at = 0; at < calls.length; at += TOGETHER)
    await state.transaction(async trx => {
      for (const call of calls.slice(at, at + TOGETHER))
        for (const step of countsOfEndedCall({ ...call, application_id: null })) await queueWrite(trx, step)
    })
  await state.close()
}
