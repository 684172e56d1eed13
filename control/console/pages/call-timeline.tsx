import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type Item, type Lane, offset, type Story, ticksOf } from '../lib/call-story.ts'
import { clockTime } from '../lib/format.ts'
import { saveAs } from '../lib/save-as.ts'
import { standaloneSvg } from '../lib/svg.ts'
import type { Wave } from '../lib/wav.ts'
import { Button, Card } from '../ui/basics.tsx'
import './call-timeline.css'

/** The audio of a call on its axis. */
interface Heard {
  readonly from_ms: number
  readonly wave: Wave
}

interface View {
  readonly from_ms: number
  readonly to_ms: number
}

const AXIS = 26
const NAME = 16
const BAR = 20
const LANE = NAME + BAR + 8
const WAVE = 76
const WAVE_LANE = WAVE + NAME + 8
const SHORTEST_VIEW_MS = 20
/** A shorter drag is a click. */
const LEAST_DRAG = 6
/** The width of a letter of a label, on average. */
const LETTER = 6.1
const EDGE = 8

interface TimelineProps {
  readonly story: Story
  readonly heard: readonly Heard[]
  readonly call_id: string
  readonly chosen: Item | null
  readonly onChoose: (item: Item | null) => void
  /** Where the audio that is played is; null while nothing plays. */
  readonly playing_ms: number | null
  readonly actions?: ComponentChildren
}

interface Zoom {
  readonly whole: View
  readonly view: View
  /** Shows a part, within the call and not shorter than can be told apart. */
  show(from_ms: number, to_ms: number): void
  /** Changes the length of the view around a time; its middle, when there is none. */
  by(factor: number, around?: number): void
  reset(): void
}

function useZoom({ begin_ms, end_ms }: Story): Zoom {
  const [zoom, setZoom] = useState<View | null>(null)
  const whole: View = { from_ms: begin_ms, to_ms: end_ms }
  const view = zoom ?? whole
  const longest = end_ms - begin_ms
  const show = (from_ms: number, to_ms: number) => {
    const length = Math.max(SHORTEST_VIEW_MS, Math.min(to_ms - from_ms, longest))
    const from = Math.max(begin_ms, Math.min(from_ms, end_ms - length))
    setZoom(length >= longest ? null : { from_ms: from, to_ms: from + length })
  }
  const by = (factor: number, around = (view.from_ms + view.to_ms) / 2) =>
    show(around - (around - view.from_ms) * factor, around + (view.to_ms - around) * factor)
  return { whole, view, show, by, reset: () => setZoom(null) }
}

interface Scale {
  readonly width: number
  xOf(at_ms: number): number
  timeOf(x: number): number
}

function useScale(box: { readonly current: HTMLElement | null }, view: View): Scale {
  const [width, setWidth] = useState(900)
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const watcher = new ResizeObserver(() => setWidth(Math.max(280, element.clientWidth)))
    watcher.observe(element)
    return () => watcher.disconnect()
  }, [])
  const span_ms = view.to_ms - view.from_ms
  const usable = width - 2 * EDGE
  return {
    width,
    xOf: at_ms => EDGE + ((at_ms - view.from_ms) / span_ms) * usable,
    timeOf: x => view.from_ms + ((x - EDGE) / usable) * span_ms,
  }
}

