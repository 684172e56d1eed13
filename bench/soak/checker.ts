import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { PROCESSES, pidOf } from '../descriptors.ts'

// Checks the platform from outside: /metrics, rows, and the memory and files of its processes. Functions that return
// sentences report one fault per sentence.

/** Gauges that must return to their idle values when all calls have ended. */
const LIVING = [
  ...['live_calls', 'dialogs', 'sip_transactions', 'media_listeners', 'calls_waiting', 'callbacks_waiting'],
  ...['edge_dialogs', 'edge_client_transactions', 'edge_server_transactions', 'edge_connections'],
  ...['media_sessions', 'media_legs', 'media_ports_in_use', 'media_recordings', 'sandbox_calls'],
]
/** Transactions live on for 32 s (RFC 3261 §17), calls of a lost process for 30 s (design section 8). */
const IDLE_LIMIT_MS = 90_000

type Living = Readonly<Record<string, number>>

export async function livingOf(base_url: string): Promise<Living> {
  const text = await (await fetch(`${base_url}/metrics`, { signal: AbortSignal.timeout(5000) })).text()
  const sum = (name: string): number =>
    [...text.matchAll(new RegExp(`^strowger_${name}(?:\\{.*\\})? (\\d+)$`, 'gm'))].reduce(
      (all, [, n]) => all + Number(n),
      0,
    )
  return Object.fromEntries(
    [...LIVING, 'unexpected_exceptions_total', 'media_ports_quarantined'].map(name => [name, sum(name)]),
  )
}

/** Waits until all gauges are back at their idle values. Returns a sentence for each that is not. */
export async function becomesIdle(base_url: string, idle: Living): Promise<string[]> {
  const deadline = performance.now() + IDLE_LIMIT_MS
  for (;;) {
    const now = await livingOf(base_url).catch(() => null)
    const left = now === null ? ['/metrics does not answer'] : leftOf(now, idle)
    if (left.length === 0 || performance.now() > deadline) return left
    await pause(1000)
  }
}

const leftOf = (now: Living, idle: Living): string[] =>
  LIVING.filter(name => (now[name] ?? 0) > (idle[name] ?? 0)).map(name => `${name} ${now[name]}, idle ${idle[name]}`)

/** Returns a sentence for each kind of row that must not exist, or is inconsistent, when no call is up. */
export async function wrongRows({ db }: Pick<State, 'db'>, acknowledged: readonly string[]): Promise<string[]> {
  const count = async (query: { execute(): Promise<unknown[]> }): Promise<number> => (await query.execute()).length
  const found: [string, number][] = [
    ['calls without an end', await count(db.selectFrom('call').select('sid').where('ended_at', 'is', null))],
    ['slots that are held', await count(db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null))],
    [
      'reservations that are open',
      await count(db.selectFrom('reservation').select('call_sid').where('settled_at', 'is', null)),
    ],
    [
      'ended calls without a record',
      await count(
        db
          .selectFrom('call')
          .leftJoin('cdr', 'cdr.call_sid', 'call.sid')
          .select('call.sid')
          .where('cdr.call_sid', 'is', null),
      ),
    ],
  ]
  const sids = new Set((await db.selectFrom('cdr').select('call_sid').execute()).map(({ call_sid }) => call_sid))
  found.push(['creates answered 201 without a record', acknowledged.filter(sid => !sids.has(sid)).length])
  return [...found.filter(([, n]) => n > 0).map(([what, n]) => `${n} ${what}`), ...(await brokenInvariants(db))]
}

interface Footprint {
  readonly pid: number
  readonly rss_kib: number
  readonly files: number
}

export type Footprints = Readonly<Partial<Record<(typeof PROCESSES)[number], Footprint>>>

export function footprints(folder: string): Footprints {
  const seen = PROCESSES.flatMap(name => {
    try {
      const pid = pidOf(folder, name)
      const rss_kib = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
      return [[name, { pid, rss_kib, files: readdirSync(`/proc/${pid}/fd`).length }] as const]
    } catch {
      // The process is restarting.
      return []
    }
  })
  return Object.fromEntries(seen)
}

interface Growth {
  readonly process: string
  readonly looks: number
  readonly first_kib: number
  readonly last_kib: number
  /** The slope by least squares; null with fewer than three samples. */
  readonly kib_per_minute: number | null
  readonly files: number
}

/** Returns the growth of the longest-lived process of each kind, from samples taken when no call was up. */
export function growthOf(looks: readonly { readonly at_ms: number; readonly seen: Footprints }[]): Growth[] {
  return PROCESSES.flatMap(process => {
    const all = looks.flatMap(({ at_ms, seen }) => (seen[process] ? [{ at_ms, ...seen[process] }] : []))
    const lives = [...new Set(all.map(({ pid }) => pid))].map(pid => all.filter(one => one.pid === pid))
    const longest = lives.sort((a, b) => b.length - a.length)[0]
    const [first, last] = [longest?.at(0), longest?.at(-1)]
    if (!longest || !first || !last) return []
    return [
      {
        process,
        looks: longest.length,
        first_kib: first.rss_kib,
        last_kib: last.rss_kib,
        kib_per_minute: longest.length < 3 ? null : slope(longest.map(one => [one.at_ms / 60_000, one.rss_kib])),
        files: last.files - first.files,
      },
    ]
  })
}

function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (at: 0 | 1): number => points.reduce((sum, point) => sum + point[at], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0)
  const under = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
  return under === 0 ? 0 : over / under
}
