import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { duration, words } from '../lib/format.ts'
import { type LiveCall, useLiveCalls } from '../lib/live-calls.ts'
import { hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { Button, CallStatus, Card, Empty, LinkButton, NoRows, PageHead, ProblemBox, Tabs } from '../ui/basics.tsx'
import { ConfirmHangUp } from '../ui/dialog.tsx'
import { type Column, LongTable, Table } from '../ui/table.tsx'
import { CALL_TABS } from './call-tabs.ts'
import { TransferCall } from './transfer-call.tsx'

export function LiveCalls() {
  const live = useLiveCalls()
  return (
    <>
      <PageHead title="Live calls" sub="Calls in progress, as they change." />
      <Tabs items={CALL_TABS()} current="live" />
      <ProblemBox problem={live.problem} />
      <Card flush>{live.known ? <LiveTable calls={live.calls} long /> : <NoRows of={live}>{null}</NoRows>}</Card>
    </>
  )
}

/** Changes each second. Only the cells that show a time depend on it. */
const second = signal(Date.now())

/** The time since the answer; until then, since the call began. */
const TalkTime = ({ call }: { call: LiveCall }) => {
  const end = call.over ? Date.parse(call.ended_at ?? '') : second.value
  return <>{duration((end - Date.parse(call.start_time ?? call.queued_at)) / 1000)}</>
}

const keyOf = (call: LiveCall): string => call.id
const nothingMore = (): void => undefined

/** `long`: hundreds of calls, of which only those in view are drawn. */
export function LiveTable({ calls, long = false }: { calls: readonly LiveCall[]; long?: boolean }) {
  const [asking, setAsking] = useState<LiveCall | null>(null)
  const [moving, setMoving] = useState<LiveCall | null>(null)
  useEffect(() => {
    second.value = Date.now()
    const timer = setInterval(() => {
      second.value = Date.now()
    }, 1000)
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
  const columns: readonly Column<LiveCall>[] = [
    {
      title: 'From',
      cell: call => (
        <a class="num" href={hrefOf(`/calls/${call.id}`)}>
          {call.from}
        </a>
      ),
      width: '164px',
    },
    { title: 'To', cell: call => <span class="num">{call.to}</span>, width: '152px' },
    { title: 'Status', cell: call => <CallStatus call={call} />, width: '145px' },
    { title: 'Direction', cell: call => words(call.direction), wide: true },
    { title: 'Trunk', cell: call => call.trunk_name ?? '–', wide: true },
    { title: 'Codec', cell: call => call.codec ?? '–', wide: true, width: '80px' },
    { title: 'MOS', cell: call => call.mos?.toFixed(1) ?? '–', right: true, wide: true, width: '60px' },
    {
      title: 'Talk time',
      right: true,
      width: '116px',
      cell: call => <TalkTime call={call} />,
    },
    {
      title: '',
      right: true,
      width: '13rem',
      cell: call =>
        !call.over &&
        may('service_configuration:write') && (
          <>
            {call.status === 'in-progress' && (
              <Button small label={`Transfer the call to ${call.to}`} onClick={() => setMoving(call)}>
                Transfer
              </Button>
            )}{' '}
            <Button small kind="danger" label={`Hang up the call to ${call.to}`} onClick={() => setAsking(call)}>
              Hang up
            </Button>
          </>
        ),
    },
  ]
  return (
    <>
      {long ? (
        <LongTable
          label="Live calls"
          rows={calls}
          keyOf={keyOf}
          columns={columns}
          more={false}
          onNearEnd={nothingMore}
        />
      ) : (
        <Table label="Live calls" rows={calls} keyOf={keyOf} columns={columns} />
      )}
      {asking && <ConfirmHangUp call={asking} onClose={() => setAsking(null)} />}
      {moving && <TransferCall call={moving} onClose={() => setMoving(null)} />}
    </>
  )
}
