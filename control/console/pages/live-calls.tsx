import { useEffect, useState } from 'preact/hooks'
import { duration, words } from '../lib/format.ts'
import { type LiveCall, useLiveCalls } from '../lib/live-calls.ts'
import { hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { Button, Card, Empty, LinkButton, PageHead, ProblemBox, Status, Tabs } from '../ui/basics.tsx'
import { ConfirmHangUp } from '../ui/dialog.tsx'
import { Table } from '../ui/table.tsx'
import { CALL_TABS } from './calls.tsx'

export function LiveCalls() {
  const { calls, problem, loading } = useLiveCalls()
  return (
    <>
      <PageHead title="Live calls" sub="Calls in progress, as they change." />
      <Tabs items={CALL_TABS()} current="live" />
      <ProblemBox problem={problem} />
      <Card flush>{loading ? <output class="loading">Loading…</output> : <LiveTable calls={calls} />}</Card>
    </>
  )
}

export function LiveTable({ calls }: { calls: readonly LiveCall[] }) {
  const [asking, setAsking] = useState<LiveCall | null>(null)
  const [, setTick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTick(value => value + 1), 1000)
    return () => clearInterval(timer)
  }, [])
  if (calls.length === 0)
    return (
      <Empty
        title="No call in progress"
        action={<LinkButton href={hrefOf('/calls')}>Calls that have ended</LinkButton>}
        api={'bin/strowger top\n\ncurl "$STROWGER_URL/v1/live-calls" -H "Authorization: Bearer $STROWGER_API_KEY"'}
      />
    )
  return (
    <>
      <Table
        label="Live calls"
        rows={calls}
        keyOf={call => call.id}
        columns={[
          {
            title: 'From',
            cell: call => (
              <a class="num" href={hrefOf(`/calls/${call.id}`)}>
                {call.from}
              </a>
            ),
          },
          { title: 'To', cell: call => <span class="num">{call.to}</span> },
          { title: 'Status', cell: call => <Status of={call.status} /> },
          { title: 'Direction', cell: call => words(call.direction), wide: true },
          { title: 'Trunk', cell: call => call.trunk_name ?? '–', wide: true },
          { title: 'Codec', cell: call => call.codec ?? '–', wide: true },
          { title: 'MOS', cell: call => call.mos?.toFixed(1) ?? '–', right: true, wide: true },
          {
            title: 'Since',
            right: true,
            cell: call =>
              duration(
                ((call.over ? Date.parse(call.ended_at ?? '') : Date.now()) -
                  Date.parse(call.start_time ?? call.queued_at)) /
                  1000,
              ),
          },
          {
            title: '',
            right: true,
            cell: call =>
              !call.over &&
              may('service_configuration:write') && (
                <Button small kind="danger" label={`Hang up the call to ${call.to}`} onClick={() => setAsking(call)}>
                  Hang up
                </Button>
              ),
          },
        ]}
      />
      {asking && <ConfirmHangUp call={asking} onClose={() => setAsking(null)} />}
    </>
  )
}
