/** The results of one run of an engine under load, as bench/media/src/load.cc reports them. */
export interface Row {
  readonly engine: string
  readonly mode: string
  readonly calls: number
  /** 1000: packets come in bursts every millisecond; 100: spread. */
  readonly tick_us: number
  readonly rep: number
  readonly cpu_us_per_packet: number
  readonly core_pct: number
  readonly loss_pct: number
  readonly rss_kb: number
  /** Time from the generator's send call to the arrival of the relayed packet; 0 where codecs differ. */
  readonly latency_us: { readonly p50: number; readonly p99: number }
  readonly bad: number
  readonly silent_legs: number
  /** The lateness of the generator itself. */
  readonly send_late_us_p99: number
  /** CPU time that other processes used meanwhile, in percent of a core. */
  readonly other_core_pct: number
}

export interface Point {
  readonly mode: string
  readonly calls: number
  readonly tick_us: number
}

/** A limit of the issue "Media". `value` is null when this run left out the required measurements. */
interface Bar {
  readonly what: string
  readonly value: number | null
  readonly limit: number
  readonly unit: string
  readonly passed: boolean | null
  /** For an absolute bar, the forwarder's figure in the same run: the best that this machine can do now. */
  readonly floor: number | null
}

/** The highest allowed cost of a mode as a share of rtpengine's. */
const SHARES_OF_RTPENGINE: Readonly<Record<string, number>> = {
  'srtp-sdes': 0.75,
  'srtp-gcm': 0.75,
  pcma: 0.35,
  g722: 0.6,
  g729: 0.75,
  opus: 0.55,
}
const MANY = 1000
const SPREAD = 100
const BURSTS = 1000

export const manner = (tick_us: number) => (tick_us === SPREAD ? 'spread' : 'bursts')

/** Latency and CPU figures are unreliable when other processes use more than this. */
export const QUIET_PCT = 20
/**
 * Reports whether other processes took the engine's core or the load's. Late packets then come in bursts, which are
 * lost or cheaper to forward.
 */
export const starved = (row: Row) => row.loss_pct > 0.5 && row.other_core_pct > QUIET_PCT

const at = (rows: readonly Row[], engine: string, { mode, calls, tick_us }: Point) =>
  rows.filter(
    row =>
      row.engine === engine && row.mode === mode && row.calls === calls && row.tick_us === tick_us && !starved(row),
  )

/** Returns the median over the repetitions; null when there is none. */
function figure(rows: readonly Row[], engine: string, point: Point, read: (row: Row) => number): number | null {
  return median(at(rows, engine, point).map(read))
}

export const cost = (rows: readonly Row[], engine: string, point: Point) =>
  figure(rows, engine, point, row => row.cpu_us_per_packet)

/**
 * Returns the median over the repetitions of one engine's cost as a share of another's in the same repetition, at the
 * same point or at `against`.
 */
export function ratio(rows: readonly Row[], of: string, to: string, point: Point, against = point): number | null {
  const base = at(rows, to, against)
  return median(
    at(rows, of, point).flatMap(row => {
      const other = base.find(candidate => candidate.rep === row.rep)
      return other ? [row.cpu_us_per_packet / other.cpu_us_per_packet] : []
    }),
  )
}

function bar(what: string, value: number | null, limit: number, unit = '', floor: number | null = null): Bar {
  return { what, value, limit, unit, passed: value === null ? null : value <= limit, floor }
}

/** Returns every bar, in the order of the issue. */
export function bars(rows: readonly Row[]): Bar[] {
  const relay = (calls: number, tick_us: number): Point => ({ mode: 'relay', calls, tick_us })
  const both = [BURSTS, SPREAD]
  const absolute = (what: string, point: Point, read: (row: Row) => number, limit: number, unit: string) =>
    bar(
      `relay, ${point.calls} calls, ${manner(point.tick_us)}: ${what}`,
      figure(rows, 'strowger', point, read),
      limit,
      unit,
      figure(rows, 'forwarder', point, read),
    )
  return [
    ...both.map(tick =>
      bar(
        `relay, ${MANY} calls, ${manner(tick)}: cost to the epoll forwarder's`,
        ratio(rows, 'strowger', 'forwarder', relay(MANY, tick)),
        1.2,
      ),
    ),
    ...both.map(tick =>
      bar(
        `relay, ${MANY} calls, ${manner(tick)}: cost to rtpengine's`,
        ratio(rows, 'strowger', 'rtpengine', relay(MANY, tick)),
        0.6,
      ),
    ),
    bar(
      "relay, 200 calls, spread: cost to the epoll forwarder's",
      ratio(rows, 'strowger', 'forwarder', relay(200, SPREAD)),
      1,
    ),
    ...Object.entries(SHARES_OF_RTPENGINE).flatMap(([mode, limit]) =>
      sizes(rows, mode).map(calls =>
        bar(
          `${mode}, ${calls} calls: cost to rtpengine's`,
          ratio(rows, 'strowger', 'rtpengine', { mode, calls, tick_us: BURSTS }),
          limit,
        ),
      ),
    ),
    ...sizes(rows, 'record').map(calls => {
      const share = ratio(
        rows,
        'strowger',
        'strowger',
        { mode: 'record', calls, tick_us: BURSTS },
        relay(calls, BURSTS),
      )
      const added = share === null ? null : (share - 1) * 100
      return bar(`recording, ${calls} calls: added to a relay`, added, 15, '%')
    }),
    ...both.flatMap(tick => [
      absolute('loss', relay(MANY, tick), row => row.loss_pct, 0.01, '%'),
      absolute('latency p99', relay(MANY, tick), row => row.latency_us.p99, 2000, 'us'),
      absolute('CPU', relay(MANY, tick), row => row.core_pct, 45, '% of a core'),
    ]),
    ...both.map(tick => {
      const growth = ratio(rows, 'strowger', 'strowger', relay(MANY, tick), relay(200, tick))
      return bar(`relay, ${manner(tick)}: cost of a packet at ${MANY} calls to that at 200`, growth, 1)
    }),
    bar('relay: memory of a call, JavaScript included', memoryPerCall(rows), 24, 'KiB'),
  ]
}

/** Returns the resident memory per call, from the growth between the smallest and the largest number of calls. */
function memoryPerCall(rows: readonly Row[]): number | null {
  const counts = sizes(rows, 'relay')
  const few = Math.min(...counts)
  const many = Math.max(...counts)
  if (counts.length < 2) return null
  const resident = (calls: number) =>
    figure(rows, 'strowger', { mode: 'relay', calls, tick_us: BURSTS }, row => row.rss_kb)
  const low = resident(few)
  const high = resident(many)
  return low === null || high === null ? null : (high - low) / (many - few)
}

function sizes(rows: readonly Row[], mode: string): number[] {
  return [...new Set(rows.filter(row => row.mode === mode).map(row => row.calls))].sort((a, b) => a - b)
}

/** Returns the median; of an even count the lower of the two middle values; null of no values. */
export function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null
}
