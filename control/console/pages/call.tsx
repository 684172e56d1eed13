import { useEffect, useState } from 'preact/hooks'
import type { PageProps } from '../app.tsx'
import { useData } from '../lib/data.ts'
import { clockTime, duration, when, words } from '../lib/format.ts'
import { onLive } from '../lib/live.ts'
import { hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { Call, CallEvent, CallSummary } from '../lib/types.ts'
import {
  Button,
  Card,
  CodeBox,
  Empty,
  Facts,
  Id,
  Loaded,
  Notice,
  PageHead,
  Stat,
  Stats,
  Status,
  Tabs,
  Time,
} from '../ui/basics.tsx'
import { ConfirmHangUp } from '../ui/dialog.tsx'
import { Player } from '../ui/player.tsx'
import { Attempts } from './attempts.tsx'
import { CallMedia } from './call-media.tsx'
import { Decision } from './decision.tsx'
import { Ladder } from './ladder.tsx'

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
  useEffect(
    () => onLive(event => event.type === 'call' && (event['call'] as CallSummary).id === id && reload()),
    [id, reload],
  )
  return (
    <Loaded of={of}>
      {call => {
        const live = call.ended_at === null
        return (
          <>
            <PageHead
              title={`${call.from} → ${call.to}`}
              back={{ href: hrefOf('/calls'), text: 'Calls' }}
              badges={<Status of={call.status} />}
              sub={<Id value={call.id} what="the call's id" />}
              actions={
                live &&
                may('service_configuration:write') && (
                  <Button kind="danger" onClick={() => setAsking(true)}>
                    Hang up
                  </Button>
                )
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
            {tab === '' && <Summary call={call} />}
            {tab === 'ladder' && <Ladder call_id={id} live={live} />}
            {tab === 'decision' && <Decision call_id={id} live={live} />}
            {tab === 'media' && <CallMedia call_id={id} live={live} />}
            {tab === 'script' && <Script events={call.events} />}
            {tab === 'recordings' && <Recordings call={call} />}
            {asking && live && <ConfirmHangUp call={call} onClose={() => setAsking(false)} onAsked={reload} />}
          </>
        )
      }}
    </Loaded>
  )
}

/** Summarizes the call in one sentence. */
function outcomeOf(call: Call): {
  readonly tone: 'good' | 'bad' | 'note' | 'warn'
  readonly text: string
  /** Number of the error that stopped the script. */
  readonly fault: number | null
} {
  const fault = call.events.find(({ kind }) => kind === 'error')
  const failed = fault ? ` Its script failed: ${headline(fault)}.` : ''
  if (call.ended_at === null)
    return { tone: fault ? 'bad' : 'note', text: `The call is ${call.status}.${failed}`, fault: fault?.number ?? null }
  const by =
    call.ended_by === null
      ? ''
      : call.ended_by === 'caller' || call.ended_by === 'called'
        ? `, hung up by the ${call.ended_by} side`
        : `, ended by the ${call.ended_by}`
  const code = call.sip_code === null ? '' : ` SIP ${call.sip_code}.`
  const reason = call.reason === null ? '' : ` Reason: ${words(call.reason).toLowerCase()}.`
  const number = fault?.number ?? null
  if (call.status === 'completed') {
    const text = `Answered and talked ${duration(call.duration_seconds)}${by}.${failed}${reason}`
    return { tone: fault ? 'bad' : 'good', text, fault: number }
  }
  const tone = fault || call.status === 'failed' ? 'bad' : 'warn'
  return { tone, text: `Ended as ${call.status}${by}.${code}${failed}${reason}`, fault: number }
}

function Summary({ call }: { call: Call }) {
  const outcome = outcomeOf(call)
  return (
    <>
      <Notice tone={outcome.tone}>
        <span>
          {outcome.text}{' '}
          {(outcome.fault ?? call.reason) && (
            <a href={`/docs/errors/${outcome.fault ?? call.reason}`} target="_blank" rel="noreferrer">
              What this means
            </a>
          )}
        </span>
      </Notice>
      <Stats>
        <Stat name="Duration" value={duration(call.duration_seconds ?? call.record?.duration_seconds)} />
        <Stat name="Post-dial delay" value={call.record?.pdd_ms == null ? '–' : `${call.record.pdd_ms} ms`} />
        <Stat name="Attempts at targets" value={call.attempts.length} />
        <Stat name="Recordings" value={call.recordings.length} />
      </Stats>
      <div class="columns">
        <Card title="Call">
          <Facts
            rows={[
              ['Direction', words(call.direction)],
              ['Origin', words(call.origin)],
              ['Queued', when(call.queued_at)],
              ['Answered', when(call.start_time)],
              ['Ended', when(call.ended_at)],
              call.trunk_id
                ? [
                    'Trunk',
                    <a key="t" href={hrefOf(`/trunks/${call.trunk_id}`)}>
                      {call.trunk_id}
                    </a>,
                  ]
                : null,
              call.application_id
                ? [
                    'Application',
                    <a key="a" href={hrefOf(`/applications/${call.application_id}`)}>
                      {call.application_id}
                    </a>,
                  ]
                : null,
              call.parent_call_id
                ? [
                    'Made by',
                    <a key="p" href={hrefOf(`/calls/${call.parent_call_id}`)}>
                      {call.parent_call_id}
                    </a>,
                  ]
                : null,
            ]}
          />
        </Card>
        <Card title="Price">
          {call.price && call.price_explanation ? (
            <>
              <p>{call.price.sentence}</p>
              <ol class="prose">
                {call.price_explanation.slice(1).map(line => (
                  <li key={line}>{line}</li>
                ))}
              </ol>
            </>
          ) : (
            <p class="muted">
              {call.ended_at === null
                ? 'Settled when the call has ended.'
                : 'This call has no price: it stayed on the platform, no inbound price applies, or it was not admitted.'}
            </p>
          )}
        </Card>
      </div>
      <Attempts attempts={call.attempts} />
    </>
  )
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
        <Empty title="No step of a script is kept">
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
              <strong>{headline(event)}</strong>
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

/** Describes an event in a few words, from the fields of its kind. */
function headline({ kind, number, detail }: CallEvent): string {
  const text = (name: string): string =>
    typeof detail[name] === 'string' || typeof detail[name] === 'number' ? String(detail[name]) : ''
  const what = text('message') || text('detail') || text('sentence')
  const prefix = number === null ? '' : `${number}: `
  if (kind === 'http')
    return `${text('method') || 'Request'} ${text('url')} ${text('status') && `→ ${text('status')}`}`.trim()
  if (kind === 'state') return words(text('status') || text('state') || text('to') || 'State')
  if (kind === 'script')
    return [text('verb') || text('step') || text('kind') || 'Script', text('text') || text('event') || what]
      .filter(Boolean)
      .join(': ')
  return `${prefix}${what || words(kind)}`
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