/** The pointer over the axis: where it is, and from where it is dragged. */
function usePointer(box: { readonly current: HTMLElement | null }, { timeOf }: Scale, zoom: Zoom) {
  const [pointer, setPointer] = useState<number | null>(null)
  const [drag, setDrag] = useState<number | null>(null)
  const xIn = (event: MouseEvent): number => event.clientX - (box.current?.getBoundingClientRect().left ?? 0)
  const onPointerUp = (event: PointerEvent) => {
    const x = xIn(event)
    if (drag !== null && Math.abs(x - drag) > LEAST_DRAG)
      zoom.show(timeOf(Math.min(drag, x)), timeOf(Math.max(drag, x)))
    setDrag(null)
  }
  // The wheel zooms with Ctrl alone, so that it still scrolls the page. A listener of Preact's could not stop that.
  const onWheel = useRef<(event: WheelEvent) => void>(() => undefined)
  onWheel.current = event => {
    if (!event.ctrlKey && !event.metaKey) return
    event.preventDefault()
    zoom.by(event.deltaY > 0 ? 1.25 : 0.8, timeOf(xIn(event)))
  }
  useEffect(() => {
    const element = box.current
    const listen = (event: WheelEvent) => onWheel.current(event)
    element?.addEventListener('wheel', listen, { passive: false })
    return () => element?.removeEventListener('wheel', listen)
  }, [])
  const handlers = {
    onPointerMove: (event: PointerEvent) => setPointer(xIn(event)),
    onPointerLeave: () => setPointer(null),
    onPointerDown: (event: PointerEvent) => event.button === 0 && setDrag(xIn(event)),
    onPointerUp,
    onDblClick: zoom.reset,
  }
  return { pointer, drag, handlers }
}

/** Keys go from one moment to the next, in the order of time, and change the view. */
function keysOf(order: readonly Item[], chosen: Item | null, onChoose: TimelineProps['onChoose'], zoom: Zoom) {
  const { from_ms, to_ms } = zoom.view
  const span_ms = to_ms - from_ms
  const step = (by: 1 | -1) => {
    const at = chosen === null ? -1 : order.indexOf(chosen)
    const next = order[at < 0 ? (by === 1 ? 0 : order.length - 1) : at + by]
    if (!next) return
    onChoose(next)
    if (next.from_ms < from_ms || next.from_ms > to_ms)
      zoom.show(next.from_ms - span_ms / 2, next.from_ms + span_ms / 2)
  }
  return (event: KeyboardEvent) => {
    const acts: Readonly<Record<string, () => void>> = {
      ArrowRight: () => (event.shiftKey ? zoom.show(from_ms + span_ms / 4, to_ms + span_ms / 4) : step(1)),
      ArrowLeft: () => (event.shiftKey ? zoom.show(from_ms - span_ms / 4, to_ms - span_ms / 4) : step(-1)),
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      '+': () => zoom.by(0.5, chosen?.from_ms),
      '-': () => zoom.by(2, chosen?.from_ms),
      '0': zoom.reset,
      Escape: () => onChoose(null),
    }
    const act = acts[event.key]
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    act()
  }
}

const clockOf = (at_ms: number): string => clockTime(new Date(at_ms).toISOString())

/**
 * Everything that happened in a call on one axis of time, zoomed as one. The arrow keys go from one thing to
 * the next, + and − zoom, Shift with an arrow moves, 0 shows the whole call; a drag zooms into what it spans.
 */
export function Timeline({ story, heard, call_id, chosen, onChoose, playing_ms, actions }: TimelineProps) {
  const svg = useRef<SVGSVGElement>(null)
  const box = useRef<HTMLDivElement>(null)
  const zoom = useZoom(story)
  const { view, whole } = zoom
  const scale = useScale(box, view)
  const { pointer, drag, handlers } = usePointer(box, scale, zoom)
  const order = useMemo(
    () => story.lanes.flatMap(({ items }) => items).toSorted((a, b) => a.from_ms - b.from_ms),
    [story],
  )
  const at = chosen === null ? -1 : order.indexOf(chosen)
  const save = () => svg.current && saveAs(standaloneSvg(svg.current), `${call_id}-axis.svg`)
  return (
    <Card
      title="The call on one axis"
      hint="Drag over a part to zoom into it. Arrow keys go from one thing to the next."
      actions={
        <>
          {actions}
          <Button small label="Zoom in" onClick={() => zoom.by(0.5, chosen?.from_ms)}>
            +
          </Button>
          <Button small label="Zoom out" onClick={() => zoom.by(2, chosen?.from_ms)}>
            −
          </Button>
          <Button small onClick={zoom.reset} disabled={view.from_ms === whole.from_ms && view.to_ms === whole.to_ms}>
            Whole call
          </Button>
          <Button small icon="download" label="SVG of the axis" onClick={save}>
            SVG
          </Button>
        </>
      }
    >
      <div
        class="axis"
        ref={box}
        role="listbox"
        tabIndex={0}
        aria-label="What happened in the call"
        aria-activedescendant={at < 0 ? undefined : `moment-${at}`}
        data-view={`${Math.round(view.from_ms - whole.from_ms)} ${Math.round(view.to_ms - whole.from_ms)}`}
        onKeyDown={keysOf(order, chosen, onChoose, zoom)}
        {...handlers}
      >
        <Drawing {...{ svg, story, heard, view, scale, order, chosen, onChoose, playing_ms, pointer, drag }} />
      </div>
      <p class="muted small num" data-cursor>
        {pointer === null
          ? `${clockOf(view.from_ms)} to ${clockOf(view.to_ms)}`
          : `${clockOf(scale.timeOf(pointer))} · +${offset(Math.round(scale.timeOf(pointer) - whole.from_ms))}`}
      </p>
    </Card>
  )
}

