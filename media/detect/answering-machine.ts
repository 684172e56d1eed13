import { frameLevelDbm0, pureTone } from './frame.ts'

/**
 * The settings of answering-machine detection. The detection depends only on the audio: the same samples give the same
 * verdict. The verdict includes the segments on which it is based. Names and defaults are those of voice-compat.md
 * §12.4.
 */
export interface DetectionSettings {
  /** `message_end`: after detecting a machine, wait for the end of its greeting. */
  readonly mode: 'enable' | 'message_end'
  readonly timeout_ms: number
  /** A first utterance of at least this length is a machine's. */
  readonly speech_threshold_ms: number
  /** Silence of this length ends an utterance. */
  readonly speech_end_threshold_ms: number
  /** Without any speech for this long, the verdict is `unknown`. */
  readonly silence_timeout_ms: number
}

type AnsweredBy =
  | 'human'
  | 'fax'
  | 'unknown'
  | 'machine_start'
  | 'machine_end_beep'
  | 'machine_end_silence'
  | 'machine_end_other'

interface Segment {
  readonly kind: 'speech' | 'tone'
  readonly from_ms: number
  readonly to_ms: number
}

export interface MachineVerdict {
  readonly answered_by: AnsweredBy
  readonly duration_ms: number
  readonly evidence: readonly Segment[]
}

const FRAME_MS = 20
/** A frame is speech when it is louder than SPEECH_DBM0 and exceeds the noise floor by ABOVE_NOISE_DB. */
const SPEECH_DBM0 = -42
const ABOVE_NOISE_DB = 9
/** Shorter sounds are clicks or breaths. */
const LEAST_SPEECH_MS = 80
const FAX_HZ: readonly number[] = [1100, 2100]
const FAX_MS = 400
const BEEP_MS = 120

/** Detects answering machines. The caller passes 20 ms frames of 8 kHz PCM in order until it returns a verdict. */
export class AnsweringMachineDetector {
  readonly #settings: DetectionSettings
  readonly #segments: { kind: 'speech' | 'tone'; from_ms: number; to_ms: number }[] = []
  #now_ms = 0
  #noise_dbm0 = -60
  #run: { kind: 'speech' | 'tone'; hz: number; from_ms: number } | null = null
  #utterance: { from_ms: number; to_ms: number } | null = null
  #machine = false

  constructor(settings: DetectionSettings) {
    this.#settings = settings
  }

  frame(samples: Int16Array): MachineVerdict | null {
    const level = frameLevelDbm0(samples)
    const tone_hz = level > SPEECH_DBM0 ? pureTone(samples) : null
    const speaking = level > Math.max(SPEECH_DBM0, this.#noise_dbm0 + ABOVE_NOISE_DB)
    // The noise floor falls at once and rises slowly, so that speech does not count as noise.
    this.#noise_dbm0 = Math.max(-70, Math.min(level, this.#noise_dbm0 + 0.02))
    this.#extend(tone_hz !== null ? 'tone' : speaking ? 'speech' : null, tone_hz ?? 0)
    this.#now_ms += FRAME_MS
    return this.#decide()
  }

  /** Feeds silence for a time in which no audio arrived. */
  silence(ms: number): MachineVerdict | null {
    const still = new Int16Array(160)
    for (let at = 0; at + FRAME_MS <= ms; at += FRAME_MS) {
      const verdict = this.frame(still)
      if (verdict) return verdict
    }
    return null
  }

  #extend(kind: 'speech' | 'tone' | null, hz: number): void {
    const run = this.#run
    const same = run !== null && run.kind === kind && (kind === 'speech' || Math.abs(run.hz - hz) < 40)
    if (!same) this.#run = kind === null ? null : { kind, hz, from_ms: this.#now_ms }
    const current = this.#run
    const to_ms = this.#now_ms + FRAME_MS
    if (!current || to_ms - current.from_ms < LEAST_SPEECH_MS) return
    const last = this.#segments.at(-1)
    if (last && last.kind === current.kind && last.from_ms === current.from_ms) last.to_ms = to_ms
    else this.#segments.push({ kind: current.kind, from_ms: current.from_ms, to_ms })
    if (current.kind === 'tone') return
    if (this.#utterance) this.#utterance.to_ms = to_ms
    else this.#utterance = { from_ms: current.from_ms, to_ms }
  }

  #decide(): MachineVerdict | null {
    const { timeout_ms, silence_timeout_ms, speech_threshold_ms, speech_end_threshold_ms, mode } = this.#settings
    const tone_ms = this.#run?.kind === 'tone' ? this.#now_ms - this.#run.from_ms : 0
    const tone_hz = this.#run?.hz ?? 0
    if (tone_ms >= FAX_MS && FAX_HZ.some(hz => Math.abs(hz - tone_hz) < 40)) return this.#verdict('fax')
    const quiet_ms = this.#utterance ? this.#now_ms - this.#utterance.to_ms : this.#now_ms
    if (this.#machine) {
      if (tone_ms >= BEEP_MS) return this.#verdict('machine_end_beep')
      if (quiet_ms >= speech_end_threshold_ms && tone_ms === 0) return this.#verdict('machine_end_silence')
      return this.#now_ms >= timeout_ms ? this.#verdict('machine_end_other') : null
    }
    if (this.#utterance && this.#utterance.to_ms - this.#utterance.from_ms >= speech_threshold_ms) {
      this.#machine = true
      return mode === 'enable' ? this.#verdict('machine_start') : null
    }
    if (this.#utterance && quiet_ms >= speech_end_threshold_ms) return this.#verdict('human')
    if (!this.#utterance && this.#now_ms >= silence_timeout_ms) return this.#verdict('unknown')
    return this.#now_ms >= timeout_ms ? this.#verdict('unknown') : null
  }

  #verdict(answered_by: AnsweredBy): MachineVerdict {
    return { answered_by, duration_ms: this.#now_ms, evidence: this.#segments.map(segment => ({ ...segment })) }
  }
}
