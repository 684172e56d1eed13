import { useEffect, useState } from 'preact/hooks'
import type { ListedCall } from './api-types.ts'
import { useData } from './data.ts'
import { onLive } from './live.ts'
import type { CallSummary, ListOf } from './types.ts'

const KEEP_ENDED_MS = 8000

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
} {
  const of = useData<ListOf<ListedCall>>('/v1/live-calls', { poll_ms: 4000 })
  const [ended, setEnded] = useState<readonly CallSummary[]>([])
  const [started, setStarted] = useState<readonly CallSummary[]>([])

  // A reload has all calls. Events only fill the time until the next reload.
  useEffect(() => setStarted([]), [of.data])

  useEffect(
    () =>
      onLive(event => {
        if (event.type !== 'call') return
        const call = event['call'] as CallSummary
        setStarted(before => [
          ...before.filter(other => other.id !== call.id),
          ...(call.ended_at === null ? [call] : []),
        ])
        if (call.ended_at === null) return
        setEnded(before => [...before.filter(other => other.id !== call.id), call])
        setTimeout(() => setEnded(before => before.filter(other => other.id !== call.id)), KEEP_ENDED_MS)
      }),
    [],
  )

  const over = new Set(ended.map(call => call.id))
  const fresh = new Map(started.map(call => [call.id, call]))
  const known = (of.data?.data ?? [])
    .filter(call => !over.has(call.id))
    .map((call): Known => ({ ...call, ...fresh.get(call.id) }))
  const ids = new Set(known.map(call => call.id))
  const calls = [
    ...[...fresh.values()].filter(call => !ids.has(call.id)).map(call => ({ ...call, over: false })),
    ...known.map(call => ({ ...call, over: false })),
    ...ended.map(call => ({ ...call, over: true })),
  ]
  return { calls, problem: of.problem, loading: of.loading && of.data === undefined }
}
