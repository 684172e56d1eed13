import type { SampleRate } from '../../native/types.ts'

/** Mono audio as 16-bit samples. */
export interface Pcm {
  readonly samples: Int16Array
  readonly rate_hz: number
}

export type Decoded = { readonly pcm: Pcm } | { readonly refused: 'audio_unsupported'; readonly detail: string }

export const unsupported = (detail: string) => ({ refused: 'audio_unsupported', detail }) as const

/** Forty minutes. Longer files are truncated (voice-compat.md, Play). */
export const MAX_SECONDS = 2400

/** The longest prompt for the data plane: forty minutes at 8 kHz, about thirteen at 24 kHz. */
const MAX_PLAYED_SAMPLES = MAX_SECONDS * 8000
/** The longest speech: ten minutes. */
export const MAX_SPEECH_SECONDS = 600

/** Converts a G.711 µ-law byte to a sample (ITU-T G.711 table 2a). */
export function expandUlaw(byte: number): number {
  const value = ~byte & 0xff
  const magnitude = (((value & 0x0f) << 3) + 0x84) << ((value & 0x70) >> 4)
  return value & 0x80 ? 0x84 - magnitude : magnitude - 0x84
}

/** Converts a G.711 A-law byte to a sample (ITU-T G.711 table 1a). */
export function expandAlaw(byte: number): number {
  const value = byte ^ 0x55
  const segment = (value & 0x70) >> 4
  const low = ((value & 0x0f) << 4) + 8
  const magnitude = segment === 0 ? low : (low + 0x100) << (segment - 1)
  return value & 0x80 ? magnitude : -magnitude
}

/** Converts a sample to a G.711 µ-law byte (ITU-T G.711 table 2b). */
export function compressUlaw(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0
  // The complement: a negative sample on the border of two segments takes the nearer code.
  const magnitude = Math.min(sample < 0 ? ~sample : sample, 32_635) + 0x84
  const segment = Math.floor(Math.log2(magnitude)) - 7
  return ~(sign | (segment << 4) | ((magnitude >> (segment + 3)) & 0x0f)) & 0xff
}

let ulawCodes: Uint8Array | null = null
let ulawLevels: Int16Array | null = null

/** Converts samples to µ-law, by a table: live audio passes here 50 times a second for each stream. */
export function toUlaw(samples: Int16Array): Buffer {
  // The index is the sample as an unsigned number of 16 bits.
  ulawCodes ??= Uint8Array.from({ length: 65_536 }, (_, index) => compressUlaw((index << 16) >> 16))
  const bytes = Buffer.allocUnsafe(samples.length)
  for (let at = 0; at < samples.length; at++) bytes[at] = ulawCodes[(samples[at] ?? 0) & 0xffff] ?? 0
  return bytes
}

/** Converts µ-law to samples. */
export function fromUlaw(bytes: Uint8Array): Int16Array {
  ulawLevels ??= Int16Array.from({ length: 256 }, (_, code) => expandUlaw(code))
  const samples = new Int16Array(bytes.length)
  for (let at = 0; at < bytes.length; at++) samples[at] = ulawLevels[bytes[at] ?? 0] ?? 0
  return samples
}

/** Reads one sample of a file. `at` is a byte offset. */
export interface SampleFormat {
  readonly bytes: number
  read(data: DataView, at: number): number
}

const clip = (value: number) => Math.max(-32_768, Math.min(32_767, Math.round(value)))

export const SAMPLE_FORMATS = {
  u8: { bytes: 1, read: (data, at) => (data.getUint8(at) - 128) << 8 },
  s8: { bytes: 1, read: (data, at) => data.getInt8(at) << 8 },
  s16le: { bytes: 2, read: (data, at) => data.getInt16(at, true) },
  s16be: { bytes: 2, read: (data, at) => data.getInt16(at, false) },
  s24le: { bytes: 3, read: (data, at) => data.getInt16(at + 1, true) },
  s24be: { bytes: 3, read: (data, at) => data.getInt16(at, false) },
  s32le: { bytes: 4, read: (data, at) => data.getInt16(at + 2, true) },
  s32be: { bytes: 4, read: (data, at) => data.getInt16(at, false) },
  f32le: { bytes: 4, read: (data, at) => clip(data.getFloat32(at, true) * 32_767) },
  ulaw: { bytes: 1, read: (data, at) => expandUlaw(data.getUint8(at)) },
  alaw: { bytes: 1, read: (data, at) => expandAlaw(data.getUint8(at)) },
} as const satisfies Record<string, SampleFormat>

/** Converts interleaved samples to mono by the mean of the channels. Truncates after MAX_SECONDS. */
export function toMono(bytes: Uint8Array, format: SampleFormat, channels: number, rate_hz: number): Int16Array {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const step = format.bytes * channels
  const frames = Math.min(Math.floor(bytes.byteLength / step), MAX_SECONDS * rate_hz)
  const samples = new Int16Array(frames)
  for (let frame = 0; frame < frames; frame++) {
    let sum = 0
    for (let channel = 0; channel < channels; channel++) sum += format.read(data, frame * step + channel * format.bytes)
    samples[frame] = Math.round(sum / channels)
  }
  return samples
}

/** Returns the rate at which samples are played to a leg of `to_hz`, or a lower one when they are very long. */
export function playedRate(samples: number, rate_hz: number, to_hz: SampleRate): SampleRate {
  const rates: SampleRate[] = [24_000, 16_000, 8000]
  const seconds = samples / rate_hz
  return rates.find(rate => rate <= to_hz && seconds * rate <= MAX_PLAYED_SAMPLES) ?? 8000
}

/** Reports whether the channels and the rate in a file's header are plausible. */
export function sane(channels: number, rate_hz: number): boolean {
  return channels >= 1 && channels <= 8 && rate_hz >= 4000 && rate_hz <= 192_000
}
