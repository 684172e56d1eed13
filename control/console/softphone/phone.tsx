import { useEffect, useRef, useState } from 'preact/hooks'
import { useAction, useData } from '../lib/data.ts'
import { duration, words } from '../lib/format.ts'
import { projectId } from '../lib/session.ts'
import type { Tone } from '../lib/tone.ts'
import type { ListOf, PhoneNumber } from '../lib/types.ts'
import { Badge, Button, Notice, ProblemBox } from '../ui/basics.tsx'
import { TextField } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { phoneOpen, phoneTarget } from './open.ts'
import {
  answer,
  call,
  clearCall,
  connectPhone,
  hangUp,
  hold,
  mute,
  phone,
  playInto,
  quality,
  sendKey,
} from './session.ts'

const KEYS = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '*', '0', '#']
const LINE: Readonly<Record<string, readonly [Tone, string]>> = {
  off: ['idle', 'Off'],
  connecting: ['warn', 'Connecting'],
  ready: ['good', 'Ready'],
  lost: ['bad', 'No line'],
}

/** The softphone. It stays mounted while the user changes pages. */
export function Phone() {
  const audio = useRef<HTMLAudioElement>(null)
  const action = useAction()
  const { run } = action
  const state = phone.value
  const project = projectId.value
  const open = phoneOpen.value
  useEffect(() => {
    playInto(audio.current)
    return () => playInto(null)
  }, [])
  // Each project has its own telephone, and opening tries again.
  useEffect(() => {
    void run(connectPhone)
  }, [run, project, open])
  const [tone, text] = LINE[state.line] ?? ['idle', '']
  const microphone = typeof navigator.mediaDevices?.getUserMedia === 'function'
  return (
    <section class="phone" aria-label="Telephone" hidden={!open}>
      <header>
        <h2>Telephone</h2>
        <Badge tone={tone} busy={state.line === 'connecting'}>
          {text}
        </Badge>
        <button
          type="button"
          class="icon-button"
          aria-label="Close the telephone"
          onClick={() => {
            phoneOpen.value = false
          }}
        >
          <Icon name="cross" />
        </button>
      </header>
      <div class="body">
        {!microphone && (
          <Notice tone="warn">Browsers give the microphone only to pages loaded over https or from localhost.</Notice>
        )}
        {state.problem && <Notice tone="bad">{state.problem}</Notice>}
        <ProblemBox problem={action.problem} />
        {state.call ? <InCall run={run} /> : <Dial run={run} />}
        {state.client && (
          <p class="muted small">
            Calls to <code>client:{state.client}</code> ring here. You call as {state.caller}.
          </p>
        )}
      </div>
      {/* biome-ignore lint/a11y/useMediaCaption: live call audio has no captions. */}
      <audio ref={audio} autoplay data-phone-audio />
    </section>
  )
}

type Run = (work: () => Promise<unknown>) => Promise<boolean>

function Dial({ run }: { run: Run }) {
  const [number, setNumber] = useState(phoneTarget.value)
  const numbers = useData<ListOf<PhoneNumber>>('/v1/numbers?limit=50')
  const wanted = phoneTarget.value
  useEffect(() => {
    if (wanted !== '') setNumber(wanted)
    phoneTarget.value = ''
  }, [wanted])
  const applications = (numbers.data?.data ?? []).filter(item => item.route?.kind === 'voice_application')
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        if (number !== '') void run(() => call(number))
      }}
    >
      <TextField
        label="Number"
        type="tel"
        value={number}
        onInput={value => setNumber(value.trim())}
        placeholder="+234…"
        autoFocus
      />
      <div class="keys">
        {KEYS.map(key => (
          <button type="button" key={key} onClick={() => setNumber(number + key)}>
            {key}
          </button>
        ))}
      </div>
      <button type="submit" class="button call-button" disabled={number === ''}>
        <Icon name="phone" /> Call
      </button>
      <details>
        <summary>Numbers to try</summary>
        <ul class="small">
          {[
            ['+2348030000001', 'says the number, then echoes'],
            ['+2348030000002', 'is busy'],
            ['+2348030000004', 'sends digits and listens'],
            ...applications.map(item => [item.e164, `rings ${item.route?.name}`] as const),
          ].map(([value, hint]) => (
            <li key={value}>
              <Button small kind="quiet" onClick={() => setNumber(value ?? '')}>
                {value}
              </Button>{' '}
              {hint}
            </li>
          ))}
        </ul>
      </details>
    </form>
  )
}

function InCall({ run }: { run: Run }) {
  const now = phone.value.call
  const [, setTick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTick(value => value + 1), 1000)
    return () => clearInterval(timer)
  }, [])
  if (!now) return null
  const talking = now.state === 'talking'
  const rings = now.incoming && now.state === 'ringing'
  return (
    <div class="stack" data-phone-state={now.state}>
      <div>
        <strong>{now.number}</strong>
        <div class="muted" role="status">
          {rings ? 'is calling' : words(now.state)}
          {talking && ` ${duration((Date.now() - now.since_ms) / 1000)}`}
          {now.held && ', on hold'}
          {now.note && ` · ${now.note}`}
        </div>
      </div>
      {talking && <Meters />}
      {talking && <Talking run={run} muted={now.muted} held={now.held} />}
      <div class="row">
        {rings && (
          <button type="button" class="button call-button" onClick={() => void run(answer)}>
            <Icon name="phone" /> Answer
          </button>
        )}
        {now.state === 'ended' ? (
          <Button onClick={clearCall}>Another call</Button>
        ) : (
          <button type="button" class="button hang-button" onClick={() => void run(hangUp)}>
            <Icon name="cross" /> {rings ? 'Decline' : 'Hang up'}
          </button>
        )}
      </div>
    </div>
  )
}

/** What may be done while both sides talk. */
function Talking({ run, muted, held }: { run: Run; muted: boolean; held: boolean }) {
  return (
    <>
      <fieldset class="keys" aria-label="Keypad">
        {KEYS.map(key => (
          <button type="button" key={key} onClick={() => sendKey(key)} aria-label={`Send ${key}`}>
            {key}
          </button>
        ))}
      </fieldset>
      <div class="row">
        <Button small onClick={() => mute(!muted)}>
          {muted ? 'Unmute' : 'Mute'}
        </Button>
        <Button small onClick={() => void run(() => hold(!held))}>
          {held ? 'Resume' : 'Hold'}
        </Button>
      </div>
    </>
  )
}

function Meters() {
  const now = quality.value
  if (!now) return <p class="muted small">Measuring…</p>
  const level = (share: number) => ({ transform: `scaleX(${Math.min(1, Math.sqrt(share))})` })
  return (
    <div class="levels" data-quality>
      <span>You</span>
      <div class="bar">
        <i style={level(now.spoken)} />
      </div>
      <span>They</span>
      <div class="bar">
        <i style={level(now.heard)} />
      </div>
      <span>Quality</span>
      <span class="num">
        MOS {now.mos.toFixed(1)} · jitter {now.jitter_ms.toFixed(0)} ms · lost {now.lost_pct.toFixed(1)} % ·{' '}
        {now.rtt_ms.toFixed(0)} ms
      </span>
    </div>
  )
}
