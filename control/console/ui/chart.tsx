import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { timeZone, when, zonedDate } from '../lib/format.ts'
import { inTurn } from '../lib/idle.ts'
import { theme } from '../lib/theme.ts'

export interface Series {
  readonly name: string
  readonly values: readonly (number | null)[]
  /** One of the colour tokens, such as --accent. */
  readonly color: string
  /** Fills the area below a line. */
  readonly fill?: boolean
}

interface ChartProps {
  readonly label: string
  /** Seconds since the epoch. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** Bars show counts, lines show measurements. */
  readonly bars?: boolean
  /** Draws each series on top of those after it. */
  readonly stacked?: boolean
  /** A ceiling, drawn as a line. */
  readonly ceiling?: number | null
  /** How a value reads under the cursor. */
  readonly show?: (value: number) => string
  readonly height?: number
  readonly min?: number
  readonly max?: number
  /** A part of the time was spanned; seconds since the epoch. */
  readonly onRange?: (from: number, to: number) => void
  /** A point was clicked; its place in `times`. */
  readonly onPick?: (index: number) => void
}

/**
 * Labels of the time axis by the distance of its ticks in seconds: the label, then what is added where the year, month,
 * day, hour, minute or second changes; 1 appends it.
 */
const TIME_AXIS: uPlot.Axis.Values = [
  [365 * 86_400, '{YYYY}', null, null, null, null, null, null, 1],
  [28 * 86_400, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86_400, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM}', null, '\n{D} {MMM}', null, null, null, 1],
]
/** The cursor of all charts of a page stands at the same time. */
const TOGETHER = 'charts'
const LEAST_SPAN_PX = 8

type Rows = (number | null)[][]

/** The values as they are drawn: of a stack, each series with all those after it, and last the ceiling. */
function rowsOf(times: readonly number[], series: readonly Series[], stacked: boolean, ceiling: number | null): Rows {
  const drawn = series.map(({ values }) => [...values])
  if (stacked)
    for (let index = drawn.length - 2; index >= 0; index -= 1)
      drawn[index] = (drawn[index] ?? []).map((value, at) => (value ?? 0) + (drawn[index + 1]?.[at] ?? 0))
  return [[...times], ...drawn, ...(ceiling === null ? [] : [times.map(() => ceiling)])]
}

/** A ceiling far above all values would press them to the ground: then only the legend tells it. */
const ceilingInView = ({ series, ceiling = null }: ChartProps): number | null =>
  ceiling !== null && series.some(({ values }) => values.some(value => (value ?? 0) >= ceiling / 5)) ? ceiling : null

/**
 * Series over time, with a description in words for screen readers. The legend has the values under the cursor. A drag
 * spans a range, a click picks a point.
 */
export function Chart(props: ChartProps) {
  const { label, series, height = 220, onPick } = props
  const box = useRef<HTMLDivElement>(null)
  const { at, plot } = usePlot(box, { ...props, ceiling: ceilingInView(props) })
  const pick = () => {
    // The chart knows the place before the next rendering. It keeps the click that ends a drag for itself.
    const index = plot.current?.cursor.idx ?? null
    if (index !== null) onPick?.(index)
  }
  return (
    <figure class="stack">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the list of calls has the same filters for the keyboard. */}
      <div
        class={`chart ${onPick ? 'picks' : ''}`}
        style={{ minHeight: `${height}px` }}
        ref={box}
        role="img"
        aria-label={`${label}: ${inWords(series)}`}
        onClick={onPick && pick}
      />
      <Legend {...props} at={at} />
    </figure>
  )
}

/** Draws a chart into the box. Returns the chart and the place of its cursor. */
function usePlot(box: { readonly current: HTMLElement | null }, props: ChartProps) {
  const { times, series, bars = false, stacked = false, ceiling = null, height = 220, min, max } = props
  const plot = useRef<uPlot | null>(null)
  const [at, setAt] = useState<number | null>(null)
  const colours = theme.value
  const zone = timeZone.value
  const rows = useMemo(() => rowsOf(times, series, stacked, ceiling), [times, series, stacked, ceiling])
  const latest = useRef({ rows, props })
  latest.current = { rows, props }
  const shape = JSON.stringify([series.map(({ name, color, fill }) => [name, color, fill]), ceiling === null, bars])

  useEffect(() => {
    let gone = false
    const element = box.current
    if (!element) return
    const watcher = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }))
    void Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css'), inTurn()]).then(([{ default: Plot }]) => {
      if (gone) return
      const options = optionsOf(Plot, latest.current.props, {
        moved: setAt,
        spanned: (from, to) => latest.current.props.onRange?.(from, to),
      })
      plot.current = new Plot(
        { ...options, width: element.clientWidth, height },
        latest.current.rows as uPlot.AlignedData,
        element,
      )
      element.dataset['theme'] = colours
      watcher.observe(element)
    })
    return () => {
      gone = true
      watcher.disconnect()
      plot.current?.destroy()
      plot.current = null
      setAt(null)
    }
  }, [shape, height, colours, zone, min, max])
  // New values of the same series are drawn without a new chart.
  useEffect(() => plot.current?.setData(rows as uPlot.AlignedData), [rows])
  return { at, plot }
}

