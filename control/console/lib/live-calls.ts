import { useEffect, useState } from 'preact/hooks'
import type { ListedCall } from './api-types.ts'
import { useData } from './data.ts'
import { LIVE_CALLS } from './first-reads.ts'
import { type HeardCalls, heardSince, withHeard } from './heard-calls.ts'
import { onLive } from './live.ts'
import type { CallSummary, ListOf } from './types.ts'

const KEEP_ENDED_MS = 8000
const TOGETHER_MS = 100

/** Events tell of a call without what only its list knows. */
type Known = CallSummary & Partial<Pick<ListedCall, 'codec' | 'mos' | 'trunk_name'>>

export type LiveCall = Known & {
  /** The call ended moments ago. It stays visible briefly to show how it ended. */
  readonly over: boolean
}

/** Returns the calls in progress: loaded once, updated by events, and reloaded periodically in case one was lost. */
export function useLiveCalls(): {
  calls: readonly LiveCall[]
  problem: ReturnType<typeof useData>['problem']
  loading: boolean
  /** They were read once. */
  known: boolean
} {
  const of = useData<ListOf<ListedCall>>(LIVE_CALLS, { poll_ms: 4000 })
  const [ended, setEnded] = useState<readonly CallSummary[]>([])
  const [started, setStarted] = useState<HeardCalls<CallSummary>>(new Map())

  // A reload has all calls. Events only fill the time until the next reload begins.
  const { began_ms } = of
  useEffect(() => setStarted(before => heardSince(before, began_ms)), [began_ms])

  useEffect(() => {
    // Hundreds of calls change within a second. The page shows them together, a few times a second.
    const waiting = new Map<string, { readonly call: CallSummary; readonly heard_ms: number }>()
    const timers = new Set<ReturnType<typeof setTimeout>>()
    const later = (work: () => void, ms: number) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        work()
      }, ms)
      timers.add(timer)
    }
    const show = () => {
      const changed = new Map(waiting)
      waiting.clear()
      const over = [...changed.values()].map(({ call }) => call).filter(call => call.ended_at !== null)
      setStarted(before => new Map([...before, ...changed].filter(([, { call }]) => call.ended_at === null)))
      if (over.length === 0) return
      setEnded(before => [...before.filter(({ id }) => !changed.has(id)), ...over])
      later(() => setEnded(before => before.filter(call => !over.includes(call))), KEEP_ENDED_MS)
    }
    const stop = onLive(event => {
      if (event.type !== 'call') return
      const call = event['call'] as CallSummary
      if (waiting.size === 0) later(show, TOGETHER_MS)
      waiting.set(call.id, { call, heard_ms: performance.now() })
    })
    return () => {
      stop()
      for (const timer of timers) clearTimeout(timer)
    }
  }, [])

  const over = new Set(ended.map(call => call.id))
  const listed = (of.data?.data ?? []).filter(call => !over.has(call.id))
  const calls = [
    ...withHeard<ListedCall, CallSummary>(listed, began_ms, started).map((call: Known) => ({ ...call, over: false })),
    ...ended.map(call => ({ ...call, over: true })),
  ]
  return { calls, problem: of.problem, loading: of.loading, known: of.data !== undefined }
}
