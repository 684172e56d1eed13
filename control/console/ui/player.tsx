import { useEffect, useRef, useState } from 'preact/hooks'
import { readBytes } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import { bytes, duration, when } from '../lib/format.ts'
import { type Problem, problemOf } from '../lib/problem.ts'
import { saveAs } from '../lib/save-as.ts'
import { theme } from '../lib/theme.ts'
import type { Recording } from '../lib/types.ts'
import { peaksOf, peaksOfAudio, type Wave } from '../lib/wav.ts'
import { Button, ProblemBox, Status } from './basics.tsx'

const COLUMNS = 600

export interface LoadedAudio {
  readonly url: string
  readonly wave: Wave
}

/** Loads a recording: an address that the caller revokes, and its loudness in `columns` steps. */
export async function loadAudio(recording_id: string, columns: number): Promise<LoadedAudio> {
  const raw = await readBytes(`/v1/recordings/${recording_id}.wav`)
  const url = URL.createObjectURL(new Blob([raw], { type: 'audio/wav' }))
  const wave =
    peaksOf(raw, columns) ??
    peaksOfAudio(await new OfflineAudioContext(1, 1, 48_000).decodeAudioData(raw.slice(0)), columns)
  return { url, wave }
}

/** The audio of a recording once it is complete. */
function useAudio({ id, status }: Recording) {
  const [loaded, setLoaded] = useState<LoadedAudio | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  useEffect(() => {
    if (status !== 'completed') return
    let here = true
    let url = ''
    loadAudio(id, COLUMNS).then(
      found => {
        url = found.url
        if (here) setLoaded(found)
        else URL.revokeObjectURL(url)
      },
      error => here && setProblem(problemOf(error)),
    )
    return () => {
      here = false
      if (url) URL.revokeObjectURL(url)
    }
  }, [id, status])
  return { loaded, problem }
}

export function Player({ recording }: { recording: Recording }) {
  const { loaded, problem } = useAudio(recording)
  if (recording.status !== 'completed')
    return (
      <div class="row">
        <Status of={recording.status} /> <span class="muted">It can be heard once it is complete.</span>
      </div>
    )
  if (problem) return <ProblemBox problem={problem} />
  if (!loaded) return <output class="loading">Loading the audio…</output>
  return <Audio recording={recording} {...loaded} />
}

/** A recording with its waveform, one lane for each channel: the caller above, the called party below. */
function Audio({ recording, url, wave }: LoadedAudio & { readonly recording: Recording }) {
  const [at, setAt] = useState(0)
  const [playing, setPlaying] = useState(false)
  const audio = useRef<HTMLAudioElement>(null)
  const { seconds, channels } = wave
  const seek = (to: number) => {
    if (!audio.current) return
    audio.current.currentTime = Math.max(0, Math.min(seconds, to))
    setAt(audio.current.currentTime)
  }
  const flip = () => void (playing ? audio.current?.pause() : audio.current?.play().catch(() => undefined))
  return (
    <div class="stack" data-player>
      <Waveform wave={wave} at={at} onSeek={seek} onFlip={flip} />
      <div class="row">
        <Button icon={playing ? 'pause' : 'play'} onClick={flip}>
          {playing ? 'Pause' : 'Play'}
        </Button>
        <span class="num">
          {duration(at)} of {duration(seconds)}
        </span>
        <span class="muted small">
          {channels.length === 2 ? 'Caller above, called below' : 'One channel'} · {bytes(recording.bytes)} ·{' '}
          {when(recording.started_at)}
        </span>
        <a class="button small" href={url} download={`${recording.id}.wav`}>
          Download WAV
        </a>
        <SaveMp3 recording_id={recording.id} />
      </div>
      {/* biome-ignore lint/a11y/useMediaCaption: recordings of calls have no transcript. */}
      <audio
        ref={audio}
        src={url}
        onTimeUpdate={event => setAt(event.currentTarget.currentTime)}
        onPlay={() => setPlaying(true)}
        onPause={() => setPlaying(false)}
        onEnded={() => setPlaying(false)}
      />
    </div>
  )
}

function SaveMp3({ recording_id }: { recording_id: string }) {
  const saving = useAction()
  const save = () =>
    saving.run(async () => {
      const mp3 = await readBytes(`/v1/recordings/${recording_id}.mp3`)
      saveAs(new Blob([mp3], { type: 'audio/mpeg' }), `${recording_id}.mp3`)
    })
  return (
    <>
      <Button small disabled={saving.busy} onClick={() => void save()}>
        Download MP3
      </Button>
      <ProblemBox problem={saving.problem} />
    </>
  )
}

interface WaveformProps {
  readonly wave: Wave
  /** The place that plays, in seconds. */
  readonly at: number
  readonly onSeek: (seconds: number) => void
  readonly onFlip: () => void
}

function Waveform({ wave, at, onSeek, onFlip }: WaveformProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const dark = theme.value
  const { seconds } = wave
  useEffect(() => {
    if (canvas.current) draw(canvas.current, wave, at / seconds)
  }, [wave, at, dark])
  return (
    <canvas
      ref={canvas}
      class="wave"
      width={COLUMNS * 2}
      height={264}
      role="slider"
      tabIndex={0}
      aria-label="Place in the recording"
      aria-valuemin={0}
      aria-valuemax={Math.round(seconds)}
      aria-valuenow={Math.round(at)}
      aria-valuetext={`${duration(at)} of ${duration(seconds)}`}
      onClick={event => {
        const box = event.currentTarget.getBoundingClientRect()
        onSeek(((event.clientX - box.left) / box.width) * seconds)
      }}
      onKeyDown={event => {
        if (event.key === 'ArrowRight') onSeek(at + 2)
        else if (event.key === 'ArrowLeft') onSeek(at - 2)
        else if (event.key === ' ') onFlip()
        else return
        event.preventDefault()
      }}
    />
  )
}

function draw(canvas: HTMLCanvasElement, wave: Wave, share: number): void {
  const context = canvas.getContext('2d')
  if (!context) return
  const style = getComputedStyle(document.documentElement)
  const colors = ['--lane-1', '--lane-2'].map(name => style.getPropertyValue(name))
  const quiet = style.getPropertyValue('--border-strong')
  const { width, height } = canvas
  const lane = height / wave.channels.length
  context.clearRect(0, 0, width, height)
  for (const [index, values] of wave.channels.entries()) {
    const middle = lane * index + lane / 2
    for (const [column, value] of values.entries()) {
      const x = (column / values.length) * width
      context.fillStyle = column / values.length <= share ? (colors[index] ?? quiet) : quiet
      const size = Math.max(1, Math.sqrt(value) * (lane - 12))
      context.fillRect(x, middle - size / 2, Math.max(1, width / values.length - 0.6), size)
    }
  }
  context.fillStyle = style.getPropertyValue('--text')
  context.fillRect(Math.min(width - 2, share * width), 0, 2, height)
}