function Legend({ times, series, ceiling = null, show = round, at }: ChartProps & { at: number | null }) {
  const time = at === null ? undefined : times[at]
  return (
    <figcaption class="chart-legend">
      {series.map(({ name, color, values }) => {
        const value = at === null ? null : (values[at] ?? null)
        return (
          <span key={name}>
            <i style={{ background: `var(${color})` }} />
            {name}
            {value !== null && <b class="num"> {show(value)}</b>}
          </span>
        )
      })}
      {ceiling !== null && (
        <span>
          <i style={{ background: 'var(--bad)' }} />
          Ceiling <b class="num">{show(ceiling)}</b>
        </span>
      )}
      {time !== undefined && <span class="num">{when(new Date(time * 1000).toISOString())}</span>}
    </figcaption>
  )
}

interface Listener {
  readonly moved: (index: number | null) => void
  readonly spanned: (from: number, to: number) => void
}

function optionsOf(Plot: typeof uPlot, props: ChartProps, { moved, spanned }: Listener) {
  const { series, times, bars = false, ceiling = null, min, max, onRange } = props
  const style = getComputedStyle(document.documentElement)
  const color = (name: string): string => style.getPropertyValue(name).trim()
  const axis = {
    stroke: color('--muted'),
    grid: { stroke: color('--border'), width: 1 },
    ticks: { stroke: color('--border'), width: 1 },
    font: '12px system-ui, sans-serif',
  }
  const paths = bars ? { paths: Plot.paths.bars?.({ size: [0.8, 60] }) } : {}
  const limit = { label: 'Ceiling', stroke: color('--bad'), width: 1.5, dash: [6, 4], points: { show: false } }
  return {
    legend: { show: false },
    cursor: {
      sync: { key: TOGETHER, setSeries: false },
      drag: { x: onRange !== undefined, y: false, setScale: false },
    },
    hooks: {
      setCursor: [({ cursor: { idx } }: uPlot) => moved(idx ?? null)],
      setSelect: [
        (self: uPlot) => {
          const { left, width } = self.select
          if (width < LEAST_SPAN_PX) return
          spanned(self.posToVal(left, 'x'), self.posToVal(left + width, 'x'))
          self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
    },
    scales: {
      // The first and the last bar are as wide as the others.
      x: {
        range: (_self: uPlot, low: number, high: number): [number, number] =>
          bars ? padded(low, high, times.length) : [low, high],
      },
      y: {
        range: (_self: uPlot, low: number, high: number): [number, number] => [
          min ?? Math.min(0, low),
          max ?? (high <= 0 ? 1 : high * 1.1),
        ],
      },
    },
    tzDate: (at: number) => zonedDate(at * 1000),
    axes: [
      { ...axis, values: TIME_AXIS },
      { ...axis, size: 52 },
    ],
    series: [
      {},
      ...series.map(({ name, color: token, fill }) => ({
        label: name,
        stroke: color(token),
        width: bars ? 0 : 1.8,
        points: { show: !bars && times.length < 40, size: 5 },
        ...(bars ? { fill: color(token) } : fill ? { fill: `${color(token)}22` } : {}),
        ...paths,
      })),
      ...(ceiling === null ? [] : [limit]),
    ],
  }
}

/** A span with half a step on both sides. */
const padded = (low: number, high: number, steps: number): [number, number] => {
  const half = steps > 1 ? (high - low) / (steps - 1) / 2 : 1
  return [low - half, high + half]
}

const inWords = (series: readonly Series[]): string =>
  series
    .map(({ name, values }) => {
      const known = values.filter(value => value !== null)
      if (known.length === 0) return `${name}: nothing measured`
      return `${name} from ${round(Math.min(...known))} to ${round(Math.max(...known))}, last ${round(known.at(-1) ?? 0)}`
    })
    .join('; ')

const round = (value: number): string => String(Math.round(value * 100) / 100)
