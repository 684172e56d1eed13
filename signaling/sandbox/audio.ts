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
  return end.ok ? resampleTo8k(samplesOfWav(end.stdout), SPEECH_RATE_HZ) : tone(800, 300)
}

/** Reads the samples of a WAV from espeak-ng. Its length fields are unset: skip 44 bytes, then read 16-bit samples. */
function samplesOfWav(wav: Buffer): Int16Array {
  const samples = new Int16Array(Math.max(0, (wav.length - 44) >> 1))
  for (let i = 0; i < samples.length; i++) samples[i] = wav.readInt16LE(44 + 2 * i)
  return samples
}

/** Resamples with a windowed-sinc low-pass filter, in telephone quality. It runs only a few times per call. */
function resampleTo8k(input: Int16Array, from_hz: number): Int16Array {
  const ratio = from_hz / RATE_HZ
  const cutoff = 0.45 / ratio
  const reach = 24
  const output = new Int16Array(Math.floor(input.length / ratio))
  for (let i = 0; i < output.length; i++) {
    const centre = i * ratio
    const first = Math.floor(centre) - reach
    let sum = 0
    for (let k = first; k <= first + 2 * reach; k++) {
      const x = k - centre
      const sinc = x === 0 ? 2 * cutoff : Math.sin(2 * Math.PI * cutoff * x) / (Math.PI * x)
      const window = 0.5 + 0.5 * Math.cos((Math.PI * x) / (reach + 1))
      sum += (input[k] ?? 0) * sinc * window
    }
    output[i] = Math.max(-32768, Math.min(32767, Math.round(sum)))
  }
  return output
}
