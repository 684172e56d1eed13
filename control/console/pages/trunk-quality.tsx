import type { TrunkDiagnostics } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { count, duration, words } from '../lib/format.ts'
import { query, setQuery } from '../lib/router.ts'
import type { TrunkMetrics } from '../lib/types.ts'
import { Card, Empty, Loaded, Stat, Stats, Time } from '../ui/basics.tsx'
import { SelectField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import type { TrunkTab } from './trunk-tab.ts'

const WINDOWS = [
  { value: '1h', text: 'Last hour' },
  { value: '24h', text: 'Last 24 hours' },
  { value: '7d', text: 'Last 7 days' },
  { value: '30d', text: 'Last 30 days' },
]

const fixed = (value: number | null, digits: number): string => (value === null ? '–' : value.toFixed(digits))

export function TrunkQuality({ trunk }: TrunkTab) {
  const window = query.value.get('window') ?? '24h'
  const metrics = useData<TrunkMetrics>(`/v1/trunks/${trunk.id}/metrics?window=${window}`, { poll_ms: 10_000 })
  const diagnostics = useData<TrunkDiagnostics>(`/v1/trunks/${trunk.id}/diagnostics?window=${window}`, {
    poll_ms: 10_000,
  })
  return (
    <>
      <div class="filters">
        <SelectField label="Window" value={window} onInput={value => setQuery({ window: value })} options={WINDOWS} />
      </div>
      <Loaded of={metrics}>
        {data => (
          <>
            <Stats>
              <Stat name="Attempts" value={count(data.attempts)} />
              <Stat
                name="Answered"
                value={count(data.answered)}
                hint={
                  data.attempts === 0
                    ? undefined
                    : `${((data.answered / data.attempts) * 100).toFixed(1)} % of attempts`
                }
              />
              <Stat name="Failed" value={count(data.failed)} />
              <Stat name="Mean duration" value={duration(data.acd_seconds)} hint={data.acd_reason ?? undefined} />
              <Stat
                name="Post-dial delay"
                value={data.pdd_ms === null ? '–' : `${data.pdd_ms} ms`}
                hint={data.pdd_reason ?? undefined}
              />
              <Stat name="ASR, 7 days" value={data.asr_7d_pct === null ? '–' : `${data.asr_7d_pct} %`} />
            </Stats>
            <Card
              title="Why calls failed"
              hint={
                <>
                  Until <Time at={data.as_of} />
                </>
              }
              flush
            >
              {data.top_failures.length === 0 ? (
                <Empty title="No failed calls in this window" />
              ) : (
                <Table
                  label="Why calls failed"
                  rows={data.top_failures}
                  keyOf={row => `${row.platform_reason}${row.sip_code}`}
                  columns={[
                    {
                      title: 'Reason',
                      cell: row => (
                        <a href={`/docs/errors/${row.platform_reason}`} target="_blank" rel="noreferrer">
                          {words(row.platform_reason)}
                        </a>
                      ),
                    },
                    { title: 'SIP code', cell: row => row.sip_code ?? '–', right: true },
                    { title: 'Calls', cell: row => count(row.calls), right: true },
                    { title: 'Share', cell: row => `${row.share_pct} %`, right: true },
                  ]}
                />
              )}
            </Card>
          </>
        )}
      </Loaded>
      <Loaded of={diagnostics}>
        {({ media }) => (
          <Card title="Media" hint={media.unavailable_reason ?? 'Measured on the packets themselves.'}>
            <Stats>
              <Stat name="MOS" value={fixed(media.mos, 2)} />
              <Stat name="Jitter" value={media.jitter_ms === null ? '–' : `${fixed(media.jitter_ms, 1)} ms`} />
              <Stat name="Packet loss" value={media.packet_loss_pct === null ? '–' : `${media.packet_loss_pct} %`} />
              <Stat name="One-way calls" value={count(media.one_way_calls)} />
              <Stat name="Calls without media" value={count(media.no_media_calls)} />
              <Stat name="Transcoded calls" value={count(media.transcoded_calls)} />
            </Stats>
          </Card>
        )}
      </Loaded>
    </>
  )
}
