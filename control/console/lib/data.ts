import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { isAhead, read, takeEarly } from './api.ts'
import { type Problem, problemOf } from './problem.ts'
import { projectId } from './session.ts'

export interface Data<T> {
  readonly data: T | undefined
  /** When the read of the data began; 0 when that was before this part of the page was drawn. */
  readonly began_ms: number
  readonly problem: Problem | null
  readonly loading: boolean
  reload(): void
  /** Replaces the loaded data with the answer of a write. Reads that began before it no longer count. */
  set(value: T): void
  /** Changes the loaded data by the answer of a write, in the same way. */
  change(next: (before: T) => T): void
}

interface Rows<R> {
  readonly data: readonly R[]
}

/** Puts the row of an answer in the place of the one with its id. */
export const withRow =
  <R extends { readonly id: string }>(row: R) =>
  <L extends Rows<R>>(list: L): L => ({ ...list, data: list.data.map(before => (before.id === row.id ? row : before)) })

/** A poll asks again when an answer takes longer than this. */
const LONGEST_READ_MS = 15_000

interface Reading {
  /** Reloads at this interval while the page is visible. */
  readonly poll_ms?: number
}

/** The answer that came before this part of the page was drawn. `drawn` tells that it needs no first read. */
function useEarly<T>(path: string | null) {
  const [early] = useState(() => (path === null ? undefined : takeEarly<T>(path)))
  const fresh = useRef(early !== undefined)
  const drawn = useCallback((): boolean => {
    const was_fresh = fresh.current
    fresh.current = false
    return was_fresh
  }, [])
  return { early, drawn }
}

/** Loads GET `path`; null loads nothing. The data stays while it reloads. */
export function useData<T>(path: string | null, { poll_ms }: Reading = {}): Data<T> {
  const { early, drawn } = useEarly<T>(path)
  const project = projectId.value
  /** What is shown: what another project has at this path is not this. */
  const what = path === null ? null : `${project} ${path}`
  const [state, setState] = useState<{
    of: string | null
    data: T | undefined
    problem: Problem | null
    busy: boolean
    began_ms: number
  }>({
    of: what,
    data: early,
    began_ms: 0,
    problem: null,
    busy: path !== null && early === undefined,
  })
  const [turn, setTurn] = useState(0)
  const latest = useRef(0)
  /** When the read began that has not ended; null while none runs. */
  const reading_since = useRef<number | null>(null)

  useEffect(() => {
    if (path === null || drawn()) return
    const abort = new AbortController()
    const began_ms = performance.now()
    reading_since.current = began_ms
    latest.current += 1
    const mine = latest.current
    const asked_ms = isAhead(path) ? 0 : began_ms
    setState(before => {
      if (before.of === what && before.busy) return before
      return { ...before, of: what, data: before.of === what ? before.data : undefined, busy: true }
    })
    const answer = read<T>(path, abort.signal).finally(() => {
      if (reading_since.current === began_ms) reading_since.current = null
    })
    answer.then(
      data => {
        if (mine === latest.current) setState({ of: what, data, problem: null, busy: false, began_ms: asked_ms })
      },
      error => {
        if (abort.signal.aborted || mine !== latest.current) return
        setState(before => ({ ...before, problem: problemOf(error), busy: false }))
      },
    )
    return () => abort.abort()
  }, [path, turn, what, drawn])

  useEffect(() => {
    if (poll_ms === undefined || path === null) return
    const timer = setInterval(() => {
      // Another read would abort one that takes longer than the interval, and none would ever end.
      const busy = performance.now() - (reading_since.current ?? Number.NEGATIVE_INFINITY) < LONGEST_READ_MS
      if (document.visibilityState === 'visible' && !busy) setTurn(value => value + 1)
    }, poll_ms)
    return () => clearInterval(timer)
  }, [poll_ms, path])

  // What was polled until now has become final. One more read gets it.
  const polled = useRef<string | null>(null)
  useEffect(() => {
    if (poll_ms === undefined && polled.current !== null && polled.current === path) setTurn(value => value + 1)
    polled.current = poll_ms === undefined ? null : path
  }, [poll_ms, path])

  const reload = useCallback(() => setTurn(value => value + 1), [])
  const shown = useRef(what)
  shown.current = what
  const put = useCallback(
    (next: (before: T | undefined) => T | undefined) => {
      // An answer about what the page showed before is of no use.
      if (shown.current !== what) return
      latest.current += 1
      setState(before => ({ ...before, of: what, data: next(before.data), problem: null, busy: false }))
    },
    [what],
  )
  const set = useCallback((data: T) => put(() => data), [put])
  const change = useCallback((next: (before: T) => T) => put(before => before && next(before)), [put])
  const stale = state.of !== what
  return {
    data: stale ? undefined : state.data,
    began_ms: state.began_ms,
    problem: stale ? null : state.problem,
    loading: state.busy || stale,
    reload,
    set,
    change,
  }
}

export interface Action {
  readonly busy: boolean
  readonly problem: Problem | null
  /** Runs `work`; resolves with whether it succeeded. */
  run(work: () => Promise<unknown>): Promise<boolean>
  clear(): void
}

/** Runs writes and keeps the problem of the last one for its form. */
export function useAction(): Action {
  const [state, setState] = useState<{ busy: boolean; problem: Problem | null }>({ busy: false, problem: null })
  const run = useCallback(async (work: () => Promise<unknown>) => {
    setState({ busy: true, problem: null })
    try {
      await work()
      setState({ busy: false, problem: null })
      return true
    } catch (error) {
      setState({ busy: false, problem: problemOf(error) })
      return false
    }
  }, [])
  const clear = useCallback(() => setState({ busy: false, problem: null }), [])
  return { ...state, run, clear }
}