interface DrawingProps extends Pick<TimelineProps, 'story' | 'heard' | 'chosen' | 'onChoose' | 'playing_ms'> {
  readonly svg: { current: SVGSVGElement | null }
  readonly view: View
  readonly scale: Scale
  readonly order: readonly Item[]
  readonly pointer: number | null
  readonly drag: number | null
}

function Drawing({ svg, story, heard, view, scale, order, chosen, onChoose, playing_ms, pointer, drag }: DrawingProps) {
  const { width, xOf } = scale
  const waves = AXIS + story.lanes.length * LANE
  const height = waves + heard.length * WAVE_LANE + 6
  const upright = (x: number, kind: string) => <line class={kind} x1={x} x2={x} y1={AXIS - 6} y2={height} />
  return (
    // biome-ignore lint/a11y/useSemanticElements: SVG has no element for a group with a name.
    <svg ref={svg} width={width} height={height} role="group" aria-label="Moments in their order">
      <Ticks story={story} view={view} xOf={xOf} height={height} wanted={Math.max(2, Math.floor(width / 110))} />
      {story.lanes.map((lane, index) => (
        <LaneOf
          key={lane.id}
          lane={lane}
          y={AXIS + index * LANE}
          width={width}
          xOf={xOf}
          chosen={chosen}
          idOf={item => `moment-${order.indexOf(item)}`}
          onChoose={onChoose}
        />
      ))}
      {heard.map((one, index) => (
        <WaveOf key={one.from_ms} heard={one} y={waves + index * WAVE_LANE} view={view} width={width} xOf={xOf} />
      ))}
      {drag !== null && pointer !== null && (
        <rect class="brush" x={Math.min(drag, pointer)} width={Math.abs(pointer - drag)} y={0} height={height} />
      )}
      {playing_ms !== null && upright(xOf(playing_ms), 'playing')}
      {pointer !== null && upright(pointer, 'cursor')}
    </svg>
  )
}

function Ticks({
  story,
  view,
  xOf,
  height,
  wanted,
}: {
  story: Story
  view: View
  xOf: (at_ms: number) => number
  height: number
  wanted: number
}) {
  return (
    <g>
      {ticksOf(story.begin_ms, view.from_ms, view.to_ms, wanted).map(tick => {
        const x = xOf(story.begin_ms + tick)
        const anchor = x < 30 ? 'start' : x > xOf(view.to_ms) - 30 ? 'end' : 'middle'
        return (
          <g key={tick}>
            <line class="tick" x1={x} x2={x} y1={AXIS - 6} y2={height} />
            <text class="time" x={x} y={13} text-anchor={anchor}>
              {offset(tick)}
            </text>
          </g>
        )
      })}
    </g>
  )
}

interface LaneProps {
  readonly lane: Lane
  readonly y: number
  readonly width: number
  readonly xOf: (at_ms: number) => number
  readonly chosen: Item | null
  readonly idOf: (item: Item) => string
  readonly onChoose: (item: Item) => void
}

const LEAST_BAR = 4
/** A shorter beginning of a label says nothing. */
const LEAST_LETTERS = 7

