import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import type { CallSeries, Usage } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { FIRST_WINDOW } from '../lib/first-reads.ts'
import { count, duration, localOf, money, percent, words } from '../lib/format.ts'
import { go, hrefOf, query, setQuery } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { Bars } from '../ui/bars.tsx'
import { Button, Card, Empty, Loaded, NoRows, Stat, Stats } from '../ui/basics.tsx'
import { Chart, type Series } from '../ui/chart.tsx'
import { SelectField } from '../ui/form.tsx'
import { Later } from '../ui/later.tsx'
import './board.css'

const WINDOWS = [
  { value: '1h', text: 'Last hour' },
  { value: '24h', text: 'Last 24 hours' },
  { value: '7d', text: 'Last 7 days' },
  { value: '30d', text: 'Last 30 days' },
]
const POLL_MS = 10_000
const CHART_PX = 150

/** Whose calls a board shows: of the whole project, or of the part that the parameter names. */
interface BoardOf {
  readonly trunk_id?: string
  readonly subaccount_id?: string
  readonly application_id?: string
}

interface BoardProps {
  readonly of: BoardOf
  /** Calls at once by a fresher source. */
  readonly live_calls?: number
  /** A figure beside those of the board. */
  readonly more?: ComponentChildren
}

const windowOf = (): string => query.value.get('window') ?? FIRST_WINDOW

/** What a board reads first. */
export const boardPath = (of: BoardOf): string =>
  `/v1/metrics/series?${new URLSearchParams({ window: windowOf(), ...of })}`

/** The calls of a project or a part of it, over time: all charts have one cursor, one range, and lead to the calls. */
export function Board({ of, live_calls, more }: BoardProps) {
  const window = windowOf()
  const path = boardPath(of)
  const series = useData<CallSeries>(path, { poll_ms: POLL_MS })
  // The figures change with each call, the charts only with their series.
  const charts = useMemo(() => series.data && <Charts data={series.data} of={of} />, [series.data, path])
  return (
    <Loaded of={series}>
      {data => (
        <>
          <Now data={data} live_calls={live_calls ?? data.now.live_calls} more={more} />
          <div class="filters">
            <SelectField
              label="Charts of the"
              value={window}
              onInput={value => setQuery({ window: value, from: '', to: '' })}
              options={WINDOWS}
            />
            <Range />
          </div>
          <Later>{charts}</Later>
        </>
      )}
    </Loaded>
  )
}

const per = ({ step_seconds }: CallSeries): string => (step_seconds === 60 ? 'minute' : 'hour')

const ofCeiling = (ceiling: number | null) => (ceiling === null ? undefined : `of ${count(ceiling)} at most`)

function Now({ data, live_calls, more }: { data: CallSeries; live_calls: number; more: ComponentChildren }) {
  const { now, ceilings, total, step_seconds, series } = data
  const last = series.at(-1)
  const lasted_s = last ? Math.max(1, (Date.now() - Date.parse(last.at)) / 1000) : step_seconds
  return (
    <Stats>
      <Stat
        name="Calls now"
        value={<span data-live-calls>{count(live_calls)}</span>}
        hint={ofCeiling(ceilings.concurrency)}
      />
      <Stat
        name="Calls per second"
        value={now.calls_last_second ?? ((last?.attempts ?? 0) / lasted_s).toFixed(2)}
        hint={
          ceilings.cps === null ? `mean of this ${per(data)}` : `in the last second, of ${count(ceilings.cps)} at most`
        }
      />
      <Stat
        name="Answered (ASR)"
        value={total.attempts === 0 ? '–' : percent(total.answered / total.attempts)}
        hint={`${count(total.answered)} of ${counted(total.attempts, 'call')}`}
      />
      <Stat name="Mean duration (ACD)" value={duration(total.acd_seconds)} />
      <Stat name="Post-dial delay, p95" value={total.pdd_p95_ms === null ? '–' : `${count(total.pdd_p95_ms)} ms`} />
      <Stat name="MOS" value={total.mos === null ? '–' : total.mos.toFixed(2)} />
      {now.spend_today_minor !== null && (
        <Stat
          name="Spend today"
          value={money(now.spend_today_minor)}
          hint={
            ceilings.daily_spend_cap_minor === null ? 'no cap' : `of ${money(ceilings.daily_spend_cap_minor)} at most`
          }
        />
      )}
      {more}
    </Stats>
  )
}

/** The part of the window that was spanned, in seconds since the epoch; null shows all of it. */
function rangeOf(): { readonly from: number; readonly to: number } | null {
  const [from, to] = [Number(query.value.get('from')), Number(query.value.get('to'))]
  return from > 0 && to > from ? { from, to } : null
}

function Range() {
  if (rangeOf() === null)
    return <p class="muted small">Drag over a chart to look closer; click a point for its calls.</p>
  return (
    <Button kind="quiet" onClick={() => setQuery({ from: '', to: '' })}>
      Whole window
    </Button>
  )
}

type Step = CallSeries['series'][number]

const COLORS = ['--lane-1', '--lane-2', '--note', '--warn', '--good', '--idle'] as const
const MOST_REASONS = COLORS.length - 1
const OTHER = 'other'

