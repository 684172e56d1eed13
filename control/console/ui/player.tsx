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

/** A recording with its waveform, one lane for each channel: the caller above, the called party below. */
export function Player({ recording }: { recording: Recording }) {
  const [loaded, setLoaded] = useState<LoadedAudio | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [at, setAt] = useState(0)
  const [playing, setPlaying] = useState(false)
  const audio = useRef<HTMLAudioElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const saving = useAction()

  useEffect(() => {
    if (recording.status !== 'completed') return
    let here = true
    let url = ''
    loadAudio(recording.id, COLUMNS).then(
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
  }, [recording.id, recording.status])

  const dark = theme.value
  useEffect(() => {
    if (loaded && canvas.current) draw(canvas.current, loaded.wave, at / loaded.wave.seconds)
  }, [loaded, at, dark])

  const seek = (seconds: number) => {
    if (!audio.current || !loaded) return
    audio.current.currentTime = Math.max(0, Math.min(loaded.wave.seconds, seconds))
    setAt(audio.current.currentTime)
  }
  const saveMp3 = () =>
    saving.run(async () => {
      const mp3 = await readBytes(`/v1/recordings/${recording.id}.mp3`)
      saveAs(new Blob([mp3], { type: 'audio/mpeg' }), `${recording.id}.mp3`)
    })
  const flip = () => void (playing ? audio.current?.pause() : audio.current?.play().catch(() => undefined))
  if (recording.status !== 'completed')
    return (
      <div class="row">
        <Status of={recording.status} /> <span class="muted">It can be heard once it is complete.</span>
      </div>
    )
  if (problem) return <ProblemBox problem={problem} />
  if (!loaded) return <output class="loading">Loading the audio…</output>
  const { seconds, channels } = loaded.wave
  return (
    <div class="stack" data-player>
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
          seek(((event.clientX - box.left) / box.width) * seconds)
        }}
        onKeyDown={event => {
          if (event.key === 'ArrowRight') seek(at + 2)
          else if (event.key === 'ArrowLeft') seek(at - 2)
          else if (event.key === ' ') flip()
          else return
          event.preventDefault()
        }}
      />
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
        <a class="button small" href={loaded.url} download={`${recording.id}.wav`}>
          Download WAV
        </a>
        <Button small disabled={saving.busy} onClick={() => void saveMp3()}>
          Download MP3
        </Button>
      </div>
      <ProblemBox problem={saving.problem} />
      {/* biome-ignore lint/a11y/useMediaCaption: recordings of calls have no transcript. */}
      <audio
        ref={audio}
        src={loaded.url}
        onTimeUpdate={event => setAt(event.currentTarget.currentTime)}
        onPlay={() => setPlaying(true)}
        onPause={() => setPlaying(false)}
        onEnded={() => setPlaying(false)}
      />
    </div>
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
