import { useMemo } from 'preact/hooks'
import { useData } from '../lib/data.ts'
import { count } from '../lib/format.ts'
import { Card, Empty, Facts, Loaded, Stat, Stats } from '../ui/basics.tsx'
import { Chart } from '../ui/chart.tsx'

interface LegStats {
  readonly codec?: string | null
  readonly secured?: boolean
  readonly packets_received?: number
  readonly packets_sent?: number
  readonly packets_lost?: number
  readonly jitter_ms?: number
  readonly jitter_max_ms?: number
  readonly rtt_ms?: number | null
  readonly mos?: number | null
  readonly remote_address?: string | null
  readonly remote_port?: number | null
  readonly signalled_address?: string | null
  readonly signalled_port?: number | null
}

interface Leg {
  readonly leg_id: string
  readonly samples: readonly { readonly at: string; readonly stats: LegStats }[]
  readonly samples_kept: number
}

export function CallMedia({ call_id, live }: { call_id: string; live: boolean }) {
  const of = useData<{ legs: readonly Leg[]; unavailable_reason: string | null }>(
    `/v1/calls/${call_id}/media`,
    live ? { poll_ms: 5000 } : {},
  )
  return (
    <Loaded of={of}>
      {({ legs, unavailable_reason }) =>
        legs.length === 0 ? (
          <Card flush>
            <Empty title="No media was measured">
              {unavailable_reason ?? 'The first figures come ten seconds into a call.'}
            </Empty>
          </Card>
        ) : (
          legs.map((leg, index) => (
            <LegCard
              key={leg.leg_id}
              leg={leg}
              name={index === 0 ? 'Leg of the caller' : legs.length === 2 ? 'Leg of the called' : `Leg ${index + 1}`}
            />
          ))
        )
      }
    </Loaded>
  )
}

function LegCard({ leg, name }: { leg: Leg; name: string }) {
  const last: LegStats = leg.samples.at(-1)?.stats ?? {}
  const lost = last.packets_lost ?? 0
  const expected = (last.packets_received ?? 0) + lost
  const { times, quality, delay } = useMemo(() => {
    const pick = (read: (stats: LegStats) => number | null | undefined) =>
      leg.samples.map(sample => read(sample.stats) ?? null)
    return {
      times: leg.samples.map(sample => Date.parse(sample.at) / 1000),
      quality: [{ name: 'MOS', values: pick(stats => stats.mos), color: '--accent' }],
      delay: [
        { name: 'Jitter, ms', values: pick(stats => stats.jitter_ms), color: '--lane-1' },
        { name: 'Round trip, ms', values: pick(stats => stats.rtt_ms), color: '--lane-2' },
      ],
    }
  }, [leg.samples])
  const address = (host: string | null | undefined, port: number | null | undefined) => (host ? `${host}:${port}` : '–')
  return (
    <Card title={name} hint={`${last.codec ?? 'no codec'}${last.secured ? ', encrypted' : ', not encrypted'}`}>
      <Stats>
        <Stat name="MOS" value={last.mos?.toFixed(2) ?? '–'} />
        <Stat
          name="Jitter"
          value={`${last.jitter_ms?.toFixed(1) ?? '–'} ms`}
          hint={`at most ${last.jitter_max_ms?.toFixed(1) ?? '–'} ms`}
        />
        <Stat
          name="Lost"
          value={expected === 0 ? '–' : `${((lost / expected) * 100).toFixed(2)} %`}
          hint={`${count(lost)} of ${count(expected)} packets`}
        />
        <Stat name="Round trip" value={last.rtt_ms == null ? '–' : `${last.rtt_ms.toFixed(1)} ms`} />
      </Stats>
      {leg.samples.length > 1 && (
        <div class="columns">
          <Chart
            label={`MOS of the ${name.toLowerCase()}`}
            times={times}
            series={quality}
            min={1}
            max={4.6}
            height={180}
          />
          <Chart
            label={`Jitter and round trip of the ${name.toLowerCase()}`}
            times={times}
            series={delay}
            height={180}
          />
        </div>
      )}
      <Facts
        rows={[
          ['Received', `${count(last.packets_received ?? 0)} packets`],
          ['Sent', `${count(last.packets_sent ?? 0)} packets`],
          ['Signalled address', address(last.signalled_address, last.signalled_port)],
          ['Packets come from', address(last.remote_address, last.remote_port)],
        ]}
      />
    </Card>
  )
}
