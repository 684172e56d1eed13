import { useEffect, useState } from 'preact/hooks'
import type { ListedCall } from './api-types.ts'
import { useData } from './data.ts'
import { LIVE_CALLS } from './first-reads.ts'
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
  const [started, setStarted] = useState<ReadonlyMap<string, CallSummary>>(new Map())

  // A reload has all calls. Events only fill the time until the next reload.
  useEffect(() => setStarted(new Map()), [of.data])

  useEffect(() => {
    // Hundreds of calls change within a second. The page shows them together, a few times a second.
    const waiting = new Map<string, CallSummary>()
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
      const over = [...changed.values()].filter(call => call.ended_at !== null)
      setStarted(before => new Map([...before, ...changed].filter(([, call]) => call.ended_at === null)))
      if (over.length === 0) return
      setEnded(before => [...before.filter(({ id }) => !changed.has(id)), ...over])
      later(() => setEnded(before => before.filter(call => !over.includes(call))), KEEP_ENDED_MS)
    }
    const stop = onLive(event => {
      if (event.type !== 'call') return
      const call = event['call'] as CallSummary
      if (waiting.size === 0) later(show, TOGETHER_MS)
      waiting.set(call.id, call)
    })
    return () => {
      stop()
      for (const timer of timers) clearTimeout(timer)
    }
  }, [])

  const over = new Set(ended.map(call => call.id))
  const known = (of.data?.data ?? [])
    .filter(call => !over.has(call.id))
    .map((call): Known => ({ ...call, ...started.get(call.id) }))
  const ids = new Set(known.map(call => call.id))
  const calls = [
    ...[...started.values()].filter(call => !ids.has(call.id)).map(call => ({ ...call, over: false })),
    ...known.map(call => ({ ...call, over: false })),
    ...ended.map(call => ({ ...call, over: true })),
  ]
  return { calls, problem: of.problem, loading: of.loading, known: of.data !== undefined }
}
