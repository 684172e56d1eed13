import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { CallLadder, OperatorCarrier } from '../lib/api-types.ts'
import { type Item, storyOf } from '../lib/call-story.ts'
import { useData } from '../lib/data.ts'
import { duration, money, when, words } from '../lib/format.ts'
import { outcomeOf } from '../lib/outcome.ts'
import { hrefOf } from '../lib/router.ts'
import { may, session } from '../lib/session.ts'
import type { Application, Call, CallSummary, ListOf, Recording, Trunk } from '../lib/types.ts'
import { Button, CallStatus, Card, Facts, Id, Notice, Stat, Stats } from '../ui/basics.tsx'
import { type LoadedAudio, loadAudio } from '../ui/player.tsx'
import { Table } from '../ui/table.tsx'
import { Attempts } from './attempts.tsx'
import { type CallMediaAnswer, nameOfLeg } from './call-media.tsx'
import { Side } from './call-side.tsx'
import { Timeline } from './call-timeline.tsx'
import { Turns } from './call-turns.tsx'

const POLL_MS = 5000
/** The carrier that each platform has (`core/state/configuration/bootstrap.ts`). */
const SANDBOX_CARRIER = 'car_sandbox'
/** Who made a call. */
const ORIGINS: Readonly<Record<Call['origin'], string>> = {
  carrier: 'a carrier',
  trunk: 'a trunk',
  client: 'a telephone in a browser',
  rest: 'a program, by the API',
  dial: 'another call, which dialled it',
  test: 'a test of a trunk',
}
/** A row of the waveform for this much audio. */
const COLUMN_MS = 20
const MOST_COLUMNS = 40_000
/** Longer audio is loaded when a person asks for it. */
const LOADED_UNASKED_BYTES = 4 * 1024 * 1024

/** The page of a call: how it went in sentences and figures, and all that happened on one axis of time. */
export function Summary({ call }: { call: Call }) {
  const outcome = outcomeOf(call, { duration, words })
  const diagnoses = may('call_diagnostics:read')
  const live = call.ended_at === null
  const polled = live ? { poll_ms: POLL_MS } : {}
  const media = useData<CallMediaAnswer>(diagnoses ? `/v1/calls/${call.id}/media` : null, polled)
  const reason = outcome.fault ?? call.reason
  return (
    <>
      <Notice tone={outcome.tone}>
        <span>
          {outcome.text} {call.price?.sentence}{' '}
          {reason && (
            <a href={`/docs/errors/${reason}`} target="_blank" rel="noreferrer">
              What this means
            </a>
          )}
        </span>
      </Notice>
      <Figures call={call} media={media.data} />
      <Axis call={call} media={media.data} />
      <div class="columns">
        <About call={call} />
        <Price call={call} />
        <Family call={call} />
      </div>
      <Attempts attempts={call.attempts} />
    </>
  )
}

/** The codecs of the caller's and the called leg, once when they are the same. */
function codecsOf(media: CallMediaAnswer | undefined): string[] {
  const codecs = (media?.legs ?? []).flatMap(
    ({ figures, samples }) => figures?.codec ?? samples.at(-1)?.stats.codec ?? [],
  )
  return [...new Set(codecs)]
}

function Figures({ call, media }: { call: Call; media: CallMediaAnswer | undefined }) {
  const scores = (media?.legs ?? []).flatMap(({ figures, samples }) => figures?.mos ?? samples.at(-1)?.stats.mos ?? [])
  const codecs = codecsOf(media)
  return (
    <Stats>
      <Stat name="Duration" value={duration(call.duration_seconds ?? call.record?.duration_seconds)} />
      <Stat name="Post-dial delay" value={call.record?.pdd_ms == null ? '–' : `${call.record.pdd_ms} ms`} />
      <Stat
        name="MOS"
        value={scores.length === 0 ? '–' : Math.min(...scores).toFixed(2)}
        hint={scores.length > 1 ? 'of the worse leg' : undefined}
      />
      <Stat name="Codec" value={codecs.join(' ↔ ') || '–'} hint={codecs.length > 1 ? 'transcoded' : undefined} />
      <Stat name="Price" value={call.price ? money(call.price.amount_minor, call.price.currency) : '–'} />
    </Stats>
  )
}