interface Page<T> {
  readonly data: readonly T[]
  readonly next_cursor?: string | null
}

export interface Pages<T> {
  readonly rows: readonly T[]
  readonly problem: Problem | null
  readonly loading: boolean
  readonly more: boolean
  loadMore(): void
  reload(): void
}

/** Loads every page of a list, one after the other. `path` has a query. */
export function useAll<T>(path: string | null): readonly T[] {
  const { data: first } = useData<Page<T>>(path)
  const [later, setLater] = useState<{ readonly of: Page<T> | undefined; readonly rows: readonly T[] }>()
  useEffect(() => {
    const abort = new AbortController()
    const on = async (): Promise<void> => {
      let rows: readonly T[] = []
      let cursor = first?.next_cursor ?? null
      while (cursor !== null) {
        const page: Page<T> = await read(`${path}&cursor=${encodeURIComponent(cursor)}`, abort.signal)
        rows = [...rows, ...page.data]
        cursor = page.next_cursor ?? null
        setLater({ of: first, rows })
      }
    }
    // The rows that came stay, and the next look at the page asks again.
    on().catch(() => undefined)
    return () => abort.abort()
  }, [first, path])
  return [...(first?.data ?? []), ...(later?.of === first ? (later?.rows ?? []) : [])]
}

interface Paging<T> {
  readonly poll_ms?: number
  readonly key: (row: T) => string
  /** The rows of the first page, and of those after it. Otherwise `path` says them, or the API. */
  readonly first?: number
  readonly later?: number
}

/** The address of a page of a list with this many rows. */
export const withLimit = (path: string, limit: number | undefined): string =>
  limit === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}limit=${limit}`

/** Forgets what belongs to a project when another is chosen: it is not to be seen under the name of that one. */
function useLeft(project: string, forget: () => unknown): void {
  const whose = useRef(project)
  useEffect(() => {
    if (whose.current !== project) forget()
    whose.current = project
  }, [project, forget])
}

/** A paginated list; later pages load on request. */
export function usePages<T>(path: string, { poll_ms, key, first, later = first }: Paging<T>): Pages<T> {
  const { early, drawn } = useEarly<Page<T>>(withLimit(path, first))
  const [rows, setRows] = useState<readonly T[]>(early?.data ?? [])
  const [cursor, setCursor] = useState<string | null>(early?.next_cursor ?? null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [loading, setLoading] = useState(early === undefined)
  const [turn, setTurn] = useState(0)
  const of = useRef('')
  const busy = useRef(false)
  const project = projectId.value
  useLeft(project, () => [setRows([]), setCursor(null), setProblem(null)])

  useEffect(() => {
    const abort = new AbortController()
    const whole = `${project} ${path} ${turn}`
    of.current = whole
    if (drawn()) return
    busy.current = true
    setLoading(true)
    read<Page<T>>(withLimit(path, first), abort.signal).then(
      page => {
        if (of.current !== whole) return
        setRows(page.data)
        setCursor(page.next_cursor ?? null)
        setProblem(null)
        setLoading(false)
        busy.current = false
      },
      error => {
        if (of.current !== whole || abort.signal.aborted) return
        setProblem(problemOf(error))
        setLoading(false)
        busy.current = false
      },
    )
    return () => abort.abort()
  }, [path, turn, project, first, drawn])

  const loaded = useRef(0)
  loaded.current = rows.length
  const complete = cursor === null
  // New rows go to the front, changed rows change in place, and loaded pages stay.
  useEffect(() => {
    if (poll_ms === undefined) return
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible' || busy.current) return
      const whole = of.current
      const limit = first === undefined ? undefined : Math.min(Math.max(first, loaded.current), later ?? first)
      read<Page<T>>(withLimit(path, limit)).then(
        page => {
          if (of.current !== whole) return
          const fresh = new Set(page.data.map(key))
          // The first read may have failed.
          if (loaded.current === 0) setCursor(page.next_cursor ?? null)
          setProblem(null)
          setRows(before => {
            // The whole list came; of a longer one, rows that left the first page are still before the cursor.
            if (complete && page.next_cursor == null) return page.data
            return [...page.data, ...before.filter(row => !fresh.has(key(row)))]
          })
        },
        () => undefined,
      )
    }, poll_ms)
    return () => clearInterval(timer)
  }, [path, poll_ms, key, first, later, complete])

  const loadMore = useCallback(() => {
    if (busy.current || cursor === null) return
    busy.current = true
    const whole = of.current
    setLoading(true)
    const next = withLimit(path, later)
    read<Page<T>>(`${next}${next.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`).then(
      page => {
        if (of.current !== whole) return
        setRows(before => {
          const there = new Set(before.map(key))
          return [...before, ...page.data.filter(row => !there.has(key(row)))]
        })
        setCursor(page.next_cursor ?? null)
        setLoading(false)
        busy.current = false
      },
      error => {
        if (of.current !== whole) return
        setProblem(problemOf(error))
        setLoading(false)
        busy.current = false
      },
    )
  }, [path, cursor, later, key])

  return { rows, problem, loading, more: cursor !== null, loadMore, reload: () => setTurn(value => value + 1) }
}
