import { frameLevelDbm0 } from '../detect/frame.ts'

/** The least level of speech, and the level that is speech over any noise. */
const LEAST_DBM0 = -45
const LOUD_DBM0 = -30
/** How far speech stands above the noise of the line. */
const ABOVE_NOISE_DB = 10
/** The noise is the least level, which rises slowly towards the level of the line. */
const NOISE_RISE_DB = 0.06
/** The energy of differences between samples, relative to that of the samples: 2 in white noise, below 1 in vowels. */
const VOICED_TILT = 1

/** Tells voiced frames of 20 ms at 8 kHz from silence, noise and clicks, by level and spectral tilt. */
class VoiceActivity {
  #noise_dbm0 = -60

  /** Returns whether a frame holds voice. */
  voiced(frame: Int16Array): boolean {
    const level = frameLevelDbm0(frame)
    const { threshold_dbm0 } = this
    this.#noise_dbm0 = Math.min(level, this.#noise_dbm0 + NOISE_RISE_DB)
    return level > threshold_dbm0 && tilt(frame) < VOICED_TILT
  }

  get threshold_dbm0(): number {
    return Math.min(LOUD_DBM0, Math.max(LEAST_DBM0, this.#noise_dbm0 + ABOVE_NOISE_DB))
  }
}

function tilt(frame: Int16Array): number {
  let energy = 0
  let differences = 0
  let before = frame[0] ?? 0
  for (const sample of frame) {
    energy += sample * sample
    differences += (sample - before) ** 2
    before = sample
  }
  return energy === 0 ? 2 : differences / energy
}

/** Of the last frames, the number that must be voiced for speech to begin. */
const ONSETS = { high: [2, 2], medium: [4, 5], low: [8, 10] } as const

/** Reports the beginning and end of speech. */
export class SpeechEdges {
  readonly #activity = new VoiceActivity()
  readonly #onset: readonly [number, number]
  readonly #end_frames: number
  #recent: boolean[] = []
  #quiet = 0
  speaking = false

  /** @param end_ms The silence after which speech is over. */
  constructor(sensitivity: keyof typeof ONSETS, end_ms: number) {
    this.#onset = ONSETS[sensitivity]
    this.#end_frames = Math.max(1, Math.round(end_ms / 20))
  }

  /** Takes a frame of 20 ms at 8 kHz. `voiced`: the speech that has begun goes on. */
  take(frame: Int16Array): 'began' | 'voiced' | 'ended' | null {
    const voiced = this.#activity.voiced(frame)
    const [needed, among] = this.#onset
    this.#recent = [...this.#recent.slice(1 - among), voiced]
    this.#quiet = voiced ? 0 : this.#quiet + 1
    const speech = voiced && this.#recent.filter(Boolean).length >= needed
    if (this.speaking) {
      if (this.#quiet < this.#end_frames) return speech ? 'voiced' : null
      this.speaking = false
      this.#recent = []
      return 'ended'
    }
    if (!speech) return null
    this.speaking = true
    return 'began'
  }
}