/** Series of the failures by reason: the most frequent ones, and all others together. */
function failuresOf(data: CallSeries, steps: readonly Step[]): Series[] {
  const named = data.failures.slice(0, MOST_REASONS).map(({ reason }) => reason)
  const others = data.failures.length > MOST_REASONS ? [OTHER] : []
  const callsFor = (step: Step, reason: string): number =>
    step.failures
      .filter(failure => (reason === OTHER ? !named.includes(failure.reason) : failure.reason === reason))
      .reduce((sum, { calls }) => sum + calls, 0)
  return [...named, ...others].map((reason, index) => ({
    name: words(reason),
    values: steps.map(step => callsFor(step, reason)),
    color: COLORS[index] ?? '--idle',
  }))
}

const whole = (value: number): string => count(Math.round(value))
const ms = (value: number): string => `${whole(value)} ms`

interface Panel {
  readonly title: string
  readonly hint?: string
  readonly series: readonly Series[]
  readonly bars?: boolean
  readonly stacked?: boolean
  readonly ceiling?: number | null
  readonly show: (value: number) => string
  readonly min?: number
  readonly max?: number
  /** Narrows the calls behind a point. */
  readonly calls?: Readonly<Record<string, string>>
}

function panelsOf(data: CallSeries, steps: readonly Step[]): Panel[] {
  const line = (name: string, color: string, read: (step: Step) => number | null, fill = false): Series => ({
    name,
    color,
    fill,
    values: steps.map(read),
  })
  return [
    {
      title: 'Calls at once',
      series: [line('Most calls at once', '--lane-1', step => step.concurrent_calls_max, true)],
      ceiling: data.ceilings.concurrency,
      show: whole,
    },
    {
      title: 'Calls',
      hint: `By the ${per(data)} in which they ended`,
      series: [line('Tried', '--accent', step => step.attempts), line('Answered', '--good', step => step.answered)],
      bars: true,
      show: value => `${whole(value)} (${(value / data.step_seconds).toFixed(2)}/s)`,
    },
    {
      title: 'Failures by reason',
      series: failuresOf(data, steps),
      bars: true,
      stacked: true,
      show: whole,
      calls: data.failures.length === 1 ? { reason: data.failures[0]?.reason ?? '' } : {},
    },
    {
      title: 'Answered (ASR)',
      series: [
        line('ASR', '--good', ({ answered, attempts }) => (attempts === 0 ? null : (100 * answered) / attempts)),
      ],
      show: value => `${value.toFixed(1)} %`,
      min: 0,
      max: 100,
    },
    {
      title: 'Mean duration (ACD)',
      series: [line('ACD', '--lane-2', step => step.acd_seconds)],
      show: duration,
    },
    {
      title: 'Post-dial delay, p95',
      series: [line('p95', '--note', step => step.pdd_p95_ms)],
      show: ms,
    },
    {
      title: 'MOS',
      series: [line('MOS', '--accent', step => step.mos)],
      show: value => value.toFixed(2),
      min: 1,
      max: 4.6,
    },
  ]
}

function Charts({ data, of }: { data: CallSeries; of: BoardOf }) {
  const range = rangeOf()
  const { times, panels } = useMemo(() => {
    const all = data.series.map(step => ({ step, at: Date.parse(step.at) / 1000 }))
    const shown = range ? all.filter(({ at }) => at + data.step_seconds > range.from && at <= range.to) : all
    const steps = shown.map(({ step }) => step)
    return { times: shown.map(({ at }) => at), panels: panelsOf(data, steps) }
  }, [data, range?.from, range?.to])
  const open = (index: number, more: Readonly<Record<string, string>> = {}) => {
    const at = times[index]
    if (at === undefined || of.subaccount_id !== undefined) return
    const ended = { ended_since: localOf(at * 1000), ended_before: localOf((at + data.step_seconds) * 1000) }
    go(`/calls?${new URLSearchParams({ ...ended, ...of, ...more })}`)
  }
  const span = (from: number, to: number) => setQuery({ from: String(Math.floor(from)), to: String(Math.ceil(to)) })
  return (
    <div class="board">
      {panels.map(({ title, hint, calls, ...panel }) => (
        <Card key={title} title={title} hint={hint}>
          {panel.series.length === 0 ? (
            <Empty title="No failed call" />
          ) : (
            <Chart
              {...panel}
              label={title}
              times={times}
              height={CHART_PX}
              onRange={span}
              onPick={index => open(index, calls)}
            />
          )}
        </Card>
      ))}
      {may('billing:read') && of.application_id === undefined && of.subaccount_id === undefined && (
        <Destinations of={of} />
      )}
    </div>
  )
}

const MOST_DESTINATIONS = 8

function Destinations({ of }: { of: BoardOf }) {
  const asked = new URLSearchParams({ group_by: 'destination', ...of })
  const usage = useData<Usage>(`/v1/billing/usage?${asked}`, { poll_ms: 60_000 })
  const rows = usage.data?.data ?? []
  return (
    <Card
      title="Top destinations"
      hint="By what they cost in the last 30 days"
      actions={<a href={hrefOf('/billing?by=destination')}>All</a>}
    >
      {rows.length === 0 ? (
        <NoRows of={usage}>
          <Empty title="No call with a price" />
        </NoRows>
      ) : (
        <Bars
          label="Top destinations"
          rows={rows.slice(0, MOST_DESTINATIONS).map(row => ({
            name: row.destination ?? 'Without a rate',
            value: row.settled_spend_minor,
            text: `${money(row.settled_spend_minor)} · ${counted(row.calls, 'call')}`,
          }))}
        />
      )}
    </Card>
  )
}
