import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { timeZone } from '../lib/format.ts'
import { theme } from '../lib/theme.ts'

interface Series {
  readonly name: string
  readonly values: readonly (number | null)[]
  /** One of the colour tokens, such as --accent. */
  readonly color: string
  /** Bars show counts, lines show measurements. */
  readonly fill?: boolean
}

interface ChartProps {
  readonly label: string
  /** Seconds since the epoch. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly height?: number
  readonly min?: number
  readonly max?: number
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

/** A series over time, with a description in words for screen readers. */
export function Chart({ label, times, series, height = 220, min, max }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const dark = theme.value
  const zone = timeZone.value
  useEffect(() => {
    let plot: uPlot | null = null
    let gone = false
    const element = box.current
    if (!element) return
    const watcher = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }))
    const style = getComputedStyle(document.documentElement)
    const color = (name: string): string => style.getPropertyValue(name).trim()
    void Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')]).then(([{ default: Plot }]) => {
      if (gone) return
      const axis = {
        stroke: color('--muted'),
        grid: { stroke: color('--border'), width: 1 },
        ticks: { stroke: color('--border'), width: 1 },
        font: '12px system-ui, sans-serif',
      }
      plot = new Plot(
        {
          width: element.clientWidth,
          height,
          legend: { show: false },
          cursor: { drag: { x: false, y: false } },
          scales: {
            y: { range: (_self, low, high) => [min ?? Math.min(0, low), max ?? (high <= 0 ? 1 : high * 1.1)] },
          },
          tzDate: at => (zone === undefined ? new Date(at * 1000) : Plot.tzDate(new Date(at * 1000), zone)),
          axes: [
            { ...axis, values: TIME_AXIS },
            { ...axis, size: 52 },
          ],
          series: [
            {},
            ...series.map(({ name, color: token, fill }) => ({
              label: name,
              stroke: color(token),
              width: 1.8,
              points: { show: times.length < 40, size: 5 },
              ...(fill ? { fill: `${color(token)}22` } : {}),
            })),
          ],
        },
        [[...times], ...series.map(({ values }) => [...values])],
        element,
      )
      watcher.observe(element)
    })
    return () => {
      gone = true
      watcher.disconnect()
      plot?.destroy()
    }
  }, [times, series, height, dark, zone, min, max])
  return (
    <figure class="stack">
      <div class="chart" ref={box} role="img" aria-label={`${label}: ${inWords(series)}`} />
      <figcaption class="chart-legend">
        {series.map(({ name, color }) => (
          <span key={name}>
            <i style={{ background: `var(${color})` }} />
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  )
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