function LaneOf({ lane, y, width, xOf, chosen, idOf, onChoose }: LaneProps) {
  const drawn = lane.items
    .map(item => ({ item, x: xOf(item.from_ms), end: xOf(item.to_ms) }))
    .filter(({ x, end }) => end >= -20 && x <= width + 20)
  return (
    <g>
      <text class="lane-name" x={EDGE} y={y + 11}>
        {lane.name}
      </text>
      <line class="lane" x1={0} x2={width} y1={y + LANE - 1} y2={y + LANE - 1} />
      {drawn.map(({ item, x, end }, index) => {
        const from = Math.max(x, 0)
        const bar = Math.max(LEAST_BAR, Math.min(end, width) - from)
        // A label has the room of its bar, or until the next thing.
        const room = item.to_ms > item.from_ms ? bar - 8 : (drawn[index + 1]?.x ?? width) - x - 18
        const letters = Math.floor(room / LETTER)
        const label =
          item.label.length <= letters
            ? item.label
            : letters >= LEAST_LETTERS
              ? `${item.label.slice(0, letters - 1)}…`
              : ''
        const long = item.to_ms > item.from_ms
        return (
          <g
            key={`${item.from_ms} ${index}`}
            id={idOf(item)}
            class={`moment ${item.tone} ${item === chosen ? 'chosen' : ''}`}
            role="option"
            aria-selected={item === chosen}
            onClick={() => onChoose(item)}
          >
            <title>{`${lane.name}: ${item.label}, ${clockOf(item.from_ms)}`}</title>
            {long ? (
              <rect x={from} y={y + NAME} width={bar} height={BAR} rx={3} />
            ) : (
              <circle cx={x} cy={y + NAME + BAR / 2} r={5} />
            )}
            {label !== '' && (
              <text x={long ? from + 4 : x + 9} y={y + NAME + BAR / 2 + 4}>
                {label}
              </text>
            )}
          </g>
        )
      })}
    </g>
  )
}

/** Both channels: the caller above, the called party below. */
function WaveOf({
  heard: { from_ms, wave },
  y,
  view,
  width,
  xOf,
}: {
  heard: Heard
  y: number
  view: View
  width: number
  xOf: (at_ms: number) => number
}) {
  const length_ms = wave.seconds * 1000
  const half = WAVE / wave.channels.length
  const paths = useMemo(
    () => wave.channels.map(values => outlineOf(values, { from_ms, length_ms }, view, width)),
    [wave, from_ms, length_ms, view.from_ms, view.to_ms, width],
  )
  return (
    <g class="waves">
      <text class="lane-name" x={EDGE} y={y + 11}>
        {paths.length === 2 ? 'Audio: the caller above, the called below' : 'Audio'}
      </text>
      {paths.map((columns, channel) => (
        <path
          key={channel}
          class={`wave-${channel + 1}`}
          d={columns
            .map(({ at_ms, peak }) => {
              const size = Math.max(0.5, (Math.sqrt(peak) * (half - 6)) / 2)
              const middle = y + NAME + half * channel + half / 2
              return `M${xOf(at_ms).toFixed(1)} ${(middle - size).toFixed(1)}V${(middle + size).toFixed(1)}`
            })
            .join('')}
        />
      ))}
    </g>
  )
}

/** The highest value below each column of pixels that the view shows. */
function outlineOf(
  values: Float32Array,
  { from_ms, length_ms }: { readonly from_ms: number; readonly length_ms: number },
  view: View,
  width: number,
): { at_ms: number; peak: number }[] {
  const begin = Math.max(view.from_ms, from_ms)
  const end = Math.min(view.to_ms, from_ms + length_ms)
  if (end <= begin) return []
  const columns = Math.max(1, Math.round(((end - begin) / (view.to_ms - view.from_ms)) * (width / 2)))
  const indexAt = (at_ms: number): number => ((at_ms - from_ms) / length_ms) * values.length
  return Array.from({ length: columns }, (_, column) => {
    const at_ms = begin + ((end - begin) * column) / columns
    const first = Math.floor(indexAt(at_ms))
    const last = Math.max(first + 1, Math.floor(indexAt(at_ms + (end - begin) / columns)))
    let peak = 0
    for (let index = first; index < last && index < values.length; index += 1) peak = Math.max(peak, values[index] ?? 0)
    return { at_ms, peak }
  })
}
