import { type Decoded, SAMPLE_FORMATS, type SampleFormat, sane, toMono, unsupported } from './pcm.ts'

/** Decodes AIFF and AIFC with linear, byte-swapped, µ-law or A-law samples. */
export function readAiff(bytes: Buffer): Decoded {
  const kind = bytes.toString('latin1', 8, 12)
  let shape: { channels: number; bits: number; rate_hz: number; compression: string } | null = null
  for (let at = 12; at + 8 <= bytes.length; ) {
    const id = bytes.toString('latin1', at, at + 4)
    const size = bytes.readUInt32BE(at + 4)
    const body = at + 8
    if (id === 'COMM' && size >= 18 && body + 18 <= bytes.length) {
      shape = {
        channels: bytes.readUInt16BE(body),
        bits: bytes.readUInt16BE(body + 6),
        rate_hz: extended(bytes, body + 8),
        compression:
          kind === 'AIFC' && body + 22 <= bytes.length ? bytes.toString('latin1', body + 18, body + 22) : 'NONE',
      }
    }
    if (id === 'SSND' && shape && body + 8 <= bytes.length) {
      const format = sampleFormat(shape.compression, shape.bits)
      if (!format) return unsupported(`AIFF compression ${JSON.stringify(shape.compression)} with ${shape.bits} bits`)
      const { channels, rate_hz } = shape
      if (!sane(channels, rate_hz)) return unsupported(`an AIFF file of ${channels} channels at ${rate_hz} Hz`)
      const start = body + 8 + bytes.readUInt32BE(body)
      // A streaming writer leaves the size of the chunk or 0, as in WAV.
      const end = size < 8 ? bytes.length : Math.min(body + size, bytes.length)
      const audio = bytes.subarray(start, end)
      return { pcm: { samples: toMono(audio, format, channels, rate_hz), rate_hz } }
    }
    at = body + size + (size & 1)
  }
  return unsupported('the AIFF file has no COMM and SSND chunks')
}

/** Reads the 80-bit float in which AIFF stores the sample rate. */
function extended(bytes: Buffer, at: number): number {
  const exponent = (bytes.readUInt16BE(at) & 0x7fff) - 16_383 - 63
  return Math.round(Number(bytes.readBigUInt64BE(at + 2)) * 2 ** exponent)
}

function sampleFormat(compression: string, bits: number): SampleFormat | null {
  const { s8, s16be, s16le, s24be, s32be, ulaw, alaw } = SAMPLE_FORMATS
  if (compression === 'sowt' && bits === 16) return s16le
  if (/^ulaw$/i.test(compression)) return ulaw
  if (/^alaw$/i.test(compression)) return alaw
  if (compression !== 'NONE' && compression !== 'twos') return null
  return { 8: s8, 16: s16be, 24: s24be, 32: s32be }[bits] ?? null
}