function Axis({ call, media }: { call: Call; media: CallMediaAnswer | undefined }) {
  const live = call.ended_at === null
  const ladder = useData<CallLadder>(may('call_diagnostics:read') ? `/v1/calls/${call.id}/ladder` : null, {
    poll_ms: live ? 2500 : 8000,
  })
  const messages = ladder.data?.messages
  const story = useMemo(
    () =>
      storyOf({
        call,
        messages: messages ?? [],
        legs: (media?.legs ?? []).map(leg => ({ ...leg, name: nameOfLeg(leg).toLowerCase() })),
        now_ms: Date.now(),
      }),
    [call, messages, media],
  )
  const [chosen, setChosen] = useState<Item | null>(null)
  // A reload makes new items. The same thing stays chosen.
  const current = useMemo(
    () =>
      chosen === null
        ? null
        : (story.lanes
            .flatMap(({ items }) => items)
            .find(item => item.from_ms === chosen.from_ms && item.label.split(':')[0] === chosen.label.split(':')[0]) ??
          null),
    [story, chosen],
  )
  const audio = useAudio(call)
  return (
    <>
      <div class={`told ${current ? 'open' : ''}`}>
        <Timeline
          story={story}
          heard={audio.heard}
          call_id={call.id}
          chosen={current}
          onChoose={setChosen}
          playing_ms={audio.playing_ms}
          actions={audio.actions}
        />
        {current && <Side item={current} onClose={() => setChosen(null)} />}
      </div>
      {audio.element}
      {story.turns.length > 0 && <Turns turns={story.turns} />}
    </>
  )
}

const columnsOf = ({ duration_ms }: Recording): number =>
  Math.max(200, Math.min(MOST_COLUMNS, Math.ceil((duration_ms ?? 0) / COLUMN_MS)))

type PlacedAudio = LoadedAudio & { readonly from_ms: number }

/** Loads recordings, each with the time at which it begins. None is loaded while `loads` is false. */
function useRecordings(recordings: readonly Recording[], loads: boolean): readonly PlacedAudio[] {
  const [loaded, setLoaded] = useState<readonly PlacedAudio[]>([])
  const ids = loads ? recordings.map(({ id }) => id).join(' ') : ''
  useEffect(() => {
    if (ids === '') return
    let here = true
    const made: string[] = []
    // The tab of recordings says why one cannot be loaded; the axis is whole without it.
    const all = recordings.map(recording => loadAudio(recording.id, columnsOf(recording)))
    void Promise.allSettled(all).then(results => {
      const found = results.flatMap((result, index) => {
        if (result.status === 'rejected') return []
        made.push(result.value.url)
        return [{ ...result.value, from_ms: Date.parse(recordings[index]?.started_at ?? '') }]
      })
      if (here) setLoaded(found)
      else for (const url of made) URL.revokeObjectURL(url)
    })
    return () => {
      here = false
      for (const url of made) URL.revokeObjectURL(url)
      setLoaded([])
    }
  }, [ids])
  return loaded
}

