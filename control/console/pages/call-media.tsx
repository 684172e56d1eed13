import { useMemo } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import type { CallMedia as CallMediaOfApi, LegFigures as Figures, LegQuality } from '../lib/api-types.ts'
import type { Sample as StorySample } from '../lib/call-story.ts'
import { useData } from '../lib/data.ts'
import { count } from '../lib/format.ts'
import { Card, Empty, Facts, Loaded, Stat, Stats } from '../ui/basics.tsx'
import { Chart } from '../ui/chart.tsx'

type Sample = StorySample & {
  readonly secured?: boolean
  readonly packets_received?: number
  readonly packets_sent?: number
}

/** The samples of the API have figures by name; these are the ones that are drawn. */
type Leg = Omit<LegQuality, 'samples'> & {
  readonly samples: readonly { readonly at: string; readonly stats: Sample }[]
}

export type CallMediaAnswer = Omit<CallMediaOfApi, 'legs'> & { readonly legs: readonly Leg[] }

const NAMES = {
  caller: 'Leg of the caller',
  called: 'Leg of the called',
  application: 'Leg of the application',
} as const

export function CallMedia({ call_id, live }: { call_id: string; live: boolean }) {
  const of = useData<CallMediaAnswer>(`/v1/calls/${call_id}/media`, live ? { poll_ms: 5000 } : {})
  return (
    <Loaded of={of}>
      {({ legs, unavailable_reason }) =>
        legs.length === 0 ? (
          <Card flush>
            <Empty title="No media was measured">
              {unavailable_reason ?? 'The first figures come ten seconds into a call, the final ones when it ends.'}
            </Empty>
          </Card>
        ) : (
          legs.map(leg => <LegCard key={leg.leg_id} leg={leg} />)
        )
      }
    </Loaded>
  )
}

/** What the charts show: the samples of every ten seconds. */
const seriesOf = (samples: Leg['samples']) => {
  const pick = (read: (stats: Sample) => number | null | undefined) => samples.map(({ stats }) => read(stats) ?? null)
  return {
    times: samples.map(({ at }) => Date.parse(at) / 1000),
    quality: [{ name: 'MOS', values: pick(({ mos }) => mos), color: '--accent' }],
    delay: [
      { name: 'Jitter, ms', values: pick(({ jitter_ms }) => jitter_ms), color: '--lane-1' },
      { name: 'Round trip, ms', values: pick(({ rtt_ms }) => rtt_ms), color: '--lane-2' },
    ],
  }
}

/** The side of a leg that still runs is told by its id. */
export const nameOfLeg = ({ leg_id, figures }: Leg): string =>
  NAMES[figures?.side ?? (leg_id.endsWith('-a') ? 'caller' : /-(near|far)$/.test(leg_id) ? 'application' : 'called')]

function LegCard({ leg }: { leg: Leg }) {
  const { figures } = leg
  const now: Sample | Figures = figures ?? leg.samples.at(-1)?.stats ?? {}
  const lost = now.packets_lost ?? 0
  const expected = (now.packets_received ?? 0) + lost
  const name = nameOfLeg(leg)
  const { times, quality, delay } = useMemo(() => seriesOf(leg.samples), [leg.samples])
  const hint = `${now.codec ?? 'no codec'}${now.secured ? ', encrypted' : ', not encrypted'}${figures ? '' : ', so far'}`
  return (
    <Card title={name} hint={hint}>
      <Stats>
        <Stat name="MOS" value={now.mos?.toFixed(2) ?? '–'} />
        <Stat
          name="Jitter"
          value={`${now.jitter_ms?.toFixed(1) ?? '–'} ms`}
          hint={figures ? `at most ${figures.jitter_max_ms?.toFixed(1) ?? '–'} ms` : 'now'}
        />
        <Stat
          name="Lost"
          value={expected === 0 ? '–' : `${((lost / expected) * 100).toFixed(2)} %`}
          hint={`${count(lost)} of ${counted(expected, 'packet')}`}
        />
        <Stat name="Round trip" value={now.rtt_ms == null ? '–' : `${now.rtt_ms.toFixed(1)} ms`} />
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
      <Facts rows={figures ? finalRows(figures) : runningRows(now)} />
    </Card>
  )
}

const packets = (of: number, octets?: number): string =>
  `${counted(of, 'packet')}${octets === undefined ? '' : `, ${counted(octets, 'octet')}`}`
const address = (host: string | null, port: number | null): string => (host ? `${host}:${port}` : '–')

const runningRows = (now: Sample): [string, string][] => [
  ['Received so far', packets(now.packets_received ?? 0)],
  ['Sent so far', packets(now.packets_sent ?? 0)],
]

const finalRows = (of: Figures): [string, string][] => [
  ['Received', packets(of.packets_received, of.octets_received)],
  ['Sent', packets(of.packets_sent, of.octets_sent)],
  ['Too late to be heard', `${counted(of.packets_late, 'packet')} late, ${count(of.packets_discarded)} discarded`],
  ['Lost on the way to the peer', of.remote_packets_lost === null ? 'not reported' : packets(of.remote_packets_lost)],
  ['Without media', `${count(of.seconds_without_media)} s`],
  ['Codecs', of.codecs.map(({ codec }) => codec).join(', then ') || '–'],
  ['Signalled address', address(of.signalled_address, of.signalled_port)],
  ['Packets come from', address(of.remote_address, of.remote_port)],
  ...(of.complete ? [] : ([['Note', 'The media worker was lost; these are its last figures.']] as [string, string][])),
]
