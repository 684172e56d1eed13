import { useMemo } from 'preact/hooks'
import { counted } from '../../../../core/domain/text/counted.ts'
import type { OperatorCarrierDay, OperatorCarrierMetrics, OperatorCarrierTotal } from '../../lib/api-types.ts'
import { useData } from '../../lib/data.ts'
import { count, duration, money, percent } from '../../lib/format.ts'
import { query, setQuery } from '../../lib/router.ts'
import { Card, Loaded, Stat, Stats } from '../../ui/basics.tsx'
import { Chart, type Series } from '../../ui/chart.tsx'
import { SelectField } from '../../ui/form.tsx'
import { lastDays } from './days.ts'
import '../board.css'

const WINDOWS = ['7', '30', '90'].map(value => ({ value, text: `Last ${value} days` }))
const DAY_MS = 86_400_000
const CHART_PX = 150
const POLL_MS = 60_000

export const metricsPath = (carrier_id: string, days: number): string =>
  `/operator/v1/carriers/${carrier_id}/metrics?${lastDays(days)}`

/** What is left of the charge, as an amount and as a part of it. */
export const marginText = ({ margin_minor, charge_minor }: OperatorCarrierTotal): string =>
  charge_minor === null || charge_minor === 0
    ? money(margin_minor)
    : `${money(margin_minor)} (${percent((margin_minor ?? 0) / charge_minor, 0)})`

export const asrText = ({ asr_pct }: OperatorCarrierTotal): string => (asr_pct === null ? '–' : `${asr_pct} %`)
export const pddText = ({ pdd_ms }: OperatorCarrierTotal): string => (pdd_ms === null ? '–' : ms(pdd_ms))

const whole = (value: number): string => count(Math.round(value))
const ms = (value: number): string => `${whole(value)} ms`

/** The calls that were sent to one carrier: how they went, and what they brought, by day (UTC). */
export function CarrierBoard({ carrier_id }: { carrier_id: string }) {
  const days = query.value.get('days') ?? '30'
  const of = useData<OperatorCarrierMetrics>(metricsPath(carrier_id, Number(days)), { poll_ms: POLL_MS })
  return (
    <Loaded of={of}>
      {metrics => (
        <>
          <Totals total={metrics.total} />
          <div class="filters">
            <SelectField
              label="Charts of the"
              value={days}
              onInput={value => setQuery({ days: value })}
              options={WINDOWS}
            />
          </div>
          <Charts metrics={metrics} />
        </>
      )}
    </Loaded>
  )
}

const Totals = ({ total }: { total: OperatorCarrierTotal }) => (
  <Stats>
    <Stat
      name="Answered (ASR)"
      value={asrText(total)}
      hint={`${count(total.answered)} of ${counted(total.attempts, 'attempt')}`}
    />
    <Stat name="Mean duration (ACD)" value={duration(total.acd_seconds)} />
    <Stat name="Post-dial delay (PDD)" value={pddText(total)} hint="mean of the answered calls" />
    {total.cost_minor !== null && (
      <>
        <Stat name="Charged" value={money(total.charge_minor)} />
        <Stat name="Cost" value={money(total.cost_minor)} />
        <Stat name="Margin" value={marginText(total)} />
      </>
    )}
  </Stats>
)

/** Every day of the window until today, with null for those without an attempt. */
function daysOf({ from, to, days }: OperatorCarrierMetrics): { at: number; day: OperatorCarrierDay | null }[] {
  const found = new Map(days.map(day => [day.day, day]))
  const end_ms = Math.min(Date.parse(to), Date.now())
  const shown = []
  for (let at_ms = Date.parse(from); at_ms <= end_ms; at_ms += DAY_MS)
    shown.push({ at: at_ms / 1000, day: found.get(new Date(at_ms).toISOString().slice(0, 10)) ?? null })
  return shown
}

function Charts({ metrics }: { metrics: OperatorCarrierMetrics }) {
  const { times, panels } = useMemo(() => {
    const days = daysOf(metrics)
    const series = (name: string, color: string, read: (day: OperatorCarrierDay) => number | null): Series => ({
      name,
      color,
      values: days.map(({ day }) => day && read(day)),
    })
    const asr = series('ASR', '--good', day => day.asr_pct)
    return {
      times: days.map(({ at }) => at),
      panels: [
        {
          label: 'Attempts by day',
          bars: true,
          series: [series('Tried', '--accent', day => day.attempts), series('Answered', '--good', day => day.answered)],
          show: whole,
        },
        { label: 'Answered (ASR)', series: [asr], show: (value: number) => `${value} %`, min: 0, max: 100 },
        { label: 'Mean duration (ACD)', series: [series('ACD', '--lane-2', day => day.acd_seconds)], show: duration },
        { label: 'Post-dial delay (PDD)', series: [series('PDD', '--note', day => day.pdd_ms)], show: ms },
        {
          label: 'Cost and margin',
          bars: true,
          series: [
            series('Cost', '--warn', day => day.cost_minor),
            series('Margin', '--good', day => day.margin_minor),
          ],
          show: (value: number) => money(value),
        },
      ].slice(0, metrics.total.cost_minor === null ? -1 : undefined),
    }
  }, [metrics])
  return (
    <div class="board">
      {panels.map(panel => (
        <Card key={panel.label} title={panel.label}>
          <Chart {...panel} times={times} height={CHART_PX} />
        </Card>
      ))}
    </div>
  )
}
