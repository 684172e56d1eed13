import { runBare } from '../../core/runtime/bare-child.ts'

/** The sample rate of all audio that the sandbox plays: that of G.711. */
const RATE_HZ = 8000
const SPEECH_RATE_HZ = 22_050
const SPEECH_LIMIT_MS = 10_000
const SPEECH_MAX_BYTES = 16 * 1024 * 1024

/** Returns `ms` milliseconds of a sine at about a third of full scale. */
export function tone(hz: number, ms: number): Int16Array {
  const samples = new Int16Array(Math.round((RATE_HZ * ms) / 1000))
  for (let i = 0; i < samples.length; i++) samples[i] = Math.round(10_000 * Math.sin((2 * Math.PI * hz * i) / RATE_HZ))
  return samples
}

export const silence = (ms: number): Int16Array => new Int16Array(Math.round((RATE_HZ * ms) / 1000))

/** Synthesizes slow speech at 8 kHz with espeak-ng. Returns a beep when espeak-ng is missing or fails. */
export async function speak(text: string): Promise<Int16Array> {
  const limits = { limit_ms: SPEECH_LIMIT_MS, max_bytes: SPEECH_MAX_BYTES }
  const end = await runBare('espeak-ng', ['--stdout', '-s', '110', '--', text], limits)
  return end.ok ? resampleTo8k(samplesOfWav(end.stdout)) : tone(800, 300)
}

/** Reads the samples of a WAV from espeak-ng. Its length fields are unset: skip 44 bytes, then read 16-bit samples. */
function samplesOfWav(wav: Buffer): Int16Array {
  const samples = new Int16Array(Math.max(0, (wav.length - 44) >> 1))
  for (let i = 0; i < samples.length; i++) samples[i] = wav.readInt16LE(44 + 2 * i)
  return samples
}

/** Resampling makes 160 samples of 441: each has one of 160 places between those of the input. */
const PHASES = 160
const STEP = (SPEECH_RATE_HZ * PHASES) / RATE_HZ
/** Samples of the input on each side that an output sample hears. */
const REACH = 24
const CUTOFF = (0.45 * RATE_HZ) / SPEECH_RATE_HZ

/** The weights of the input around an output sample at this place: a windowed sinc, in telephone quality. */
function kernelAt(phase: number): Float64Array {
  const kernel = new Float64Array(2 * REACH + 1)
  for (let k = 0; k < kernel.length; k++) {
    const x = k - REACH - phase / PHASES
    const sinc = x === 0 ? 2 * CUTOFF : Math.sin(2 * Math.PI * CUTOFF * x) / (Math.PI * x)
    kernel[k] = sinc * (0.5 + 0.5 * Math.cos((Math.PI * x) / (REACH + 1)))
  }
  return kernel
}

/** Made once: sines for each sample would keep all other calls waiting for a fifth of a second. */
const kernels: Float64Array[] = []

function resampleTo8k(input: Int16Array): Int16Array {
  const output = new Int16Array(Math.floor((input.length * PHASES) / STEP))
  for (let i = 0; i < output.length; i++) {
    const phase = (i * STEP) % PHASES
    const first = (i * STEP - phase) / PHASES - REACH
    kernels[phase] ??= kernelAt(phase)
    const kernel = kernels[phase]
    let sum = 0
    for (let k = 0; k < kernel.length; k++) sum += (input[first + k] ?? 0) * (kernel[k] ?? 0)
    output[i] = Math.max(-32768, Math.min(32767, Math.round(sum)))
  }
  return output
}
