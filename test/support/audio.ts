import { readFileSync } from 'node:fs'
import { expandAlaw, expandUlaw } from '../../media/files/pcm.ts'
import { wavLayout } from '../../media/files/wav.ts'

/** Generates and measures audio in tests: tones, levels, lengths, and WAV files by channel. */

/** Returns a sine of a level in dBm0 as 16-bit samples. 0 dBm0 is 3.14 dB below the codec's full scale. */
export function tone(hz: number, ms: number, rate_hz = 8000, dbm0 = -10): Int16Array {
  const amplitude = 32_767 * 10 ** ((dbm0 - 3.14) / 20)
  return Int16Array.from({ length: Math.round((ms * rate_hz) / 1000) }, (_value, index) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hz * index) / rate_hz)),
  )
}

/** Returns the root-mean-square level in dBm0; -Infinity for digital silence. */
export function levelDbm0(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return 10 * Math.log10((2 * sum) / samples.length / 32_767 ** 2) + 3.14
}

/** Returns the level of one frequency in dBm0, by Goertzel's algorithm. */
export function toneLevelDbm0(samples: Int16Array, hz: number, rate_hz = 8000): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hz) / rate_hz)
  let before = 0
  let last = 0
  for (const sample of samples) {
    const next = sample + coefficient * last - before
    before = last
    last = next
  }
  const power = last * last + before * before - coefficient * last * before
  const amplitude = (2 * Math.sqrt(Math.max(power, 0))) / samples.length
  return 20 * Math.log10(amplitude / 32_767) + 3.14
}

/** Returns the strongest of some frequencies, by default of every 10 Hz from 200 to 3400. */
export function strongestHz(samples: Int16Array, rate_hz = 8000, candidates?: readonly number[]): number {
  const list = candidates ?? Array.from({ length: 321 }, (_value, index) => 200 + index * 10)
  return list.reduce((best, hz) =>
    toneLevelDbm0(samples, hz, rate_hz) > toneLevelDbm0(samples, best, rate_hz) ? hz : best,
  )
}

/** Cuts the silence before and after the sound: what is below -32 dBm0 at its edges. Silence alone gives no sample. */
export function trimmed(samples: Int16Array): Int16Array {
  const loud = (sample: number): boolean => Math.abs(sample) > 500
  return samples.subarray(Math.max(0, samples.findIndex(loud)), samples.findLastIndex(loud) + 1)
}

/**
 * Returns what can be heard of a sound: its 20 ms windows above -45 dBm0, joined. A sender that was stopped meanwhile
 * leaves pauses in a sound, but all of it is heard.
 */
export function sounding(samples: Int16Array): Int16Array {
  const windows: Int16Array[] = []
  for (let at = 0; at < samples.length; at += WINDOW) {
    const window = samples.subarray(at, at + WINDOW)
    if (levelDbm0(window) > HEARD_DBM0) windows.push(window)
  }
  const joined = new Int16Array(windows.reduce((sum, window) => sum + window.length, 0))
  let at = 0
  for (const window of windows) {
    joined.set(window, at)
    at += window.length
  }
  return joined
}
/** 20 ms at 8 kHz. */
const WINDOW = 160
const HEARD_DBM0 = -45

/** Returns the span in ms from the first to the last window above a threshold; null when no window is above it. */
export function heardSpan(
  samples: Int16Array,
  rate_hz = 8000,
  threshold_dbm0 = -45,
  window_ms = 20,
): { from_ms: number; to_ms: number } | null {
  const window = Math.round((rate_hz * window_ms) / 1000)
  let from_ms: number | null = null
  let to_ms = 0
  for (let at = 0; at + window <= samples.length; at += window) {
    if (levelDbm0(samples.subarray(at, at + window)) < threshold_dbm0) continue
    from_ms ??= (at * 1000) / rate_hz
    to_ms = ((at + window) * 1000) / rate_hz
  }
  return from_ms === null ? null : { from_ms, to_ms }
}

