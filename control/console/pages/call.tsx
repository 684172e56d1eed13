import { useEffect, useState } from 'preact/hooks'
import { useData } from '../lib/data.ts'
import { clockTime, duration, when } from '../lib/format.ts'
import { onLive } from '../lib/live.ts'
import { headlineOf } from '../lib/outcome.ts'
import { hrefOf, type PageProps } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { Call, CallEvent, CallSummary } from '../lib/types.ts'
import {
  Button,
  CallStatus,
  Card,
  CodeBox,
  Empty,
  Id,
  Loaded,
  NotForRole,
  PageHead,
  Tabs,
  Time,
} from '../ui/basics.tsx'
import { ConfirmHangUp } from '../ui/dialog.tsx'
import { Player } from '../ui/player.tsx'
import { CallFiles } from './call-files.tsx'
import { CallMedia } from './call-media.tsx'
import { Summary } from './call-summary.tsx'
import { Decision } from './decision.tsx'
import { Ladder } from './ladder.tsx'
import { ListenIn } from './listen-in.tsx'
import { TransferCall } from './transfer-call.tsx'

const TABS = [
  ['', 'Summary', 'call_history:read'],
  ['ladder', 'SIP ladder', 'call_diagnostics:read'],
  ['decision', 'Decision', 'call_diagnostics:read'],
  ['media', 'Media', 'call_diagnostics:read'],
  ['script', 'Script and webhooks', 'call_history:read'],
  ['recordings', 'Recordings', 'recordings:manage'],
] as const

export function CallPage({ params }: PageProps) {
  const id = params['id'] ?? ''
  const tab = params['tab'] ?? ''
  const of = useData<Call>(`/v1/calls/${id}`, { poll_ms: 6000 })
  const { reload } = of
  const [asking, setAsking] = useState(false)
  const [moving, setMoving] = useState(false)
  const [hearing, setHearing] = useState(false)
  useEffect(
    () => onLive(event => event.type === 'call' && (event['call'] as CallSummary).id === id && reload()),
    [id, reload],
  )
  const back = { href: hrefOf('/calls'), text: 'Calls' }
  return (
    <Loaded of={of} page={{ title: 'Call', back }}>
      {call => {
        const live = call.ended_at === null
        return (
          <>
            <PageHead
              title={`${call.from} → ${call.to}`}
              back={back}
              badges={<CallStatus call={call} />}
              sub={<Id value={call.id} what="the call's id" />}
              actions={
                <>
                  {may('call_diagnostics:read') && <CallFiles call_id={id} />}
                  {call.status === 'in-progress' && may('recordings:manage') && (
                    <Button icon="listen" onClick={() => setHearing(true)}>
                      Listen in
                    </Button>
                  )}
                  {live && may('service_configuration:write') && (
                    <>
                      {call.status === 'in-progress' && <Button onClick={() => setMoving(true)}>Transfer</Button>}
                      <Button kind="danger" onClick={() => setAsking(true)}>
                        Hang up
                      </Button>
                    </>
                  )}
                </>
              }
            />
            <Tabs
              items={TABS.filter(([, , scope]) => may(scope)).map(([name, text]) => ({
                id: name,
                text:
                  name === 'recordings' && call.recordings.length > 0 ? `${text} (${call.recordings.length})` : text,
                href: hrefOf(`/calls/${id}${name === '' ? '' : `/${name}`}`),
              }))}
              current={tab}
            />
            <Part tab={tab} call={call} />
            {hearing && <ListenIn call={call} onClose={() => setHearing(false)} />}
            {moving && live && <TransferCall call={call} onClose={() => setMoving(false)} />}
            {asking && live && <ConfirmHangUp call={call} onClose={() => setAsking(false)} onAsked={reload} />}
          </>
        )
      }}
    </Loaded>
  )
}

function Part({ tab, call }: { tab: string; call: Call }) {
  if (TABS.some(([name, , scope]) => name === tab && !may(scope))) return <NotForRole />
  const live = call.ended_at === null
  if (tab === 'ladder') return <Ladder call_id={call.id} live={live} />
  if (tab === 'decision') return <Decision call_id={call.id} live={live} />
  if (tab === 'media') return <CallMedia call_id={call.id} live={live} />
  if (tab === 'script') return <Script events={call.events} />
  if (tab === 'recordings') return <Recordings call={call} />
  if (tab === '') return <Summary call={call} />
  return <Empty title="There is no such part of a call" />
}

const EVENT_TONE: Readonly<Record<string, string>> = {
  error: 'bad',
  warning: 'warn',
  http: '',
  state: '',
  script: '',
}

function Script({ events }: { events: readonly CallEvent[] }) {
  if (events.length === 0)
    return (
      <Card flush>
        <Empty title="No script steps are kept for this call">
          A call of a trunk runs none. Calls of the API and calls to a voice application show each step here, as long as
          the platform keeps the logs of scripts.
        </Empty>
      </Card>
    )
  const begin = Date.parse(events[0]?.at ?? '')
  return (
    <Card title="Step by step" hint="Every verb, webhook and change of state in its order.">
      <ol class="timeline">
        {events.map((event, index) => (
          <li key={index} class={EVENT_TONE[event.kind]}>
            <time dateTime={event.at} title={when(event.at)}>
              {clockTime(event.at)} · +{((Date.parse(event.at) - begin) / 1000).toFixed(2)} s
            </time>
            <div>
              <strong>{headlineOf(event)}</strong>
            </div>
            {Object.keys(event.detail).length > 0 && (
              <details>
                <summary>Details</summary>
                <CodeBox text={JSON.stringify(event.detail, null, 2)} what="the details" />
              </details>
            )}
          </li>
        ))}
      </ol>
    </Card>
  )
}

const Recordings = ({ call }: { call: Call }) =>
  call.recordings.length === 0 ? (
    <Card flush>
      <Empty title="Nothing was recorded">
        Calls are recorded by a script's verb, or all calls of an outbound policy by its recording mode.
      </Empty>
    </Card>
  ) : (
    call.recordings.map(recording => (
      <Card
        key={recording.id}
        title={`Recording of ${duration((recording.duration_ms ?? 0) / 1000)}`}
        hint={
          recording.expires_at ? (
            <>
              {Date.parse(recording.expires_at) > Date.now() ? 'To be deleted' : 'Deleted'}{' '}
              <Time at={recording.expires_at} />
            </>
          ) : undefined
        }
      >
        <Player recording={recording} />
      </Card>
    ))
  )