/** The call's recordings on its axis, of which the first can be played. */
function useAudio(call: Call) {
  const ready = may('recordings:manage')
    ? call.recordings.filter(({ status, started_at }) => status === 'completed' && started_at !== null)
    : []
  const [wanted, setWanted] = useState(false)
  const loads = wanted || ready.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0) <= LOADED_UNASKED_BYTES
  const loaded = useRecordings(ready, loads)
  const [at, setAt] = useState<number | null>(null)
  const [playing, setPlaying] = useState(false)
  const player = useRef<HTMLAudioElement>(null)
  const heard = useMemo(() => loaded.map(({ from_ms, wave }) => ({ from_ms, wave })), [loaded])
  const [first] = loaded
  const flip = () => void (playing ? player.current?.pause() : player.current?.play().catch(() => undefined))
  return {
    heard,
    playing_ms: first && at !== null ? first.from_ms + at * 1000 : null,
    actions: first ? (
      <Button small icon={playing ? 'pause' : 'play'} onClick={flip}>
        {playing ? 'Pause' : 'Play'}
      </Button>
    ) : (
      ready.length > 0 &&
      !loads && (
        <Button small icon="download" onClick={() => setWanted(true)}>
          Load the audio
        </Button>
      )
    ),
    element: first && (
      // biome-ignore lint/a11y/useMediaCaption: recordings of calls have no transcript.
      <audio
        ref={player}
        src={first.url}
        onTimeUpdate={event => setAt(event.currentTarget.currentTime)}
        onPlay={() => setPlaying(true)}
        onPause={() => setPlaying(false)}
        onEnded={() => setPlaying(false)}
      />
    ),
  }
}

function About({ call }: { call: Call }) {
  const trunk = useData<Trunk>(
    call.trunk_id && may('service_configuration:read') ? `/v1/trunks/${call.trunk_id}` : null,
  )
  const application = useData<Application>(
    call.application_id && may('service_configuration:read') ? `/v1/voice/applications/${call.application_id}` : null,
  )
  return (
    <Card title="Call">
      <Facts
        rows={[
          ['Direction', words(call.direction)],
          ['Made by', ORIGINS[call.origin]],
          ['Queued', when(call.queued_at)],
          ['Answered', when(call.start_time)],
          ['Ended', when(call.ended_at)],
          call.trunk_id
            ? [
                'Trunk',
                <a key="t" href={hrefOf(`/trunks/${call.trunk_id}`)}>
                  {trunk.data?.name ?? call.trunk_id}
                </a>,
              ]
            : null,
          call.carrier_id ? ['Carrier', <CarrierName key="c" id={call.carrier_id} />] : null,
          call.application_id
            ? [
                'Application',
                <a key="a" href={hrefOf(`/applications/${call.application_id}`)}>
                  {application.data?.name ?? call.application_id}
                </a>,
              ]
            : null,
          ['SIP Call-ID', call.sip_call_id ?? '–'],
        ]}
      />
    </Card>
  )
}

/** Only operators read the names of carriers. */
function CarrierName({ id }: { id: string }) {
  const operator = session.value?.member.operator ?? false
  const of = useData<OperatorCarrier>(operator && id !== SANDBOX_CARRIER ? `/operator/v1/carriers/${id}` : null)
  if (id === SANDBOX_CARRIER) return <>The sandbox carrier</>
  return operator ? <a href={hrefOf(`/operator/carriers/${id}`)}>{of.data?.name ?? id}</a> : <Id value={id} />
}

const Price = ({ call }: { call: Call }) => (
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
)

/** The call that made this one, and those that this one made. */
function Family({ call }: { call: Call }) {
  const parent = useData<Call>(call.parent_call_id ? `/v1/calls/${call.parent_call_id}` : null)
  const children = useData<ListOf<CallSummary>>(
    `/v1/calls?parent_call_id=${call.id}&limit=50`,
    call.ended_at === null ? { poll_ms: POLL_MS } : {},
  )
  const rows: (CallSummary & { readonly kin: string })[] = [
    ...(parent.data ? [{ ...parent.data, kin: 'Made this call' }] : []),
    ...(children.data?.data ?? []).map(child => ({ ...child, kin: 'Made by this call' })),
  ]
  if (rows.length === 0) return null
  return (
    <Card title="Calls around it" flush>
      <Table
        label="Calls around it"
        rows={rows}
        keyOf={row => row.id}
        hrefOf={row => hrefOf(`/calls/${row.id}`)}
        columns={[
          { title: 'To', cell: row => <span class="num">{row.to}</span> },
          { title: 'Which', cell: row => row.kin },
          { title: 'Status', cell: row => <CallStatus call={row} /> },
          { title: 'Duration', cell: row => duration(row.duration_seconds), right: true, wide: true },
        ]}
      />
    </Card>
  )
}
