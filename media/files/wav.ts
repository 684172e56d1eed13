import { readGsm } from './gsm.ts'
import {
  type Decoded,
  MAX_SECONDS,
  type Pcm,
  SAMPLE_FORMATS,
  type SampleFormat,
  sane,
  toMono,
  unsupported,
} from './pcm.ts'

/** The contents of a WAV header, with the position of the audio. */
interface WavLayout {
  readonly format: number
  readonly channels: number
  readonly rate_hz: number
  readonly bits: number
  /** The offset of the audio and its length according to the header, which may exceed the file. */
  readonly data_at: number
  readonly data_bytes: number
}

const EXTENSIBLE = 0xfffe
const GSM = 0x31

/** Parses a RIFF/WAVE file, or its form of more than 4 GB (RF64), up to its `data` chunk; null when it is not one. */
export function wavLayout(bytes: Buffer): WavLayout | null {
  if (bytes.length < 12 || !isRiff(bytes) || bytes.toString('latin1', 8, 12) !== 'WAVE') return null
  let shape: Omit<WavLayout, 'data_at' | 'data_bytes'> | null = null
  for (let at = 12; at + 8 <= bytes.length; ) {
    const id = bytes.toString('latin1', at, at + 4)
    const size = bytes.readUInt32LE(at + 4)
    const body = at + 8
    if (id === 'fmt ' && size >= 16 && body + 16 <= bytes.length) {
      const tag = bytes.readUInt16LE(body)
      const format = tag === EXTENSIBLE && size >= 26 && body + 26 <= bytes.length ? bytes.readUInt16LE(body + 24) : tag
      shape = {
        format,
        channels: bytes.readUInt16LE(body + 2),
        rate_hz: bytes.readUInt32LE(body + 4),
        bits: bytes.readUInt16LE(body + 14),
      }
    }
    if (id === 'data') return shape && { ...shape, data_at: body, data_bytes: size }
    // Chunks are aligned to even offsets.
    at = body + size + (size & 1)
  }
  return null
}

/** Samples of 16 bits of one channel, as nearly every engine sends them: reading them is a copy. */
const isPlain = ({ format, channels, bits }: WavLayout): boolean => format === 1 && channels === 1 && bits === 16

/** Decodes a WAV file of plain samples into shared memory, which costs a copy; null for any other file. */
export function readPlainWav(bytes: Buffer): Pcm | null {
  const layout = wavLayout(bytes)
  if (!layout || !isPlain(layout) || !sane(layout.channels, layout.rate_hz)) return null
  const { data_at, rate_hz } = layout
  const length = Math.min(Math.floor((dataEnd(bytes, layout) - data_at) / 2), MAX_SECONDS * rate_hz)
  if (length <= 0) return null
  const samples = new Int16Array(new SharedArrayBuffer(length * 2))
  // The bytes may begin at an odd address.
  new Uint8Array(samples.buffer).set(bytes.subarray(data_at, data_at + length * 2))
  return { samples, rate_hz }
}

/** Decodes WAV with 8, 16, 24 or 32-bit PCM, 32-bit float, µ-law or A-law of up to eight channels, or with GSM. */
export function readWav(bytes: Buffer): Decoded {
  const layout = wavLayout(bytes)
  if (!layout) return unsupported('the WAV file has no fmt and data chunks')
  const { channels, rate_hz } = layout
  const format = sampleFormat(layout)
  const gsm = layout.format === GSM && channels === 1
  if (!format && !gsm) return unsupported(`WAV format ${layout.format} with ${layout.bits} bits is not supported`)
  if (!sane(channels, rate_hz)) return unsupported(`a WAV file of ${channels} channels at ${rate_hz} Hz`)
  const audio = bytes.subarray(layout.data_at, dataEnd(bytes, layout))
  if (!format) return readGsm(audio, 'wav', rate_hz)
  return { pcm: { samples: toMono(audio, format, channels, rate_hz), rate_hz } }
}

export const isRiff = (bytes: Buffer): boolean => /^(RIFF|RF64)$/.test(bytes.toString('latin1', 0, 4))

/**
 * Returns where the audio ends. A streaming writer does not know the length and leaves 0 or the largest value; then the
 * audio is all that is there. After 0 further chunks up to the end of the file mean that there is no audio.
 */
function dataEnd(bytes: Buffer, { data_at, data_bytes }: WavLayout): number {
  if (data_bytes === 0) return chunksFill(bytes, data_at) ? data_at : bytes.length
  return Math.min(data_at + data_bytes, bytes.length)
}

/** Reports whether the bytes from `at` on are whole chunks. */
function chunksFill(bytes: Buffer, from: number): boolean {
  let at = from
  while (at + 8 <= bytes.length && /^[\x20-\x7e]{4}$/.test(bytes.toString('latin1', at, at + 4))) {
    const size = bytes.readUInt32LE(at + 4)
    at += 8 + size + (size & 1)
  }
  return at === bytes.length
}

function sampleFormat({ format, bits }: WavLayout): SampleFormat | null {
  if (format === 1 && bits === 8) return SAMPLE_FORMATS.u8
  if (format === 1 && bits === 16) return SAMPLE_FORMATS.s16le
  if (format === 1 && bits === 24) return SAMPLE_FORMATS.s24le
  if (format === 1 && bits === 32) return SAMPLE_FORMATS.s32le
  if (format === 3 && bits === 32) return SAMPLE_FORMATS.f32le
  if (format === 6 && bits === 8) return SAMPLE_FORMATS.alaw
  if (format === 7 && bits === 8) return SAMPLE_FORMATS.ulaw
  return null
}