interface WavFile {
  readonly rate_hz: number
  readonly duration_ms: number
  /** Samples of each channel. */
  readonly channels: readonly Int16Array[]
}

/** Reads a 16-bit, µ-law or A-law WAV file. Trusts the header. */
export const readWavFile = (path: string): WavFile => readWav(readFileSync(path), path)

export function readWav(bytes: Buffer, path = 'this'): WavFile {
  const layout = wavLayout(bytes)
  if (!layout) throw new Error(`${path} is not a WAV file`)
  const { channels, rate_hz, format, bits, data_at, data_bytes } = layout
  if (data_at + data_bytes > bytes.length) throw new Error(`${path} is shorter than its header says`)
  const sample_bytes = bits >> 3
  const frames = Math.floor(data_bytes / sample_bytes / channels)
  const read = (at: number): number => {
    if (format === 1 && bits === 16) return bytes.readInt16LE(at)
    if (format === 7) return expandUlaw(bytes[at] ?? 0)
    if (format === 6) return expandAlaw(bytes[at] ?? 0)
    throw new Error(`${path}: WAV format ${format} with ${bits} bits`)
  }
  return {
    rate_hz,
    duration_ms: (frames / rate_hz) * 1000,
    channels: Array.from({ length: channels }, (_value, channel) =>
      Int16Array.from({ length: frames }, (_sample, frame) =>
        read(data_at + (frame * channels + channel) * sample_bytes),
      ),
    ),
  }
}

/** Returns a 16-bit PCM WAV file of one or more channels of equal length. */
export function wavBytes(rate_hz: number, ...channels: readonly Int16Array[]): Buffer {
  const frames = channels[0]?.length ?? 0
  const bytes = Buffer.alloc(44 + frames * channels.length * 2)
  bytes.write('RIFF', 0, 'latin1')
  bytes.writeUInt32LE(bytes.length - 8, 4)
  bytes.write('WAVEfmt ', 8, 'latin1')
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(channels.length, 22)
  bytes.writeUInt32LE(rate_hz, 24)
  bytes.writeUInt32LE(rate_hz * channels.length * 2, 28)
  bytes.writeUInt16LE(channels.length * 2, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36, 'latin1')
  bytes.writeUInt32LE(bytes.length - 44, 40)
  for (const [channel, samples] of channels.entries())
    for (const [frame, sample] of samples.entries())
      bytes.writeInt16LE(sample, 44 + (frame * channels.length + channel) * 2)
  return bytes
}

const compressTable = (expand: (byte: number) => number): Uint8Array => {
  const codes = Array.from({ length: 256 }, (_value, byte) => ({ byte, sample: expand(byte) }))
  codes.sort((a, b) => a.sample - b.sample)
  const table = new Uint8Array(65_536)
  let nearest = 0
  for (let sample = -32_768; sample <= 32_767; sample++) {
    const here = () => Math.abs((codes[nearest]?.sample ?? 0) - sample)
    const next = () => Math.abs((codes[nearest + 1]?.sample ?? Number.MAX_VALUE) - sample)
    while (nearest < 255 && next() <= here()) nearest++
    table[sample + 32_768] = codes[nearest]?.byte ?? 0
  }
  return table
}
const toUlaw = compressTable(expandUlaw)
const toAlaw = compressTable(expandAlaw)

export type G711 = 'PCMU' | 'PCMA'

export function encodeG711(codec: G711, samples: Int16Array): Buffer {
  const table = codec === 'PCMU' ? toUlaw : toAlaw
  return Buffer.from(Uint8Array.from(samples, sample => table[sample + 32_768] ?? 0))
}

export function decodeG711(codec: G711, bytes: Uint8Array): Int16Array {
  return Int16Array.from(bytes, codec === 'PCMU' ? expandUlaw : expandAlaw)
}
